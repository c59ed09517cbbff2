/* gpu_api.h: what the extension KPT_EXT_GPU gives to hosts. */
#ifndef KPTI_PLUGIN_API_GPU_API_H
#define KPTI_PLUGIN_API_GPU_API_H

#include "abi/kpt_gpu.h"

extern const kpt_gpu_maker kpti_gpu_table;

#endif
