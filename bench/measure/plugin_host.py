"""A host in Python for the benchmarks: makes tracers through the plugin's C entry, with ctypes.

    plugin = Plugin("build/release/libkpytrace.so")
    tracer = plugin.make()
    ...
    tracer.stop(); print(tracer.stats().events); tracer.destroy()

Declares only the structs and functions that the benchmarks need; the layout is that of abi/kpt_tracer.h.
"""
import ctypes
from ctypes import CFUNCTYPE, POINTER, addressof, byref, c_char_p, c_int32, c_uint32, c_uint64, c_void_p

NO_C_CALLS = 1
EXCLUDE = 2
FILE_PREFIX = 1

RegisterFn = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)
LastErrorFn = CFUNCTYPE(c_int32, c_uint64, c_char_p, c_uint64, c_void_p)
MakeFn = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)
SelfFn = CFUNCTYPE(c_int32, c_uint64)
SelfOutFn = CFUNCTYPE(c_int32, c_uint64, c_void_p)


class Str(ctypes.Structure):
    _fields_ = [("data", c_char_p), ("size", c_uint64)]


class Host(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("ctx", c_void_p), ("name", Str),
                ("register_tracer", RegisterFn), ("rest", c_uint64 * 9)]


class Info(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("abi_minor", c_uint32), ("self", c_uint64),
                ("name", Str), ("version", Str), ("last_error", LastErrorFn),
                ("get_extension", c_void_p), ("detach", SelfFn)]


class Filter(ctypes.Structure):
    _fields_ = [("action", c_uint32), ("match", c_uint32), ("pattern", Str)]


class Args(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("on_full", c_uint32),
                ("tool_id", c_uint32), ("budgets", c_uint64 * 5), ("max_depth", c_uint32),
                ("overhead_permille", c_uint32), ("filters", c_void_p), ("filter_count", c_uint32),
                ("filter_stride", c_uint32), ("watches", c_void_p), ("watch_count", c_uint32),
                ("watch_stride", c_uint32), ("chunk_sink", c_void_p)]


class Ops(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("stop", SelfFn),
                ("restart", SelfFn), ("register_gc_callback", SelfFn), ("get_events", c_void_p),
                ("snapshot", c_void_p), ("get_stats", SelfOutFn), ("last_error", LastErrorFn),
                ("get_extension", c_void_p), ("destroy", SelfFn)]


class Made(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("ops", POINTER(Ops)),
                ("self", c_uint64)]


class Stats(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("state", c_uint32), ("events", c_uint64),
                ("bytes_held", c_uint64), ("events_dropped", c_uint64), ("rest", c_uint64 * 7)]


def sized(struct):
    value = struct()
    value.struct_size = ctypes.sizeof(struct)
    return value


class Tracer:
    """A running tracer."""

    def __init__(self, made):
        ops = made.ops.contents
        self.handle, self._ops = made.self, ops
        self._stop, self._destroy = ops.stop, ops.destroy

    def stop(self):
        self._stop(self.handle)

    def destroy(self):
        self._destroy(self.handle)

    def stats(self):
        stats = sized(Stats)
        self._ops.get_stats(self.handle, addressof(stats))
        return stats


class Plugin:
    def __init__(self, path):
        self._library = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
        self._register = RegisterFn(self._registered)  # keep a reference, since the plugin copies the pointer
        host, self._info = sized(Host), sized(Info)
        host.name.data, host.name.size = b"bench", 5
        host.register_tracer = self._register
        if self._library.kpt_plugin_entry_v1(byref(host), byref(self._info)):
            raise RuntimeError(self._error())

    def _registered(self, ctx, make, make_ctx):
        self._make, self._make_ctx = MakeFn(make), make_ctx
        return 0

    def _error(self):
        buffer = ctypes.create_string_buffer(512)
        self._info.last_error(self._info.self, buffer, len(buffer), None)
        return buffer.value.decode()

    def make(self, exclude=(), flags=0):
        """Starts a tracer that excludes code of files whose names begin with one of EXCLUDE."""
        args, made = sized(Args), sized(Made)
        filters = (Filter * len(exclude))()
        for filter_, prefix in zip(filters, exclude):
            filter_.action, filter_.match = EXCLUDE, FILE_PREFIX
            filter_.pattern.data, filter_.pattern.size = prefix.encode(), len(prefix.encode())
        args.flags = flags
        args.filters, args.filter_count = addressof(filters), len(exclude)
        args.filter_stride = ctypes.sizeof(Filter)
        if self._make(self._make_ctx, addressof(args), addressof(made)) or made.flags & 1:
            raise RuntimeError(f"the plugin can't make a tracer: {self._error()}")
        return Tracer(made)
