/* session.h: the embedded host: it opens the plugin through the same door as every other host, makes
 * one tracer, and has its recording written to files; or opens a .kpt file that was written so. Plain
 * C: no Python is known here, so that it can be tested, and used, without one; module.c makes it a
 * Python module.
 *
 *   start ──> write, stats, … ──> stop ──> write, count, stats (any number of times) ──> free
 *   open ──────────────────────────────> write, count, stats (any number of times) ──> free
 *
 * A session is used by one call at a time; a second, also from a callback of the first, is answered
 * with KPT_E_BUSY. Notes may be made at any time. No function here needs or takes the GIL, but start's
 * tracer does: see the ABI's make. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_H

#include "hosts/standalone/error.h"
#include "writers/annotations/task_profile.h"
#include "writers/kpt/kpt_reader.h"
#include "writers/profile.h"
#include "writers/writer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_session kpti_session;

enum {
    KPTI_SESSION_GC = 1 << 0, /* garbage collections are recorded too */
    KPTI_SESSION_RING =
        1 << 1, /* a flight recorder: of the user's notes, too, only the last are kept */
    /* SIGTERM, unless the program handles it, ends the process after a flush of the stream, or after the
     * recording was written to DUMP. */
    KPTI_SESSION_TERM = 1 << 2,
    /* A crash (SIGSEGV, SIGBUS, SIGFPE, SIGABRT) ends the process after a flush of the stream; see crash_flush.h. */
    KPTI_SESSION_CRASH = 1 << 3,
};

/* Zero means the default. All is borrowed during start. */
typedef struct kpti_session_options {
    uint32_t flags;     /* KPTI_SESSION_* */
    const char *stream; /* the .kpt file that is written while it runs; NULL: none */
    /* The file that will be written at the end, or NULL: SIGTERM writes it, DUMP_SIGNAL writes out.1.json,
     * out.2.json … for "out.json". */
    const char *dump;
    uint32_t dump_signal;     /* which one; 0: none */
    uint32_t chained_signals; /* bits 1 << number: crashes whose present handlers run after ours */
    uint64_t flush_ns;        /* a stream's threads hand over what they have so often; 0: 1 s */
    uint32_t gpu;             /* KPTI_GPU_*, in session_gpu.h */
    kpt_str info;             /* lines "key=value" for readers of the .kpt file */
} kpti_session_options;

/* Opens PLUGIN, makes a tracer with ARGS and has it run. On KPT_OK *OUT is to be freed. */
kpt_status kpti_session_start(const char *plugin, const kpt_tracer_args *args,
                              const kpti_session_options *options, kpti_session **out,
                              kpti_session_error *error);

/* Opens a .kpt file; a damaged one only with RECOVER, up to where it is. */
kpt_status kpti_session_open(const char *plugin, const char *path, int recover, kpti_session **out,
                             kpti_session_error *error);

/* Why the tracer records nothing; NULL: it does record. */
const char *kpti_session_noop_reason(const kpti_session *session);

/* Why nothing is recorded of GPUs; NULL: it is, or nobody asked for it. After stop it may be another: CUDA may have come
 * only then. */
const char *kpti_session_gpu_reason(const kpti_session *session);

/* What is known of GPUs: how many kernels came, devices, what was dropped. Of a stream, and while it runs, the
 * log has no events. It is the session's; nobody may be inside. */
const kpti_gpu_log *kpti_session_gpu(const kpti_session *session);

/* How the file of an opened session ends, and what it says of itself. */
kpti_kpt_state kpti_session_state(const kpti_session *session);
kpt_str kpti_session_info(const kpti_session *session);

/* Replaces what START's options said in info, also in the stream, where more is known by now. */
kpt_status kpti_session_set_info(kpti_session *session, kpt_str info, kpti_session_error *error);

/* Ends recording. A tracer that has ended by itself (at exit, in the child of a fork) is fine. A stream
 * that could not be written whole is KPT_E_IO, and stopped all the same. */
kpt_status kpti_session_stop(kpti_session *session, kpti_session_error *error);

/* Whether it records, in this process: not in the child of a fork. Any thread, at any time before free. */
int kpti_session_is_recording(const kpti_session *session);

/* What was delivered. */
typedef struct kpti_session_count {
    uint64_t calls;
    uint64_t names;
    uint64_t threads;
    uint64_t bytes; /* of the file */
} kpti_session_count;

/* What a long call asks and tells meanwhile; all may be NULL. */
typedef struct kpti_session_watch {
    kpti_interrupted_fn interrupted; /* see output_file.h */
    void *interrupted_ctx;
    void (*progress)(void *ctx, uint64_t calls_done);
    void *progress_ctx;
} kpti_session_watch;

/* Writes what is recorded, so far, to PATH, in the format that its suffix stands for. */
kpt_status kpti_session_write(kpti_session *session, const char *path,
                              const kpti_session_watch *watch, kpti_session_count *count,
                              kpti_session_error *error);

/* The same without a file, thread after thread: to SINK, where WATCH may be NULL; counted only; or by
 * function. */
kpt_status kpti_session_deliver(kpti_session *session, const kpti_session_watch *watch,
                                kpt_batch_fn sink, void *sink_ctx, kpti_session_error *error);
kpt_status kpti_session_count_calls(kpti_session *session, kpti_session_count *count,
                                    kpti_session_error *error);
kpt_status kpti_session_profile(kpti_session *session, const kpti_session_watch *watch,
                                kpti_profile *profile, kpti_session_error *error);

/* The same by task of asyncio: EACH hears of one after the other, with its row and its note, on the calling
 * thread. PROFILE is a new one. */
typedef void (*kpti_session_task_fn)(void *ctx, const kpti_task_row *row, const kpti_note *note);
kpt_status kpti_session_tasks(kpti_session *session, const kpti_session_watch *watch,
                              kpti_task_profile *profile, kpti_session_task_fn each, void *each_ctx,
                              kpti_session_error *error);

/* Has USE look at all that GPUs did, so far; what it returns is the answer. */
kpt_status kpti_session_with_gpu(kpti_session *session,
                                 kpt_status (*use)(void *ctx, const kpti_gpu_log *log), void *ctx,
                                 kpti_session_error *error);

kpt_status kpti_session_stats(kpti_session *session, kpt_stats *out, kpti_session_error *error);

/* A name that no dump of the session has had, and that no file has: "out.json" becomes out.1.json, out.2.json … */
void kpti_session_number_path(kpti_session *session, const char *path, char *out, size_t size);

/* Notes something of the user's, where the calling thread is. Its time and thread are filled in. Returns its
 * number; 0: it could not be kept, or the session does not record. Any thread, at any time. */
uint32_t kpti_session_note(kpti_session *session, kpti_note note);

/* Frees the recording; afterwards every call but free is refused with KPT_E_HANDLE. */
kpt_status kpti_session_close(kpti_session *session, kpti_session_error *error);

/* Frees the session, closed or not. Nobody may be inside. NULL is fine. */
void kpti_session_free(kpti_session *session);

#ifdef __cplusplus
}
#endif
#endif
