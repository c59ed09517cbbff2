/* extension.h: finds the plugin's extensions by name. */
#ifndef KPTI_PLUGIN_API_EXTENSION_H
#define KPTI_PLUGIN_API_EXTENSION_H

#include "abi/kpt_base.h"

/* Implements kpt_plugin_info.get_extension. */
kpt_status kpti_extension_get(kpt_handle plugin, kpt_str name, void *out);

#endif
