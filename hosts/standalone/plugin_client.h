/* plugin_client.h: the plugin, opened: its entry called, its factories kept. */
#ifndef KPTI_HOSTS_STANDALONE_PLUGIN_CLIENT_H
#define KPTI_HOSTS_STANDALONE_PLUGIN_CLIENT_H

#include "hosts/standalone/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stays where it is from open to close: the plugin knows its address. */
typedef struct kpti_door {
    kpt_plugin_info info;
    kpt_tracer_make_fn make;
    void *make_ctx;
    kpt_memory_make_fn make_memory; /* NULL: the plugin has none */
    void *make_memory_ctx;
    kpt_observer_make_fn make_observer; /* NULL: the plugin has none */
    void *make_observer_ctx;
    /* As the host table's on_task; NULL: tasks get no number. The caller's to set, after open. */
    uint64_t (*on_task)(void *ctx, kpt_str name, kpt_str coroutine);
    void *on_task_ctx;
} kpti_door;

/* Opens PLUGIN. To be closed after KPT_OK only. */
kpt_status kpti_door_open(kpti_door *door, const char *plugin, kpti_session_error *error);
void kpti_door_close(kpti_door *door);

/* Makes a tracer that records; one that has stopped, of the chunks that NEXT gives. */
kpt_status kpti_door_make(kpti_door *door, const kpt_tracer_args *args, kpt_tracer *out,
                          kpti_session_error *error);
kpt_status kpti_door_load(kpti_door *door, kpt_next_chunk_fn next, void *next_ctx, kpt_tracer *out,
                          kpti_session_error *error);
/* Makes a memory tracer, not yet recording. */
kpt_status kpti_door_make_memory(kpti_door *door, const kpt_memory_args *args,
                                 kpt_memory_tracer *out, kpti_session_error *error);
/* Makes the execution trace PATH of a JOURNAL whose process was killed. */
kpt_status kpti_door_recover(kpti_door *door, const char *journal, const char *path,
                             kpti_session_error *error);

#ifdef __cplusplus
}
#endif
#endif
