#include "plugin/objects/host_binding.h"

const kpti_handle_kind kpti_host_binding_kind = {"plugin", NULL};

kpt_status kpti_host_binding_check_host(const kpt_host *host, kpti_error *error)
{
    if (host->flags || host->tick_flags)
        return kpti_fail(error, KPT_E_UNSUPPORTED,
                         "the host sets flags that this plugin (ABI %d.%d) "
                         "does not know",
                         KPT_ABI_MAJOR, KPT_ABI_MINOR);
    if (!host->register_tracer)
        return kpti_fail(error, KPT_E_INVALID, "the host has no register_tracer");
    if (!host->alloc != !host->dealloc)
        return kpti_fail(
            error, KPT_E_INVALID,
            "the host has an incomplete allocator: set both alloc and dealloc, or neither");
    if (host->tick_source > KPT_TICKS_HOST)
        return kpti_fail(error, KPT_E_UNSUPPORTED, "the host's tick_source %u is unknown",
                         host->tick_source);
    if (host->tick_source == KPT_TICKS_HOST && !host->now_ticks)
        return kpti_fail(error, KPT_E_INVALID,
                         "the host's tick_source is KPT_TICKS_HOST, but its now_ticks is NULL");
    if (host->name.size && !host->name.data)
        return kpti_fail(error, KPT_E_INVALID, "the host's name has a size, but its data is NULL");
    return KPT_OK;
}

static void free_binding(kpti_host_binding *binding)
{
    kpti_env env = binding->env; /* a copy: the allocator's table is in the freed memory */
    kpti_free(&env, binding, sizeof *binding);
}

kpt_status kpti_host_binding_make(const kpt_host *host, kpti_host_binding **out, kpti_error *error)
{
    kpti_env env = {*host};
    kpti_host_binding *binding = kpti_alloc(&env, sizeof *binding);
    size_t length =
        host->name.size < sizeof binding->name ? host->name.size : sizeof binding->name - 1;
    kpt_status status;
    if (!binding) return kpti_fail(error, KPT_E_MEMORY, "no memory for the host's table");
    binding->env = env;
    if (length) memcpy(binding->name, host->name.data, length);
    binding->env.host.name = kpt_str_of(binding->name);
    status = kpti_handle_new(&kpti_host_binding_kind, binding, "", &binding->handle);
    if (status != KPT_OK) {
        free_binding(binding);
        return kpti_fail(error, status, "too many hosts and tracers in this process");
    }
    *out = binding;
    return KPT_OK;
}

kpt_status kpti_host_binding_detach(kpt_handle self)
{
    kpti_call call;
    kpt_status status = kpti_call_begin(&call, self, &kpti_host_binding_kind);
    if (status == KPT_OK) status = kpti_call_end(&call);
    if (status == KPT_OK) free_binding(call.object);
    return status;
}

/* Handles are 64 bits wide, and so are pointers on every platform that this library is built for. */
_Static_assert(sizeof(void *) == sizeof(kpt_handle), "a handle travels as a make_ctx");

void *kpti_host_binding_ctx(const kpti_host_binding *binding)
{
    return (void *)binding->handle;
}

kpt_handle kpti_host_binding_of_ctx(void *make_ctx)
{
    return (kpt_handle)make_ctx;
}
