/* kpt_host.h: the table that a host hands to the plugin's entry: where to register, and what the
 * host lends. The plugin copies it; what it points to must stay valid until detach. */
#ifndef KPT_HOST_H
#define KPT_HOST_H

#include "kpt_base.h"
#include "kpt_memory.h"
#include "kpt_observer.h"
#include "kpt_tracer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KPT_LOG_DEBUG = 1, KPT_LOG_INFO = 2, KPT_LOG_WARNING = 3, KPT_LOG_ERROR = 4 };

/* Which clock events are stamped with; a host that records events of its own names the one that it
 * uses, so that both nest. */
enum {
    KPT_TICKS_DEFAULT = 0,      /* the processor's counter, or the monotonic clock without one */
    KPT_TICKS_COUNTER = 1,      /* TSC on x86-64, the virtual counter on aarch64 */
    KPT_TICKS_MONOTONIC_NS = 2, /* CLOCK_MONOTONIC */
    KPT_TICKS_REALTIME_NS = 3,  /* CLOCK_REALTIME */
    KPT_TICKS_HOST = 4          /* now_ticks of this table */
};

typedef struct kpt_host {
    uint32_t struct_size;
    uint32_t flags; /* none defined: must be 0 */
    void *ctx;      /* handed back in every call */
    kpt_str name;   /* of the host, for messages; copied */

    /* Takes the plugin's factory of tracers. A later registration replaces this one. Required.
     * thread: the one that called the entry, inside it
     * GIL: as at the entry
     * ownership: make_ctx is the plugin's, valid for ever (dead after detach, but never a crash)
     * errors: any status but KPT_OK makes the entry fail with it
     * since: 1.0 */
    kpt_status (*register_tracer)(void *ctx, kpt_tracer_make_fn make, void *make_ctx);

    /* The same for memory tracers. NULL: the host has no use for them.
     * thread: the one that called the entry, inside it
     * GIL: as at the entry
     * ownership: as register_tracer
     * errors: any status but KPT_OK is logged, and the plugin goes on without
     * since: 1.0 */
    kpt_status (*register_memory_tracer)(void *ctx, kpt_memory_make_fn make, void *make_ctx);

    /* The same for execution-trace observers. NULL: the host has no use for them.
     * thread: the one that called the entry, inside it
     * GIL: as at the entry
     * ownership: as register_tracer
     * errors: any status but KPT_OK is logged, and the plugin goes on without
     * since: 1.0 */
    kpt_status (*register_observer)(void *ctx, kpt_observer_make_fn make, void *make_ctx);

    /* Takes a message. NULL: messages are lost, but for the verbose log on stderr.
     * thread: any, but never a traced one in the middle of a call
     * GIL: as in the call that causes it
     * ownership: text is the plugin's, until it returns; it has no NUL or newline at its end
     * errors: none
     * since: 1.0 */
    void (*log)(void *ctx, uint32_t level, kpt_str text);

    /* Returns SIZE bytes aligned for any type, or NULL. With dealloc, or both NULL for malloc.
     * thread: any, also traced ones in the middle of a call
     * GIL: may be held, and must be neither taken nor released
     * ownership: the plugin's, until dealloc
     * errors: NULL when there is no memory
     * since: 1.0 */
    void *(*alloc)(void *ctx, uint64_t size);

    /* Takes back what alloc returned, with the size that was asked for.
     * thread: any
     * GIL: may be held, and must be neither taken nor released
     * ownership: back with the host
     * errors: none
     * since: 1.0 */
    void (*dealloc)(void *ctx, void *memory, uint64_t size);

    uint32_t tick_source; /* KPT_TICKS_* */
    uint32_t tick_flags;  /* none defined: must be 0 */

    /* Returns now. Only with KPT_TICKS_HOST; must not go backwards within a thread.
     * thread: every traced thread, twice a call: it should cost nanoseconds
     * GIL: may be held, and must be neither taken nor released
     * ownership: none passes
     * errors: none
     * since: 1.0 */
    uint64_t (*now_ticks)(void *ctx);

    /* Called once on each traced thread, before its first event; the answer comes back as that
     * kpt_thread's host_value. NULL: it is 0.
     * thread: the traced one
     * GIL: held where the interpreter has one; must be neither taken nor released, no Python run
     * ownership: none passes
     * errors: none
     * since: 1.0 */
    uint64_t (*thread_attach)(void *ctx, uint64_t os_tid);

    /* A call of a watched code object begins; the answer comes back as the activity's value0. Read
     * what is wanted of the object now: it is not kept. Of calls that run already it is told when the
     * tracer starts, and, where chunks may go (rings, chunk sinks), as each chunk begins.
     * thread: the calling one; when the tracer starts, also the one that starts it
     * GIL: held; Python may be run, exceptions must not be left set
     * ownership: self is a borrowed PyObject, NULL where the call has no first argument
     * errors: none
     * since: 1.0 */
    uint64_t (*on_watched_call)(void *ctx, uint64_t watch, void *self, uint64_t call_id);
} kpt_host;
#define KPT_HOST_V1_SIZE KPT_FIELD_END(kpt_host, on_watched_call)

#ifdef __cplusplus
}
#endif
#endif
