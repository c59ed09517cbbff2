/* memory_recording.h: a recording of memory by the plugin's memory tracer. Plain C; no Python is known here.
 *
 *   make ──> start ──> export … ──> stop ──> export, start again … ──> free
 *
 * The plugin guards its object: a second call at the same time is answered with KPT_E_BUSY. Any thread. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_MEMORY_RECORDING_H
#define KPTI_HOSTS_STANDALONE_SESSION_MEMORY_RECORDING_H

#include "hosts/standalone/plugin_client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_recording kpti_recording;

/* Opens PLUGIN and makes a memory tracer. On KPT_OK *OUT is to be freed. */
kpt_status kpti_recording_make(const char *plugin, const kpt_memory_args *args,
                               kpti_recording **out, kpti_session_error *error);

/* Why it would record nothing; NULL: it does record. */
const char *kpti_recording_noop_reason(const kpti_recording *recording);

kpt_status kpti_recording_start(kpti_recording *recording, kpti_session_error *error);
kpt_status kpti_recording_stop(kpti_recording *recording, kpti_session_error *error);

/* Whether it records, in this process: not in the child of a fork. Any thread, at any time before free. */
int kpti_recording_is_recording(const kpti_recording *recording);

/* Writes what is held to PATH, in the format that its suffix names; it may run meanwhile. A failed export
 * leaves no file. */
kpt_status kpti_recording_export(kpti_recording *recording, const char *path,
                                 kpti_session_error *error);

/* From now on SIGTERM, unless the program handles it, has what is held written to PATH before it ends the process.
 * PATH stays the same until kpti_recording_not_at_term. Returns KPT_OK, also where no thread could be started for
 * it, or KPT_E_IO for a path that is too long. */
kpt_status kpti_recording_at_term(kpti_recording *recording, const char *path,
                                  kpti_session_error *error);

/* The memory tracer itself, for who reports to it; the recording's. */
const kpt_memory_tracer *kpti_recording_tracer(const kpti_recording *recording);

/* SIGTERM does so no more. It waits for one that has come, and so for all that this waits for: without the GIL. */
void kpti_recording_not_at_term(kpti_recording *recording);

/* Gives back what is held; every call but this one is refused afterwards. */
kpt_status kpti_recording_close(kpti_recording *recording, kpti_session_error *error);

/* Frees it, closed or not. Nobody may be inside. NULL is fine. */
void kpti_recording_free(kpti_recording *recording);

#ifdef __cplusplus
}
#endif
#endif
