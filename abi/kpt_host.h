/* kpt_host.h: the table that a host passes to the plugin's entry. It has the functions with which
 * the plugin registers its factories, and the callbacks and the allocator that the host provides.
 * The plugin copies the table; the objects that the table points to must stay valid until
 * detach. */
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

/* The clock of the events' timestamps. A host that records its own events selects the clock that
 * these use, so that its events and the plugin's nest. */
enum {
    KPT_TICKS_DEFAULT = 0,      /* the processor's counter, or CLOCK_MONOTONIC if there is none */
    KPT_TICKS_COUNTER = 1,      /* TSC on x86-64, the virtual counter on aarch64 */
    KPT_TICKS_MONOTONIC_NS = 2, /* CLOCK_MONOTONIC */
    KPT_TICKS_REALTIME_NS = 3,  /* CLOCK_REALTIME */
    KPT_TICKS_HOST = 4          /* now_ticks in this table */
};

typedef struct kpt_host {
    uint32_t struct_size;
    uint32_t flags; /* none defined: must be 0 */
    void *ctx;      /* passed to every call */
    kpt_str name;   /* the host's name, for messages; copied */

    /* Receives the plugin's tracer factory. A later registration replaces an earlier one. Required.
     * thread: the thread that called the entry, inside that call
     * GIL: as at the entry
     * ownership: make_ctx belongs to the plugin and is never freed; after detach a call with it
     *     returns KPT_E_HANDLE
     * errors: any status other than KPT_OK makes the entry fail with that status
     * since: 1.0 */
    kpt_status (*register_tracer)(void *ctx, kpt_tracer_make_fn make, void *make_ctx);

    /* Receives the plugin's memory tracer factory. NULL if the host does not use memory tracers.
     * thread: the thread that called the entry, inside that call
     * GIL: as at the entry
     * ownership: as register_tracer
     * errors: the plugin logs any status other than KPT_OK and continues without a memory tracer
     * since: 1.0 */
    kpt_status (*register_memory_tracer)(void *ctx, kpt_memory_make_fn make, void *make_ctx);

    /* Receives the plugin's factory of execution-trace observers. NULL if the host does not use
     * observers.
     * thread: the thread that called the entry, inside that call
     * GIL: as at the entry
     * ownership: as register_tracer
     * errors: the plugin logs any status other than KPT_OK and continues without an observer
     * since: 1.0 */
    kpt_status (*register_observer)(void *ctx, kpt_observer_make_fn make, void *make_ctx);

    /* Receives a message. If log is NULL, messages are discarded, except for the verbose log on
     * stderr.
     * thread: any, but never a traced thread in the middle of a call
     * GIL: as in the call that causes the message
     * ownership: text belongs to the plugin, and is valid until log returns; it does not end in a
     *     NUL or a newline
     * errors: none
     * since: 1.0 */
    void (*log)(void *ctx, uint32_t level, kpt_str text);

    /* Allocates SIZE bytes, aligned for any type. Returns NULL if it cannot. The host sets alloc
     * and dealloc together, or leaves both NULL to use malloc.
     * thread: any, also traced threads in the middle of a call
     * GIL: may be held; must be neither acquired nor released
     * ownership: the memory belongs to the plugin until dealloc
     * errors: NULL if there is no memory
     * since: 1.0 */
    void *(*alloc)(void *ctx, uint64_t size);

    /* Frees memory that alloc returned. SIZE is the size that alloc was called with.
     * thread: any
     * GIL: may be held; must be neither acquired nor released
     * ownership: the memory belongs to the host again
     * errors: none
     * since: 1.0 */
    void (*dealloc)(void *ctx, void *memory, uint64_t size);

    uint32_t tick_source; /* KPT_TICKS_* */
    uint32_t tick_flags;  /* none defined: must be 0 */

    /* Returns the current time in ticks. Called only with KPT_TICKS_HOST. The result must not
     * decrease within a thread. The plugin may hold one of its own locks during the call, so
     * now_ticks must not block and must not call the plugin. (Plugins of 1.0 and 1.1 accept
     * KPT_TICKS_HOST, but use their own clock.)
     * thread: every traced thread, twice per call, so now_ticks should cost nanoseconds; also the
     *     threads that start or stop a tracer or request its recording
     * GIL: may be held; must be neither acquired nor released
     * ownership: nothing is transferred
     * errors: none
     * since: 1.0 */
    uint64_t (*now_ticks)(void *ctx);

    /* Called once on each traced thread, before the thread's first event. The thread's kpt_thread
     * has the result as its host_value; if thread_attach is NULL, host_value is 0.
     * thread: the traced thread; stop waits for this callback, so the callback must not block on
     *     the thread that calls stop
     * GIL: held if the interpreter has one, unless the thread's first event is an operator
     *     (begin_operator, since 1.2); must be neither acquired nor released; no Python may run
     * ownership: nothing is transferred
     * errors: none
     * since: 1.0 */
    uint64_t (*thread_attach)(void *ctx, uint64_t os_tid);

    /* Reports the begin of a call of a watched code object. The activity has the result as its
     * value0. The plugin keeps no reference to the object, so the host reads what it needs from it
     * during the callback. Also invoked for watched calls that are already on the stack: when the
     * tracer starts, and again at the start of each chunk if chunks can be dropped or delivered
     * early (rings, chunk sinks).
     * thread: the thread that makes the call; when the tracer starts, also the thread that starts
     *     it. stop waits for this callback, with the GIL released, unless the callback's own thread
     *     called stop; so the callback must not block on the thread that calls stop. Once the
     *     interpreter is being finalized, stop does not wait
     * GIL: held; Python may run, but no exception may be left set
     * ownership: self is a borrowed PyObject, or NULL if the call has no first argument
     * errors: none
     * since: 1.0 */
    uint64_t (*on_watched_call)(void *ctx, uint64_t watch, void *self, uint64_t call_id);

    /* Reports an asyncio task that the tracer sees for the first time since it started or
     * restarted, if KPT_TRACE_TASKS is set. Returns a number, or 0; the low 28 bits are used. With
     * a number, each resume of the task begins with a point (KPT_MARK_POINT) of that number: the
     * point is in the call that resumes the task and has that call's start time. With 0 the task
     * gets no points. NAME is the task's name at that moment, COROUTINE the qualified name of the
     * code that the task runs.
     * thread: the thread that runs the task, in the middle of a call; stop waits for this callback,
     *     so the callback must not block on the thread that calls stop
     * GIL: held if the interpreter has one; must be neither acquired nor released; no Python may
     *     run
     * ownership: both strings belong to the plugin, and are valid until the callback returns
     * errors: none
     * since: 1.1 */
    uint64_t (*on_task)(void *ctx, kpt_str name, kpt_str coroutine);
} kpt_host;
#define KPT_HOST_V1_SIZE KPT_FIELD_END(kpt_host, on_watched_call)

#ifdef __cplusplus
}
#endif
#endif
