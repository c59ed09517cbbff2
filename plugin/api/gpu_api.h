/* gpu_api.h: what the extension KPT_EXT_GPU gives to hosts. */
#ifndef KPTI_PLUGIN_API_GPU_API_H
#define KPTI_PLUGIN_API_GPU_API_H

#include "abi/kpt_gpu.h"
#include "plugin/objects/object_factory.h"

extern const kpt_gpu_maker kpti_gpu_table;

/* The product that its make function makes. */
extern const kpti_product kpti_gpu_product;

#endif
