/* merge_recordings.h: writes several recordings, one after the other, to one file, each as a process. Memory
 * use is bounded by that of one recording.
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

/* A recording's process, and the conversion of its clock to the file's clock. Strings are read only during add. */
typedef struct kpti_merge_part {
    uint32_t pid; /* unique in the file; 0 for the recorded pid */
    kpt_str name;
    kpt_str label; /* empty if there is none */
    kpti_clock_shift clock;
} kpti_merge_part;

/* Describes a file at PATH, in the format of its suffix, whose times begin at BASE_NS. The file is opened by
 * the first add. Returns KPT_E_UNSUPPORTED if the format has one process only. */
kpt_status kpti_merge_open(const char *path, int64_t base_ns, kpti_merge **out,
                           kpti_session_error *error);

/* Writes the recording of SESSION. After a failure of the file (not of the session) nothing more can be added. */
kpt_status kpti_merge_add(kpti_merge *merge, kpti_session *session, const kpti_merge_part *part,
                          const kpti_session_watch *watch, kpti_session_error *error);

/* Completes the file if KEEP is set and something was added; otherwise no file is left. Frees MERGE in any
 * case. MERGE may be NULL. */
kpt_status kpti_merge_close(kpti_merge *merge, int keep, kpti_session_count *count,
                            kpti_session_error *error);

#ifdef __cplusplus
}
#endif
#endif
