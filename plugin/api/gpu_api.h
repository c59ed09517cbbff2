/* gpu_api.h: the function table of the extension KPT_EXT_GPU. */
#ifndef KPTI_PLUGIN_API_GPU_API_H
#define KPTI_PLUGIN_API_GPU_API_H

#include "abi/kpt_gpu.h"
#include "plugin/objects/object_factory.h"

extern const kpt_gpu_maker kpti_gpu_table;

/* The product of the table's make function. */
extern const kpti_object_class kpti_gpu_class;

#endif
