/* session_types.h: the types that the functions of a session share. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_TYPES_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_TYPES_H

#include "hosts/standalone/error.h"
#include "writers/io/output_file.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_session kpti_session;

enum {
    KPTI_SESSION_GC = 1 << 0, /* garbage collections are recorded too */
    KPTI_SESSION_RING =
        1 << 1, /* a flight recorder, which also keeps only the last of the user's notes */
    /* SIGTERM, unless the program handles it, ends the process after a flush of the stream, or after the
     * recording was written to DUMP. */
    KPTI_SESSION_TERM = 1 << 2,
    /* A crash (SIGSEGV, SIGBUS, SIGFPE, SIGABRT) ends the process after a flush of the stream; see
     * crash_flush.h. */
    KPTI_SESSION_CRASH = 1 << 3,
    KPTI_SESSION_NO_COMPRESS =
        1 << 4, /* chunks in the .kpt files that the session writes are not packed */
};

/* Zero means the default. The pointers are borrowed during start. */
typedef struct kpti_session_options {
    uint32_t flags;     /* KPTI_SESSION_* */
    const char *stream; /* the .kpt file that is written meanwhile, or NULL */
    /* The file that will be written at the end, or NULL. SIGTERM writes it. DUMP_SIGNAL writes out.1.json,
     * out.2.json … for "out.json". */
    const char *dump;
    uint32_t dump_signal;     /* the signal's number; 0 if there is none */
    uint32_t chained_signals; /* bits 1 << number: crashes whose present handlers run after ours */
    /* A flight recorder writes itself to a numbered DUMP: if nothing happens for HANG_NS, or if a step takes STEP_PERCENT
     * / 100 times the median; 0 if it does not. At most DUMPS_PER_HOUR times; 0 means 6. */
    uint64_t hang_ns;
    uint32_t step_percent;
    uint32_t dumps_per_hour;
    uint64_t flush_ns; /* interval between flushes of a stream's threads; 0 means 1 s */
    uint32_t gpu;      /* KPTI_GPU_*, in session_gpu.h */
    const kpt_host *
        callbacks; /* another host's clock and callbacks, which must outlive the session; or NULL */
    kpt_str info;  /* lines "key=value" for readers of the .kpt file */
} kpti_session_options;

/* What was delivered, in numbers. */
typedef struct kpti_session_count {
    uint64_t calls;
    uint64_t names;
    uint64_t threads;
    uint64_t bytes; /* size of the file */
} kpti_session_count;

/* Callbacks of a long call; each may be NULL. */
typedef struct kpti_session_watch {
    kpti_interrupted_fn interrupted; /* see output_file.h */
    void *interrupted_ctx;
    void (*progress)(void *ctx, uint64_t calls_done);
    void *progress_ctx;
} kpti_session_watch;

#ifdef __cplusplus
}
#endif
#endif
