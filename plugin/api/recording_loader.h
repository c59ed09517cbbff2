/* recording_loader.h: the function table of the extension KPT_EXT_LOADER. */
#ifndef KPTI_PLUGIN_API_RECORDING_LOADER_H
#define KPTI_PLUGIN_API_RECORDING_LOADER_H

#include "abi/kpt_loader.h"

extern const kpt_loader kpti_loader_table;

#endif
