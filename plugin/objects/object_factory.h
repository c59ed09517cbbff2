/* object_factory.h: makes tracers, memory tracers, observers, traceback gatherers and GPU tracers. All are made in the
 * same way; a kpti_product describes each kind. An object pins its host's binding, and destroy frees it. */
#ifndef KPTI_PLUGIN_OBJECTS_OBJECT_FACTORY_H
#define KPTI_PLUGIN_OBJECTS_OBJECT_FACTORY_H

#include "plugin/objects/object.h"
#include "plugin/python/backend.h"

/* What all their out structs look like; asserted where they are written. */
typedef struct kpti_made {
    uint32_t struct_size;
    uint32_t flags;
    const void *ops;
    kpt_handle self;
} kpti_made;

/* Room for a whole copy of any product's args, and for what they point to. */
typedef struct kpti_make_args {
    union {
        kpt_tracer_args tracer;
        kpt_memory_args memory;
        kpt_observer_args observer;
        kpt_tracebacks_args tracebacks;
        kpt_gpu_args gpu;
    } of;
    kpt_chunk_sink chunk_sink; /* of.tracer.chunk_sink's whole copy */
    kpt_tracebacks gatherer;   /* of.gpu.tracebacks' */
} kpti_make_args;

typedef struct kpti_product {
    const kpti_kind *kind;
    uint32_t factory_kind; /* KPT_FACTORY_*; 0: nobody else makes these */
    uint32_t first_state;
    uint32_t args_size;
    uint32_t args_v1_size;
    const void *ops;
    uint32_t ops_v1_size;
    const void *noop;
    const void *(*pick)(const kpti_backend *backend); /* its implementation, or NULL */
    /* In its place, for what no backend has: the implementation, or NULL with the reason. */
    const void *(*find)(const kpt_host *host, kpti_error *why);
    /* Checks, and completes, the whole copy of the host's args. */
    kpt_status (*check)(const kpti_env *env, kpti_make_args *args, kpti_error *error);
    /* Calls somebody else's factory; NULL where there are none. */
    kpt_status (*call_factory)(kpt_any_fn make, void *make_ctx, const kpti_make_args *args,
                               kpti_made *out);
    /* Makes what is behind OBJECT, into its self. */
    kpt_status (*call_impl)(const void *impl, const kpti_env *env, const kpti_make_args *args,
                            kpti_object *object, kpti_error *error);
    void (*destroy)(const void *impl, void *self);
} kpti_product;

/* The body of every make function: bond, sizes, checks, factories of others, backend, no-op. */
kpt_status kpti_product_make(const kpti_product *product, kpt_handle bond, const void *args,
                             void *out);
/* The body of every destroy. */
kpt_status kpti_product_destroy(const kpti_product *product, kpt_handle self);

/* Whether a string or path that came over can be used; a path is copied with a NUL into OUT. */
kpt_status kpti_check_path(kpt_str path, char *out, size_t size, kpti_error *error);

#endif
