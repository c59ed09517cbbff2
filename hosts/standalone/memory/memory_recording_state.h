/* memory_recording_state.h: what a recording of memory has, for memory_recording.c, which calls the tracer, and
 * memory_destination.c, which receives what the tracer records and makes outputs of it. */
#ifndef KPTI_HOSTS_STANDALONE_MEMORY_MEMORY_RECORDING_STATE_H
#define KPTI_HOSTS_STANDALONE_MEMORY_MEMORY_RECORDING_STATE_H

#include <limits.h>
#include <stdatomic.h>
#include <unistd.h>

#include "hosts/standalone/background/sigterm_flush.h"
#include "hosts/standalone/memory/memory_recording_types.h"
#include "hosts/standalone/plugin_client.h"
#include "hosts/standalone/session/session_types.h"
#include "writers/kpt/kpt_writer.h"
#include "writers/memory/memory_aggregate.h"
#include "writers/memory/memory_history.h"

struct kpti_recording {
    kpti_plugin_client client;
    kpt_memory_tracer tracer;
    char noop_reason[256];
    _Atomic pid_t recording_pid; /* the process that is recorded; 0 while it does not record */
    kpti_sigterm_flush sigterm_flush;
    _Atomic int is_leaving; /* the SIGTERM thread exports */
    char term_path[PATH_MAX];
    kpti_recording_kind kind; /* the next seven: only if it is written while it runs */
    pid_t stream_pid;         /* 0: it is kept in memory */
    int stream_open;
    int is_named;                     /* the spool is still at its path */
    _Atomic int stream_error;         /* an errno: the tracer delivers nothing more */
    kpti_session *session;            /* it has the stream, or NULL */
    kpti_memory_aggregate *aggregate; /* instead of a file, for its kind */
    kpti_kpt_writer stream;
    char stream_path[PATH_MAX];
};

/* Returns STATUS. Unless it is KPT_OK, ERROR receives WHAT and the plugin's text. */
kpt_status kpti_recording_status(const kpti_recording *recording, kpt_status status,
                                 const char *what, kpti_session_error *error);

/* Whether the recording is written to a file of the user's, which is complete when the recording is stopped. */
int kpti_recording_is_of_user(kpti_recording_kind kind);

/* Ends the file of the user's. Returns KPT_E_IO if it lacks a part of the recording. */
kpt_status kpti_recording_end_stream(kpti_recording *recording, kpti_session_error *error);

/* Makes PATH from what was written so far. */
kpt_status kpti_recording_convert(kpti_recording *recording, const kpti_memory_wanted *wanted,
                                  const char *path, kpti_session_error *error);

/* Frees what the recording is written to. In the child of a fork the file is the parent's. */
void kpti_recording_leave_stream(kpti_recording *recording);

#endif
