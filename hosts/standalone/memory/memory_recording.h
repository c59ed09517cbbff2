/* memory_recording.h: a recording of memory by the plugin's memory tracer. Plain C without Python.
 *
 *   make ──> start ──> export … ──> stop ──> export, start again … ──> free
 *
 * The plugin guards its object: a second call at the same time returns KPT_E_BUSY. Any thread may call. */
#ifndef KPTI_HOSTS_STANDALONE_MEMORY_MEMORY_RECORDING_H
#define KPTI_HOSTS_STANDALONE_MEMORY_MEMORY_RECORDING_H

#include "hosts/standalone/memory/memory_recording_types.h"
#include "hosts/standalone/session/session_types.h"
#include "writers/memory/memory_history.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens PLUGIN and makes a memory tracer. After KPT_OK the caller frees *OUT. */
kpt_status kpti_recording_make(const char *plugin, const kpt_memory_args *args,
                               kpti_recording **out, kpti_session_error *error);

/* Returns the reason why nothing would be recorded, or NULL if the tracer records. */
const char *kpti_recording_noop_reason(const kpti_recording *recording);

/* Before the first start: from then on the recording is written to PATH, a .kpt file, and not kept in memory. INFO has lines
 * "key=value" about the program. Another call does nothing, but in the child of a fork it begins a new file; that of the user's is
 * the parent's. */
kpt_status kpti_recording_stream(kpti_recording *recording, const char *path,
                                 kpti_recording_kind kind, kpt_str info, kpti_session_error *error);
/* The same, but the recording is written to the stream of SESSION, which must live until the recording is freed. */
kpt_status kpti_recording_join(kpti_recording *recording, kpti_session *session,
                               kpti_session_error *error);
/* Writes what is not yet in the file. Returns KPT_E_IO if the file can't be written. */
kpt_status kpti_recording_flush(kpti_recording *recording, kpti_session_error *error);
/* Removes the spool, which is still read by exports. Does nothing if there is none. */
void kpti_recording_drop_spool(kpti_recording *recording);

/* Refuses a recording that is written to a file of the user's and was stopped. */
kpt_status kpti_recording_start(kpti_recording *recording, kpti_session_error *error);
/* Recording ends in any case. Returns KPT_E_IO if the file lacks a part of it; the stop of a session reports that of its own
 * stream. */
kpt_status kpti_recording_stop(kpti_recording *recording, kpti_session_error *error);

/* Returns 1 if it records in this process; a child of a fork returns 0. Any thread may call it at any time
 * before free. */
int kpti_recording_is_recording(const kpti_recording *recording);

/* Writes the recording to PATH, in the format of its suffix. WANTED: what is in tables, of a recording that is in a file. The
 * tracer may run meanwhile. A failed export leaves no file. If the stream could not be written completely, PATH has what is before, and the call returns KPT_E_IO. */
kpt_status kpti_recording_export(kpti_recording *recording, const kpti_memory_wanted *wanted,
                                 const char *path, kpti_session_error *error);

/* From this call on, SIGTERM writes the recording to PATH, or what is missing in a file of the user's, before it ends the process, unless the program
 * handles SIGTERM. PATH stays the same until kpti_recording_not_at_term. Returns KPT_OK, also if the thread for
 * it could not be started, or KPT_E_IO if the path is too long. */
kpt_status kpti_recording_at_term(kpti_recording *recording, const char *path,
                                  kpti_session_error *error);

/* Returns the memory tracer, for hosts that report to it. It belongs to the recording. */
const kpt_memory_tracer *kpti_recording_tracer(const kpti_recording *recording);

/* SIGTERM no longer writes the recording. If SIGTERM has arrived, this call waits for its export, and so for
 * everything that the export waits for. Call it without the GIL. */
void kpti_recording_not_at_term(kpti_recording *recording);

/* Frees the recorded data. Every later call except free is refused. */
kpt_status kpti_recording_close(kpti_recording *recording, kpti_session_error *error);

/* Frees the recording, closed or not. No thread may be inside it. RECORDING may be NULL. */
void kpti_recording_free(kpti_recording *recording);

#ifdef __cplusplus
}
#endif
#endif
