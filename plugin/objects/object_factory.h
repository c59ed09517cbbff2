/* object_factory.h: makes tracers, memory tracers, observers, traceback gatherers and GPU tracers. All are made
 * in the same way; a kpti_object_class describes each kind. An object pins its host's binding, and destroy frees it. */
#ifndef KPTI_PLUGIN_OBJECTS_OBJECT_FACTORY_H
#define KPTI_PLUGIN_OBJECTS_OBJECT_FACTORY_H

#include "plugin/objects/object.h"
#include "plugin/python/backend.h"

/* The common layout of the out structs of all kinds. A static assertion in each *_api.c checks it. */
typedef struct kpti_made {
    uint32_t struct_size;
    uint32_t flags;
    const void *ops;
    kpt_handle self;
} kpti_made;

/* A complete copy of any product's args, and of the structs that they point to. */
typedef struct kpti_make_args {
    union {
        kpt_tracer_args tracer;
        kpt_memory_args memory;
        kpt_observer_args observer;
        kpt_tracebacks_args tracebacks;
        kpt_gpu_args gpu;
    } of;
    kpt_chunk_sink chunk_sink; /* the complete copy of *of.tracer.chunk_sink */
    kpt_tracebacks gatherer;   /* the complete copy of *of.gpu.tracebacks */
} kpti_make_args;

typedef struct kpti_object_class {
    const kpti_handle_kind *kind;
    uint32_t factory_kind; /* KPT_FACTORY_*; 0 if only the plugin makes this kind */
    uint32_t first_state;
    uint32_t args_size;
    uint32_t args_v1_size;
    const void *ops;
    uint32_t ops_v1_size;
    /* Returns the functions for objects of IMPL, with the size of ops. NULL: they are ops. */
    const void *(*ops_of)(const void *impl);
    const void *noop;
    const void *(*pick)(const kpti_backend *backend); /* returns the implementation, or NULL */
    /* Replaces pick for kinds that no backend implements. Returns the implementation, or NULL with the reason
     * in WHY. */
    const void *(*find)(const kpt_host *host, kpti_error *why);
    /* Checks and completes the copy of the host's args. */
    kpt_status (*check)(const kpti_env *env, kpti_make_args *args, kpti_error *error);
    /* Calls an added factory. NULL if this kind can have none. */
    kpt_status (*call_factory)(kpt_any_fn make, void *make_ctx, const kpti_make_args *args,
                               kpti_made *out);
    /* Makes the implementation's object and stores it in OBJECT's self. */
    kpt_status (*call_impl)(const void *impl, const kpti_env *env, const kpti_make_args *args,
                            kpti_object *object, kpti_error *error);
    void (*destroy)(const void *impl, void *self);
} kpti_object_class;

/* The body of every make function: checks the binding, the sizes and the args, then tries the added factories,
 * the implementation and the no-op. */
kpt_status kpti_object_make(const kpti_object_class *object_class, kpt_handle binding,
                            const void *args, void *out);
/* The body of every destroy function. */
kpt_status kpti_object_destroy(const kpti_object_class *object_class, kpt_handle self);

/* Checks that a path from the host is usable, and copies it with a NUL into OUT. */
kpt_status kpti_check_path(kpt_str path, char *out, size_t size, kpti_error *error);

#endif
