/* sink_wrapper.h: the chunk sink that an implementation receives, which wraps the host's sink. A full chunk is
 * delivered on a traced thread, while no control call is inside the tracer. So each thread records which
 * tracers' sinks it is in, and a control call from inside a sink returns KPT_E_BUSY. */
#ifndef KPTI_PLUGIN_OBJECTS_SINK_WRAPPER_H
#define KPTI_PLUGIN_OBJECTS_SINK_WRAPPER_H

#include "plugin/objects/object.h"

/* Returns the wrapper around OBJECT's own sink. The wrapper is valid as long as OBJECT. */
kpt_chunk_sink kpti_sink_around(kpti_object *object);

/* Returns 1 if the calling thread is in OBJECT's sink. OBJECT may be NULL, which returns 0. */
int kpti_sink_is_inside(const kpti_object *object);
/* Sets the error text of HANDLE for a control call from inside a sink, which returns KPT_E_BUSY. */
void kpti_sink_refuse(kpt_handle handle);

#endif
