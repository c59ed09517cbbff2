#include "hosts/standalone/plugin_client.h"

#include <dlfcn.h>

static kpt_status register_tracer(void *ctx, kpt_tracer_make_fn make, void *make_ctx)
{
    kpti_plugin_client *client = ctx;
    client->make = make;
    client->make_ctx = make_ctx;
    return KPT_OK;
}

static kpt_status register_memory_tracer(void *ctx, kpt_memory_make_fn make, void *make_ctx)
{
    kpti_plugin_client *client = ctx;
    client->make_memory = make;
    client->make_memory_ctx = make_ctx;
    return KPT_OK;
}

static kpt_status register_observer(void *ctx, kpt_observer_make_fn make, void *make_ctx)
{
    kpti_plugin_client *client = ctx;
    client->make_observer = make;
    client->make_observer_ctx = make_ctx;
    return KPT_OK;
}

static uint64_t on_task(void *ctx, kpt_str name, kpt_str coroutine)
{
    const kpti_plugin_client *client = ctx;
    return client->on_task ? client->on_task(client->on_task_ctx, name, coroutine) : 0;
}

static uint64_t attach_thread(void *ctx, uint64_t os_tid)
{
    const kpt_host *host = &((const kpti_plugin_client *)ctx)->callbacks;
    return host->thread_attach(host->ctx, os_tid);
}

static uint64_t watched_call(void *ctx, uint64_t watch, void *self, uint64_t call_id)
{
    const kpt_host *host = &((const kpti_plugin_client *)ctx)->callbacks;
    return host->on_watched_call(host->ctx, watch, self, call_id);
}

static kpt_plugin_entry_fn find_entry(const char *plugin, kpti_session_error *error)
{
    kpt_plugin_entry_fn entry = NULL;
    /* Never closed: plugins stay loaded, and the loader counts repeated opens. */
    void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        (void)kpti_session_fail(error, KPT_E_INVALID, "the plugin can't be loaded: %s", dlerror());
        return NULL;
    }
    *(void **)&entry = dlsym(library, KPT_PLUGIN_ENTRY_NAME);
    if (!entry)
        (void)kpti_session_fail(error, KPT_E_INVALID,
                                "%s is not a plugin of ABI %d: it does not export %s", plugin,
                                KPT_ABI_MAJOR, KPT_PLUGIN_ENTRY_NAME);
    return entry;
}

kpt_status kpti_plugin_client_open(kpti_plugin_client *client, const char *plugin,
                                   const kpt_host *callbacks, kpti_session_error *error)
{
    kpt_plugin_entry_fn entry = find_entry(plugin, error);
    kpt_host host;
    kpt_status status;
    memset(client, 0, sizeof *client);
    if (!entry) return error->status;
    KPT_INIT(&host);
    host.ctx = client;
    host.name = kpt_str_of("kpytrace");
    host.register_tracer = register_tracer;
    host.register_memory_tracer = register_memory_tracer;
    host.register_observer = register_observer;
    host.on_task = on_task;
    if (callbacks) {
        client->callbacks = *callbacks;
        host.tick_source = callbacks->tick_source;
        if (callbacks->name.size) host.name = callbacks->name;
        if (callbacks->thread_attach) host.thread_attach = attach_thread;
        if (callbacks->on_watched_call) host.on_watched_call = watched_call;
    }
    KPT_INIT(&client->info);
    status = entry(&host, &client->info);
    if (status != KPT_OK)
        return kpti_session_fail_of(error, status, "the plugin refused this host",
                                    client->info.last_error, 0);
    if (client->make) return KPT_OK;
    kpti_plugin_client_close(client);
    return kpti_session_fail(error, KPT_E_INTERNAL, "%s registered no tracer factory", plugin);
}

void kpti_plugin_client_close(kpti_plugin_client *client)
{
    (void)client->info.detach(client->info.self);
}

kpt_status kpti_plugin_client_make(kpti_plugin_client *client, const kpt_tracer_args *args,
                                   kpt_tracer *out, kpti_session_error *error)
{
    kpt_status status;
    KPT_INIT(out);
    status = client->make(client->make_ctx, args, out);
    if (status == KPT_OK) return status;
    return kpti_session_fail_of(error, status, "cannot make a tracer", client->info.last_error,
                                client->info.self);
}

kpt_status kpti_plugin_client_load(kpti_plugin_client *client, kpt_next_chunk_fn next,
                                   void *next_ctx, kpt_tracer *out, kpti_session_error *error)
{
    kpt_loader loader;
    kpt_load_args args;
    kpt_status status;
    KPT_INIT(&loader);
    KPT_INIT(&args);
    KPT_INIT(out);
    args.next = next;
    args.next_ctx = next_ctx;
    status = client->info.get_extension(client->info.self, kpt_str_of(KPT_EXT_LOADER), &loader);
    if (status == KPT_OK) status = loader.load(client->info.self, &args, out);
    if (status == KPT_OK) return status;
    return kpti_session_fail_of(error, status, "the recording can't be loaded",
                                client->info.last_error, client->info.self);
}

kpt_status kpti_plugin_client_make_memory(kpti_plugin_client *client, const kpt_memory_args *args,
                                          kpt_memory_tracer *out, kpti_session_error *error)
{
    kpt_status status;
    KPT_INIT(out);
    if (!client->make_memory)
        return kpti_session_fail(error, KPT_E_STATE, "this plugin has no memory tracer");
    status = client->make_memory(client->make_memory_ctx, args, out);
    if (status == KPT_OK) return status;
    return kpti_session_fail_of(error, status, "cannot make a memory tracer",
                                client->info.last_error, client->info.self);
}

kpt_status kpti_plugin_client_recover(kpti_plugin_client *client, const char *journal,
                                      const char *path, kpti_session_error *error)
{
    kpt_observer_args args;
    kpt_observer observer;
    kpt_status status;
    KPT_INIT(&args);
    KPT_INIT(&observer);
    if (!client->make_observer)
        return kpti_session_fail(error, KPT_E_STATE, "this plugin has no observer");
    status = client->make_observer(client->make_observer_ctx, &args, &observer);
    if (status != KPT_OK)
        return kpti_session_fail_of(error, status, "cannot make an observer",
                                    client->info.last_error, client->info.self);
    if (KPT_HAS(observer.ops, kpt_observer_ops, recover))
        status = observer.ops->recover(observer.self, kpt_str_of(journal), kpt_str_of(path));
    else
        status = KPT_E_UNSUPPORTED;
    if (status != KPT_OK)
        (void)kpti_session_fail_of(error, status, "the journal can't be recovered",
                                   observer.ops->last_error, observer.self);
    (void)observer.ops->destroy(observer.self);
    return status;
}
