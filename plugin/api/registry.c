#include "plugin/api/registry.h"

#include "plugin/objects/host_binding.h"

/* Stores the text of a failure for the plugin's last_error. */
static kpt_status keep_error(kpt_handle plugin, kpt_status status, const char *text)
{
    kpti_error error;
    if (status == KPT_OK) return status;
    (void)kpti_fail(&error, status, "%s", text);
    return kpti_handle_fail(plugin, status, &error);
}

static kpt_status add(kpt_handle plugin, uint32_t kind, kpt_any_fn make, void *make_ctx,
                      uint64_t *token)
{
    kpti_host_binding *binding = kpti_handle_pin(plugin, &kpti_host_binding_kind);
    kpt_status status;
    if (!binding) return KPT_E_HANDLE;
    status = kpti_registry_add(&binding->registry, kind, make, make_ctx, token);
    status = keep_error(plugin, status,
                        status == KPT_E_INVALID       ? "add: make or token is NULL"
                        : status == KPT_E_UNSUPPORTED ? "add: an unknown kind of factory"
                                                      : "add: too many factories for this host");
    kpti_handle_unpin(plugin);
    return status;
}

static kpt_status take_away(kpt_handle plugin, uint64_t token)
{
    kpti_host_binding *binding = kpti_handle_pin(plugin, &kpti_host_binding_kind);
    kpt_status status;
    if (!binding) return KPT_E_HANDLE;
    status = kpti_registry_remove(&binding->registry, token);
    status =
        keep_error(plugin, status,
                   status == KPT_E_BUSY ? "remove: the factory is in use; call remove again later"
                                        : "remove: no factory has this token");
    kpti_handle_unpin(plugin);
    return status;
}

const kpt_registry kpti_registry_table = {sizeof kpti_registry_table, 0, add, take_away};
