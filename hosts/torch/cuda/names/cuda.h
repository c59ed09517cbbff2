/* cuda.h: see cuda_runtime_api.h */
#include "hosts/torch/cuda/names/cuda_runtime_api.h"
