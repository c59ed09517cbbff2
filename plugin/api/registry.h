/* registry.h: the extension KPT_EXT_REGISTRY, with which hosts and libraries add their own factories. */
#ifndef KPTI_PLUGIN_API_REGISTRY_H
#define KPTI_PLUGIN_API_REGISTRY_H

#include "abi/impl/kpti_impl.h"

extern const kpt_registry kpti_registry_table;

#endif
