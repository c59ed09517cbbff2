/* host_binding.h: the binding of one host to the plugin, from its entry call to detach. It owns the copy of the
 * host's table and the factories that were added for that host. Every object that is made through a binding
 * pins it, so the binding outlives the objects. */
#ifndef KPTI_PLUGIN_OBJECTS_HOST_BINDING_H
#define KPTI_PLUGIN_OBJECTS_HOST_BINDING_H

#include "plugin/objects/factory_list.h"
#include "plugin/objects/handle.h"

typedef struct kpti_host_binding {
    kpti_env env; /* env.host.name points to name */
    kpt_handle handle;
    kpti_registry registry;
    char name[64];
} kpti_host_binding;

extern const kpti_handle_kind kpti_host_binding_kind;

/* Checks a host's table. ERROR receives the reason if the table is refused. */
kpt_status kpti_host_binding_check_host(const kpt_host *host, kpti_error *error);
/* Makes a binding for HOST, a complete and checked table. */
kpt_status kpti_host_binding_make(const kpt_host *host, kpti_host_binding **out, kpti_error *error);
/* Implements kpt_plugin_info.detach. */
kpt_status kpti_host_binding_detach(kpt_handle self);

/* Converts a binding's handle to the make_ctx that hosts keep, and back. */
void *kpti_host_binding_ctx(const kpti_host_binding *binding);
kpt_handle kpti_host_binding_of_ctx(void *make_ctx);

#endif
