"""A kernel in PTX through the driver alone: no runtime, no package."""

import ctypes

import expect

PTX = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry spin_kernel(.param .u64 out, .param .u32 count)
{
    .reg .pred %p;
    .reg .u32 %r<4>;
    .reg .u64 %d;
    ld.param.u64 %d, [out];
    ld.param.u32 %r0, [count];
    mov.u32 %r1, 1;
    mov.u32 %r2, 0;
LOOP:
    mad.lo.u32 %r1, %r1, 1664525, 1013904223;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, %r0;
    @%p bra LOOP;
    st.global.u32 [%d], %r1;
    ret;
}
"""
SHORT, LONG = 40, 20

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status:
        raise RuntimeError(f"{name}: {status}")


def setup():
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    function, memory = ctypes.c_void_p(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    call("cuModuleGetFunction", ctypes.byref(function), module, b"spin_kernel")
    call("cuMemAlloc_v2", ctypes.byref(memory), 1024)
    return function, memory


def arguments_of(memory, count):
    number = ctypes.c_uint32(count)
    array = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(number))
    return number, array


def short(function, memory):
    number, array = arguments_of(memory, 10)
    for _ in range(SHORT):
        cuda.cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, None, array, None)  # SHORT
    call("cuCtxSynchronize")


def long(function, memory):
    number, array = arguments_of(memory, 2000000)
    begin, end, ms = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
    for event in (begin, end):
        call("cuEventCreate", ctypes.byref(event), 0)
    call("cuEventRecord", begin, None)
    for _ in range(LONG):
        cuda.cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, None, array, None)  # LONG
    call("cuEventRecord", end, None)
    call("cuCtxSynchronize")
    call("cuEventElapsedTime", ctypes.byref(ms), begin, end)
    return ms.value


function, memory = setup()
short(function, memory)
ms = long(function, memory)
expect.tell(__file__, {"spin_kernel": SHORT + LONG}, {"SHORT": SHORT, "LONG": LONG}, {"LONG": ms})
