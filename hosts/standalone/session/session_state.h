/* session_state.h: the state of a session. Only the files of session/ use it.
 *
 * Locks: `inside` is set while a call of the user runs; `control` is held around each control call of the
 * tracer, since the service thread makes some, too. Neither is held while Python may run. memory_lock comes after
 * them: its holder only writes to the file. After a fork the
 * child's session has no service thread and writes no stream (kpti_session_enter ensures it). */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_STATE_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_STATE_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#include "hosts/standalone/background/service_thread.h"
#include "hosts/standalone/background/sigterm_flush.h"
#include "hosts/standalone/plugin_client.h"
#include "hosts/standalone/session/session_gpu.h"
#include "hosts/standalone/session/session_types.h"
#include "hosts/standalone/session/trigger_state.h"
#include "writers/annotations/notes.h"
#include "writers/kpt/kpt_gpu.h"
#include "writers/kpt/kpt_reader.h"
#include "writers/kpt/kpt_writer.h"

/* Invariant: tracer.ops is set while the session is open. `stopped` is the state that the user sees. */
struct kpti_session {
    atomic_flag inside;
    pthread_mutex_t control;
    pid_t pid; /* the process that has the service thread and the stream */
    kpti_plugin_client client;
    kpt_tracer tracer;
    _Atomic int stopped;
    int64_t base_ns; /* the full second of the start; times in files count from it */
    uint64_t traced_pid;
    _Atomic int may_have_operators; /* another host in the process has the tracer */
    char noop_reason[256];
    char info[2048]; /* lines "key=value" */

    pthread_mutex_t notes_lock;
    kpti_notes notes;
    uint32_t most_notes; /* the number that is kept; 0 keeps all */
    _Atomic int noting;  /* calls of note that run now */
    _Atomic int closing; /* no new note may be added */

    int has_service;
    kpti_service_thread service;
    kpti_sigterm_flush sigterm_flush;
    int no_compress;          /* chunks in the .kpt files that it writes are not packed */
    int is_compact;           /* the Chrome JSON that it writes has no ids, and short names */
    char dump_path[PATH_MAX]; /* empty if signals write nothing */
    int is_saved;             /* the complete recording is in dump_path; guarded by control */
    _Atomic uint32_t dumps;
    kpti_triggers triggers;

    int streams; /* it streams; stream_path was or is being written */
    int stream_open;
    kpti_kpt_writer stream;
    char stream_path[PATH_MAX];
    pthread_mutex_t
        memory_lock; /* held while a record of allocations is written, also in the middle of an allocation */
    int takes_memory; /* guarded by memory_lock: 0 before a recording joins, and after the stream's end */
    int has_memory; /* a recording of memory has joined the stream; guarded by control */

    kpti_gpu gpu;                 /* guarded by control; an opened session uses only its log */
    kpti_gpu_written gpu_written; /* the state of the stream's GPU part */

    kpti_kpt_reader reader;
};

enum { KPTI_NS_PER_SECOND = 1000 * 1000 * 1000 };

static inline int64_t kpti_unix_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * KPTI_NS_PER_SECOND + now.tv_nsec;
}

static inline kpt_status kpti_session_fail_of_tracer(const kpt_tracer *tracer,
                                                     kpti_session_error *error, kpt_status status,
                                                     const char *what)
{
    return kpti_session_fail_of(error, status, what, tracer->ops->last_error, tracer->self);
}

/* Returns 1 if the tracer, of any plugin version, can deliver chunks. */
static inline int kpti_has_chunks(const kpt_tracer *tracer)
{
    return KPT_HAS(tracer->ops, kpt_tracer_ops, get_chunks);
}

/* A plugin that records no operators has no function for them, and refuses flags that it does not know. */
static inline int kpti_has_operators(const kpt_tracer *tracer)
{
    return KPT_HAS(tracer->ops, kpt_tracer_ops, begin_operator) && tracer->ops->begin_operator;
}

#endif
