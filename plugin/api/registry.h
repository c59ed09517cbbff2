/* registry.h: the extension KPT_EXT_REGISTRY: hosts and libraries add factories of their own. */
#ifndef KPTI_PLUGIN_API_REGISTRY_H
#define KPTI_PLUGIN_API_REGISTRY_H

#include "abi/impl/kpti_impl.h"

extern const kpt_registry kpti_registry_table;

#endif
