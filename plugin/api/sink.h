/* sink.h: a tracer's chunk sink, as the implementation gets it: around the host's. A full chunk is handed over
 * on a traced thread, where no control call is inside the tracer. So this remembers, for each thread, which
 * tracers' sinks it is in, and a control call from there is answered with KPT_E_BUSY. */
#ifndef KPTI_PLUGIN_API_SINK_H
#define KPTI_PLUGIN_API_SINK_H

#include "plugin/objects/object_factory.h"

/* The sink around OBJECT's own, which lives as long as OBJECT does. */
kpt_chunk_sink kpti_sink_around(kpti_object *object);

/* Whether the calling thread is in OBJECT's sink; NULL is no object. */
int kpti_sink_is_inside(const kpti_object *object);
/* Sets the error text of HANDLE for a control call from there, which is answered with KPT_E_BUSY. */
void kpti_sink_refuse(kpt_handle handle);

#endif
