/* entry.c: the entry point. It checks the host's table, makes the binding, registers the factories and returns
 * the plugin's info. The only exported symbol of the library is here. */
#include "plugin/api/extension.h"
#include "plugin/api/memory_api.h"
#include "plugin/api/observer_api.h"
#include "plugin/api/tracer_api.h"
#include "plugin/base/verbose_log.h"
#include "plugin/objects/host_binding.h"
#include "plugin/objects/struct_size.h"

static kpt_status make_tracer(void *make_ctx, const kpt_tracer_args *args, kpt_tracer *out)
{
    return kpti_object_make(&kpti_tracer_class, kpti_host_binding_of_ctx(make_ctx), args, out);
}

static kpt_status make_memory(void *make_ctx, const kpt_memory_args *args, kpt_memory_tracer *out)
{
    return kpti_object_make(&kpti_memory_class, kpti_host_binding_of_ctx(make_ctx), args, out);
}

static kpt_status make_observer(void *make_ctx, const kpt_observer_args *args, kpt_observer *out)
{
    return kpti_object_make(&kpti_observer_class, kpti_host_binding_of_ctx(make_ctx), args, out);
}

/* Logs the result for one of the two optional kinds. A host without such a register function is not an error,
 * and neither is a refusal. */
static void note_optional(const kpt_host *host, const char *noun, int offered, kpt_status status)
{
    if (!offered)
        kpti_say(host, KPT_LOG_DEBUG,
                 "entry: the host has no function to register a factory of type %s", noun);
    else if (status == KPT_OK)
        kpti_say(host, KPT_LOG_DEBUG, "entry: registered the %s factory", noun);
    else
        kpti_say(host, KPT_LOG_WARNING, "entry: the host refused the %s factory: %s", noun,
                 kpt_status_name(status));
}

static kpt_status register_factories(const kpti_host_binding *binding, kpti_error *error)
{
    const kpt_host *host = &binding->env.host;
    void *ctx = kpti_host_binding_ctx(binding);
    kpt_status status = host->register_tracer(host->ctx, make_tracer, ctx);
    if (status != KPT_OK)
        return kpti_fail(error, status, "the host refused the tracer factory: %s",
                         kpt_status_name(status));
    kpti_say(host, KPT_LOG_DEBUG, "entry: registered the tracer factory");
    if (host->register_memory_tracer)
        status = host->register_memory_tracer(host->ctx, make_memory, ctx);
    note_optional(host, "memory tracer", host->register_memory_tracer != NULL, status);
    if (host->register_observer) status = host->register_observer(host->ctx, make_observer, ctx);
    note_optional(host, "observer", host->register_observer != NULL, status);
    return KPT_OK;
}

/* Copies and checks the host's table, makes the binding, and registers the factories with the host. A binding
 * whose tracer factory the host refuses is detached. */
static kpt_status bind_host(const kpt_host *theirs, kpti_host_binding **out, kpti_error *error)
{
    kpt_host host;
    kpti_host_binding *binding = NULL;
    kpt_status status = kpti_size_read(&host, sizeof host, theirs, KPT_HOST_V1_SIZE);
    if (status != KPT_OK)
        return kpti_fail(error, status,
                         "the host's table is NULL, or its struct_size below the %u of "
                         "ABI 1.0",
                         KPT_HOST_V1_SIZE);
    status = kpti_host_binding_check_host(&host, error);
    if (status == KPT_OK) status = kpti_host_binding_make(&host, &binding, error);
    if (status != KPT_OK) return status;
    kpti_say(&host, KPT_LOG_DEBUG,
             "entry: kpytrace %s, ABI %d.%d, host \"%s\" with %u of %u bytes of "
             "its table",
             KPTI_VERSION, KPT_ABI_MAJOR, KPT_ABI_MINOR, binding->name, host.struct_size,
             (unsigned)sizeof host);
    status = register_factories(binding, error);
    if (status != KPT_OK)
        (void)kpti_host_binding_detach(binding->handle);
    else
        *out = binding;
    return status;
}

__attribute__((visibility("default"))) kpt_status kpt_plugin_entry_v1(const kpt_host *host,
                                                                      kpt_plugin_info *out);

kpt_status kpt_plugin_entry_v1(const kpt_host *host, kpt_plugin_info *out)
{
    kpt_plugin_info info;
    kpti_host_binding *binding = NULL;
    kpti_error error = {""};
    kpt_status status = kpti_size_check(out, KPT_PLUGIN_INFO_V1_SIZE);
    kpti_say_configure();
    if (status == KPT_OK)
        status = bind_host(host, &binding, &error);
    else
        (void)kpti_fail(&error, status,
                        "the info struct is NULL, or its struct_size below the %u of "
                        "ABI 1.0",
                        KPT_PLUGIN_INFO_V1_SIZE);
    if (status != KPT_OK) {
        kpti_say(NULL, KPT_LOG_ERROR, "entry: refused: %s", error.text);
        (void)kpti_handle_fail(0, status, &error);
        if (kpti_size_check(out, KPT_PLUGIN_INFO_V1_SIZE) != KPT_OK) return status;
    }
    KPT_INIT(&info);
    info.last_error = kpti_handle_last_error;
    if (binding) {
        kpti_handles_watch_fork();
        info.abi_minor = KPT_ABI_MINOR;
        info.self = binding->handle;
        info.name = kpt_str_of("kpytrace");
        info.version = kpt_str_of(KPTI_VERSION);
        info.get_extension = kpti_extension_get;
        info.detach = kpti_host_binding_detach;
    }
    kpti_size_write(out, &info, sizeof info);
    return status;
}
