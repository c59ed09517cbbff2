"""Plays calls of CUDA on the stand-ins of CUPTI and of the driver, from Python."""

import ctypes
import os


class _Call(ctypes.Structure):
    _fields_ = [("runtime", ctypes.c_char_p), ("driver", ctypes.c_char_p), ("kernel", ctypes.c_char_p),
                ("stream", ctypes.c_uint32), ("result", ctypes.c_uint32), ("copy_kind", ctypes.c_uint32),
                ("copy_bytes", ctypes.c_uint64), ("set_bytes", ctypes.c_uint64), ("sync_type", ctypes.c_uint32),
                ("graph", ctypes.c_uint32), ("no_kernel", ctypes.c_uint32), ("own_numbers", ctypes.c_uint32),
                ("context", ctypes.c_void_p)]


def _first_functions(path, table, *types):
    """The functions at the beginning of what the library exports as TABLE."""
    library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    pointers = (ctypes.c_void_p * len(types)).in_dll(library, table)
    return [kind(pointer) for kind, pointer in zip(types, pointers)]


def launcher(cupti, cuda, kernel, stream=0):
    """A function that launches a kernel of that name; before the trace begins. CUDA is in use from now on."""
    os.environ["KPYTRACE_CUPTI"] = cupti
    (reset,) = _first_functions(cuda, "play_cuda_table", ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_int))
    reset(1, 1)
    _, call = _first_functions(cupti, "play_cupti_table", ctypes.CFUNCTYPE(None),
                               ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.POINTER(_Call)))
    played = ctypes.byref(_Call(driver=b"cuLaunchKernel", kernel=kernel.encode(), stream=stream))
    return lambda: call(played)
