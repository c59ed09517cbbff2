/* cuda.h: see cuda_runtime_api.h */
#include "hosts/torch/memory/cuda/stub_headers/cuda_runtime_api.h"
