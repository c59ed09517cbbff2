"""A kernel that CuPy compiles at run time."""

import cupy

import expect

LAUNCHES = 30

kernel = cupy.RawKernel(r"""
extern "C" __global__ void cupy_double(float *values) {
    values[blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}
""", "cupy_double")
values = cupy.ones(1024, dtype=cupy.float32)
for _ in range(LAUNCHES):
    kernel((4,), (256,), (values,))  # LAUNCH
cupy.cuda.Device().synchronize()
expect.tell(__file__, {"cupy_double": LAUNCHES}, {"LAUNCH": LAUNCHES})
