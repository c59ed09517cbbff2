#include "plugin/objects/host_binding.h"

const kpti_kind kpti_bond_kind = {"plugin", NULL};

kpt_status kpti_bond_check_host(const kpt_host *host, kpti_error *error)
{
    if (host->flags || host->tick_flags)
        return kpti_fail(error, KPT_E_UNSUPPORTED,
                         "the host sets flags that this plugin (ABI %d.%d) "
                         "does not know",
                         KPT_ABI_MAJOR, KPT_ABI_MINOR);
    if (!host->register_tracer)
        return kpti_fail(error, KPT_E_INVALID, "the host has no register_tracer");
    if (!host->alloc != !host->dealloc)
        return kpti_fail(error, KPT_E_INVALID,
                         "the host has half an allocator: alloc and dealloc "
                         "come together");
    if (host->tick_source > KPT_TICKS_HOST)
        return kpti_fail(error, KPT_E_UNSUPPORTED, "the host names the unknown tick source %u",
                         host->tick_source);
    if (host->tick_source == KPT_TICKS_HOST && !host->now_ticks)
        return kpti_fail(error, KPT_E_INVALID, "the host's ticks need its now_ticks");
    if (host->name.size && !host->name.data)
        return kpti_fail(error, KPT_E_INVALID, "the host's name has a size but no bytes");
    return KPT_OK;
}

static void free_bond(kpti_bond *bond)
{
    kpti_env env = bond->env; /* a copy: the allocator's table is in the freed memory */
    kpti_free(&env, bond, sizeof *bond);
}

kpt_status kpti_bond_make(const kpt_host *host, kpti_bond **out, kpti_error *error)
{
    kpti_env env = {*host};
    kpti_bond *bond = kpti_alloc(&env, sizeof *bond);
    size_t length = host->name.size < sizeof bond->name ? host->name.size : sizeof bond->name - 1;
    kpt_status status;
    if (!bond) return kpti_fail(error, KPT_E_MEMORY, "no memory for the host's table");
    bond->env = env;
    if (length) memcpy(bond->name, host->name.data, length);
    bond->env.host.name = kpt_str_of(bond->name);
    status = kpti_handle_new(&kpti_bond_kind, bond, "", &bond->handle);
    if (status != KPT_OK) {
        free_bond(bond);
        return kpti_fail(error, status, "too many hosts and tracers in this process");
    }
    *out = bond;
    return KPT_OK;
}

kpt_status kpti_bond_detach(kpt_handle self)
{
    kpti_call call;
    kpt_status status = kpti_call_begin(&call, self, &kpti_bond_kind);
    if (status == KPT_OK) status = kpti_call_end(&call);
    if (status == KPT_OK) free_bond(call.object);
    return status;
}

/* Handles are 64 bits wide, and so are pointers on every platform that this library is built for. */
_Static_assert(sizeof(void *) == sizeof(kpt_handle), "a handle travels as a make_ctx");

void *kpti_bond_ctx(const kpti_bond *bond)
{
    return (void *)bond->handle;
}

kpt_handle kpti_bond_of_ctx(void *make_ctx)
{
    return (kpt_handle)make_ctx;
}
