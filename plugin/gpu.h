/* gpu.h: what the extension KPT_EXT_GPU gives to hosts. */
#ifndef KPTI_GPU_H
#define KPTI_GPU_H

#include "abi/kpt_gpu.h"

extern const kpt_gpu_maker kpti_gpu_table;

#endif
