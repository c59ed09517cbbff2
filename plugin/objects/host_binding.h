/* host_binding.h: the binding of one host to the plugin, from its entry call to detach. It owns the copy of the
 * host's table and the factories that were added for that host. Every object that is made through a binding
 * pins it, so the binding outlives the objects. */
#ifndef KPTI_PLUGIN_OBJECTS_HOST_BINDING_H
#define KPTI_PLUGIN_OBJECTS_HOST_BINDING_H

#include "plugin/objects/factory_list.h"
#include "plugin/objects/handle.h"

typedef struct kpti_bond {
    kpti_env env; /* env.host.name points to name */
    kpt_handle handle;
    kpti_registry registry;
    char name[64];
} kpti_bond;

extern const kpti_kind kpti_bond_kind;

/* Checks a host's table. ERROR receives the reason if the table is refused. */
kpt_status kpti_bond_check_host(const kpt_host *host, kpti_error *error);
/* Makes a binding for HOST, a complete and checked table. */
kpt_status kpti_bond_make(const kpt_host *host, kpti_bond **out, kpti_error *error);
/* Implements kpt_plugin_info.detach. */
kpt_status kpti_bond_detach(kpt_handle self);

/* Converts a binding's handle to the make_ctx that hosts keep, and back. */
void *kpti_bond_ctx(const kpti_bond *bond);
kpt_handle kpti_bond_of_ctx(void *make_ctx);

#endif
