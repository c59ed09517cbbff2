/* object.h: an object that the plugin made for a host: a tracer, an observer, … */
#ifndef KPTI_PLUGIN_OBJECTS_OBJECT_H
#define KPTI_PLUGIN_OBJECTS_OBJECT_H

#include "plugin/objects/host_binding.h"

/* A live object: the implementation behind it, and the state that the host sees. */
typedef struct kpti_object {
    kpti_bond *bond;
    const void *impl;       /* a kpti_tracer_impl, kpti_memory_impl, … by product */
    void *self;             /* the implementation's */
    uint32_t state;         /* by product */
    uint32_t ended_by_fork; /* the host has not stopped it yet, but nothing is recorded any more */
    kpt_chunk_sink sink;    /* the host's, of a tracer that has one */
} kpti_object;

#endif
