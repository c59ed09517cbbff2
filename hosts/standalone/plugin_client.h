/* plugin_client.h: opens the plugin, calls its entry and keeps its factories. */
#ifndef KPTI_HOSTS_STANDALONE_PLUGIN_CLIENT_H
#define KPTI_HOSTS_STANDALONE_PLUGIN_CLIENT_H

#include "hosts/standalone/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Must not move between open and close, since the plugin has its address. */
typedef struct kpti_plugin_client {
    kpt_plugin_info info;
    kpt_tracer_make_fn make;
    void *make_ctx;
    kpt_memory_make_fn make_memory; /* NULL if the plugin has none */
    void *make_memory_ctx;
    kpt_observer_make_fn make_observer; /* NULL if the plugin has none */
    void *make_observer_ctx;
    /* The host table's on_task, or NULL if tasks get no number. The caller sets it after open. */
    uint64_t (*on_task)(void *ctx, kpt_str name, kpt_str coroutine);
    void *on_task_ctx;
    kpt_host
        callbacks; /* another host's clock and callbacks, which have its ctx; zero if there are none */
} kpti_plugin_client;

/* Opens PLUGIN. CALLBACKS may be NULL, or have another host's clock and callbacks, whose ctx must outlive CLIENT. The
 * caller closes CLIENT after KPT_OK only. */
kpt_status kpti_plugin_client_open(kpti_plugin_client *client, const char *plugin,
                                   const kpt_host *callbacks, kpti_session_error *error);
void kpti_plugin_client_close(kpti_plugin_client *client);

/* kpti_plugin_client_make makes a tracer that records. kpti_plugin_client_load makes a stopped tracer from the chunks that NEXT
 * returns. */
kpt_status kpti_plugin_client_make(kpti_plugin_client *client, const kpt_tracer_args *args,
                                   kpt_tracer *out, kpti_session_error *error);
kpt_status kpti_plugin_client_load(kpti_plugin_client *client, kpt_next_chunk_fn next,
                                   void *next_ctx, kpt_tracer *out, kpti_session_error *error);
/* Makes a memory tracer, not yet recording. */
kpt_status kpti_plugin_client_make_memory(kpti_plugin_client *client, const kpt_memory_args *args,
                                          kpt_memory_tracer *out, kpti_session_error *error);
/* Writes the execution trace PATH from the JOURNAL of a process that was killed. */
kpt_status kpti_plugin_client_recover(kpti_plugin_client *client, const char *journal,
                                      const char *path, kpti_session_error *error);

#ifdef __cplusplus
}
#endif
#endif
