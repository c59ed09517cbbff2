/* kpti_impl.h: the private contract between the plugin and the implementations behind it (the
 * no-op, the backends). Hosts call only the plugin, which checks handles, states, sizes and
 * arguments in one place. An implementation therefore gets complete, valid structs, calls that are
 * legal in its state, and one control call at a time. This header is not installed and not stable:
 * both sides are built together, and the plugin refuses a backend with another KPTI_INTERFACE. */
#ifndef KPTI_IMPL_H
#define KPTI_IMPL_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kpt.h"

/* Incremented with every change of this header. A backend also has the project's version. */
#define KPTI_INTERFACE 11

/* Called for every operator of a host. `hot` groups these functions in one text section, which
 * keeps them on few cache lines; between two operators the host's code evicts them. */
#define KPTI_HOT __attribute__((hot))

/* Receives the text of an implementation's failure. */
typedef struct kpti_error {
    char text[240];
} kpti_error;

/* Writes the text and returns STATUS, so that a failure takes one return statement. */
__attribute__((format(printf, 3, 4))) static inline kpt_status
kpti_fail(kpti_error *error, kpt_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return status;
}

/* The part of a host's binding that an implementation may use. It outlives every object made with
 * it. */
typedef struct kpti_env {
    kpt_host host; /* complete: fields that the host's table lacks are zero */
} kpti_env;

/* Allocates zeroed memory with the host's allocator, or with malloc. Returns NULL if there is none.
 * Any thread, no lock. */
static inline void *kpti_alloc(const kpti_env *env, size_t size)
{
    void *memory;
    if (!env->host.alloc) return calloc(1, size);
    memory = env->host.alloc(env->host.ctx, size);
    return memory ? memset(memory, 0, size) : NULL;
}

static inline void kpti_free(const kpti_env *env, void *memory, size_t size)
{
    if (!env->host.dealloc)
        free(memory);
    else if (memory)
        env->host.dealloc(env->host.ctx, memory, size);
}

/* The functions of kpt_tracer_ops that a host calls for each operator. */
typedef struct kpti_operator_ops {
    kpt_status (*begin)(kpt_handle self, const kpt_operator *op, uint64_t *token);
    kpt_status (*end)(kpt_handle self, uint64_t token);
} kpti_operator_ops;

/* One table of functions per kind of object. make sets *self; the plugin passes it to the others.
 * forked runs in the child of a fork, on its only thread. Recording has ended there, and the
 * recorded data is gone. forked must not acquire a lock. */
typedef struct kpti_tracer_impl {
    kpt_status (*make)(const kpti_env *env, const kpt_tracer_args *args, void **self,
                       kpti_error *error);
    kpt_status (*stop)(void *self, kpti_error *error);
    kpt_status (*restart)(void *self, kpti_error *error);
    kpt_status (*register_gc_callback)(void *self, kpti_error *error);
    kpt_status (*deliver)(void *self, const kpt_delivery *delivery, kpti_error *error);
    void (*get_stats)(void *self, kpt_stats *out);
    void (*mark)(void *self, uint32_t what, uint64_t number); /* any thread, at any time */
    kpt_status (*get_chunks)(void *self, const kpt_chunk_sink *sink, kpti_error *error);
    /* These three: any thread, at any time. All are NULL if the implementation records no operators.
     * name_operator returns 0 if there is no memory. begin_operator returns the token, or 0. HANDLE is
     * the host's handle of SELF. */
    uint32_t (*name_operator)(void *self, kpt_str name, uint32_t scope);
    uint64_t (*begin_operator)(void *self, kpt_handle handle, const kpt_operator *op);
    void (*end_operator)(void *self, uint64_t token);
    /* May be NULL. Returns functions that hosts call in place of the plugin's, without its check of the
     * handle. They record an operator only in a stream that begin_operator has used with the same
     * handle. In all other cases they call GENERAL, the plugin's functions, which stay valid. */
    kpti_operator_ops (*get_direct_ops)(kpti_operator_ops general);
    void (*forked)(void *self);
    void (*destroy)(void *self);
} kpti_tracer_impl;

typedef struct kpti_memory_impl {
    kpt_status (*make)(const kpti_env *env, const kpt_memory_args *args, void **self,
                       kpti_error *error);
    kpt_status (*start)(void *self, kpti_error *error);
    kpt_status (*stop)(void *self, kpti_error *error);
    kpt_status (*export_memory_history)(void *self, const char *path, kpti_error *error);
    void (*report)(void *self, const kpt_memory_report *report); /* any thread, at any time */
    kpt_status (*stream)(void *self, kpt_memory_sink_fn sink, void *sink_ctx, kpti_error *error);
    void (*forked)(void *self);
    void (*destroy)(void *self);
} kpti_memory_impl;

typedef struct kpti_observer_impl {
    kpt_status (*make)(const kpti_env *env, const kpt_observer_args *args, void **self,
                       kpti_error *error);
    kpt_status (*open)(void *self, const char *path, kpti_error *error);
    kpt_status (*start)(void *self, kpti_error *error);
    kpt_status (*stop)(void *self, kpti_error *error);
    kpt_status (*close)(void *self, kpti_error *error);
    kpt_status (*begin_op)(void *self, const kpt_op *op,
                           uint64_t *op_id); /* *op_id is 0 on entry */
    kpt_status (*end_op)(void *self, uint64_t op_id, const kpt_op *op, kpt_str error);
    void (*get_stats)(void *self, kpt_observer_stats *out);
    kpt_status (*recover)(void *self, const char *journal, const char *path, kpti_error *error);
    kpt_tape *(*tape)(void *self); /* may return NULL */
    void (*forked)(void *self);
    void (*destroy)(void *self);
} kpti_observer_impl;

/* Every function except make and destroy may be called on any thread, several at once. */
typedef struct kpti_tracebacks_impl {
    kpt_status (*make)(const kpti_env *env, const kpt_tracebacks_args *args, void **self,
                       kpti_error *error);
    void (*gather)(void *self, uint32_t what, uint32_t depth, kpt_traceback *out);
    void (*retain)(void *self, const kpt_traceback *tracebacks, uint64_t count);
    void (*release)(void *self, kpt_traceback *tracebacks, uint64_t count);
    kpt_status (*symbolize)(void *self, const kpt_traceback *tracebacks, uint64_t count,
                            kpt_symbols_fn sink, void *sink_ctx, kpti_error *error);
    uint64_t (*get_frames)(void *self, const kpt_traceback *traceback, uint32_t *out,
                           uint64_t capacity);
    kpt_status (*symbolize_frames)(void *self, const uint32_t *frames, uint64_t count,
                                   kpt_symbols_fn sink, void *sink_ctx, kpti_error *error);
    uint64_t (*free_dead)(void *self, uint64_t max); /* returns the number left; max 0 = free all */
    void (*get_stats)(void *self, kpt_traceback_stats *out);
    void (*destroy)(void *self);
} kpti_tracebacks_impl;

/* stop may return an error; recording has ended in that case too. */
typedef struct kpti_gpu_impl {
    kpt_status (*make)(const kpti_env *env, const kpt_gpu_args *args, void **self,
                       kpti_error *error);
    kpt_status (*start)(void *self, kpti_error *error);
    kpt_status (*stop)(void *self, kpti_error *error);
    kpt_status (*collect)(void *self, kpt_gpu_batch_fn sink, void *sink_ctx, kpti_error *error);
    void (*get_stats)(void *self, kpt_gpu_stats *out);
    void (*forked)(void *self);
    void (*destroy)(void *self);
} kpti_gpu_impl;

/* The static table that libkpytrace_gpu.so returns from its function for the plugin. */
typedef struct kpti_gpu_library {
    uint32_t interface;  /* KPTI_INTERFACE */
    const char *version; /* the project's; must equal the plugin's */
    const kpti_gpu_impl *gpu;
} kpti_gpu_library;

#define KPTI_GPU_ENTRY_NAME "kpti_gpu_entry"
typedef const kpti_gpu_library *(*kpti_gpu_entry_fn)(void);

/* The static table that the only exported function of a backend returns. */
typedef struct kpti_backend {
    uint32_t interface; /* KPTI_INTERFACE */
    uint32_t python_minor;
    uint32_t free_threaded;
    const char *version;            /* the project's; must equal the plugin's */
    const kpti_tracer_impl *tracer; /* NULL if it has none */
    const kpti_memory_impl *memory;
    const kpti_observer_impl *observer;
    const kpti_tracebacks_impl *tracebacks;
} kpti_backend;

#define KPTI_BACKEND_ENTRY_NAME "kpti_backend_entry"
typedef const kpti_backend *(*kpti_backend_entry_fn)(void);

#endif
