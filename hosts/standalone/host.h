/* host.h: the embedded host: it opens the plugin through the same door as every other host, makes
 * one tracer, and has its recording written to a file. Plain C: no Python is known here, so that it
 * can be tested, and used, without one; module.c makes it a Python module.
 *
 *   start ──> stop ──> write, count, stats (any number of times) ──> free
 *
 * A session is used by one call at a time; a second, also from a callback of the first, is answered
 * with KPT_E_BUSY. No function here needs or takes the GIL, but start's tracer does: see the ABI's
 * make. */
#ifndef KPTI_STANDALONE_HOST_H
#define KPTI_STANDALONE_HOST_H

#include "kpt.h"
#include "out_file.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_session kpti_session;

/* Why a call failed. */
typedef struct kpti_session_error {
    kpt_status status;
    int os_error;   /* an errno, where a file could not be written; else 0 */
    char text[512]; /* for people: what failed, and the plugin's own words */
} kpti_session_error;

enum { KPTI_SESSION_GC = 1 << 0 }; /* garbage collections are recorded too */

/* Opens PLUGIN, makes a tracer with ARGS and has it run. On KPT_OK *OUT is to be freed. */
kpt_status kpti_session_start(const char *plugin, const kpt_tracer_args *args, uint32_t flags,
                              kpti_session **out, kpti_session_error *error);

/* Why the tracer records nothing; NULL: it does record. */
const char *kpti_session_noop_reason(const kpti_session *session);

/* Ends recording. A tracer that has ended by itself (at exit, in the child of a fork) is fine. */
kpt_status kpti_session_stop(kpti_session *session, kpti_session_error *error);

/* What was delivered. */
typedef struct kpti_session_count {
    uint64_t calls;
    uint64_t names;
    uint64_t threads;
    uint64_t bytes; /* of the file */
} kpti_session_count;

/* Writes the recording of a stopped session to PATH, in the format that its suffix stands for (see
 * writer.h), compressed where PATH ends in ".gz". INTERRUPTED may be NULL. */
kpt_status kpti_session_write(kpti_session *session, const char *path,
                              kpti_interrupted_fn interrupted, void *interrupted_ctx,
                              kpti_session_count *count, kpti_session_error *error);

/* The same without a file. */
kpt_status kpti_session_count_calls(kpti_session *session, kpti_session_count *count,
                                    kpti_session_error *error);

kpt_status kpti_session_stats(kpti_session *session, kpt_stats *out, kpti_session_error *error);

/* Frees the recording; afterwards every call but free is refused with KPT_E_HANDLE. */
kpt_status kpti_session_close(kpti_session *session, kpti_session_error *error);

/* Frees the session, closed or not. Nobody may be inside. NULL is fine. */
void kpti_session_free(kpti_session *session);

#ifdef __cplusplus
}
#endif
#endif
