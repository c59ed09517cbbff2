/* object.h: an object that the plugin made for a host: a tracer, a memory tracer, an observer, a traceback
 * gatherer or a GPU tracer. */
#ifndef KPTI_PLUGIN_OBJECTS_OBJECT_H
#define KPTI_PLUGIN_OBJECTS_OBJECT_H

#include "plugin/objects/host_binding.h"

/* A live object: its implementation, and the state that the host sees. */
typedef struct kpti_object {
    kpti_host_binding *binding;
    const void *impl; /* a kpti_tracer_impl, kpti_memory_impl, …, depending on the product */
    void *self;       /* the implementation's own object */
    uint32_t state;   /* its values depend on the product */
    uint32_t ended_by_fork; /* 1 from a fork that ended the recording until the host calls stop */
    kpt_chunk_sink sink;    /* the host's sink, if this is a tracer that has one */
} kpti_object;

#endif
