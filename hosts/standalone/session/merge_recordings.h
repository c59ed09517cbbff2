/* merge_recordings.h: several recordings, one after the other, in one file: a process each. Memory is bounded by that
 * of one recording.
 *
 *   open ──> add, add, … ──> close
 *
 * One thread at a time; no GIL. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_MERGE_RECORDINGS_H
#define KPTI_HOSTS_STANDALONE_SESSION_MERGE_RECORDINGS_H

#include "hosts/standalone/session/session_types.h"
#include "writers/annotations/clock_shift.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_merge kpti_merge;

/* A recording's process, and how its clock becomes the file's.
 * Strings are needed during add only. */
typedef struct kpti_merge_part {
    uint32_t pid; /* no other part's; 0: that which was recorded */
    kpt_str name;
    kpt_str label; /* empty: none */
    kpti_clock_shift clock;
} kpti_merge_part;

/* A file at PATH, in the format of its suffix, whose times are since BASE_NS. Nothing is opened before the
 * first add. KPT_E_UNSUPPORTED: the format has one process only. */
kpt_status kpti_merge_open(const char *path, int64_t base_ns, kpti_merge **out,
                           kpti_session_error *error);

/* Writes what SESSION has recorded. After a failure of the file, as against one of the session, there is
 * nothing more to be added. */
kpt_status kpti_merge_add(kpti_merge *merge, kpti_session *session, const kpti_merge_part *part,
                          const kpti_session_watch *watch, kpti_session_error *error);

/* Ends the file, if KEEP says so and something came; otherwise nothing is left. Frees MERGE in any case;
 * NULL is fine. */
kpt_status kpti_merge_close(kpti_merge *merge, int keep, kpti_session_count *count,
                            kpti_session_error *error);

#ifdef __cplusplus
}
#endif
#endif
