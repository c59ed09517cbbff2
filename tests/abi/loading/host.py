#!/usr/bin/env python3
"""A host inside a real Python: loads the plugin with ctypes, makes a tracer, tells what it got.

usage: host.py PLUGIN now|ending        (ending: make it while the interpreter is being finalised)

Only the fields that are needed are written out; the layout of the rest is that of abi/kpt_host.h,
which tests/abi/golden checks.
"""

import ctypes
import sys
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int32, c_uint32, c_uint64, c_void_p


class Str(ctypes.Structure):
    _fields_ = [("data", c_char_p), ("size", c_uint64)]


RegisterFn = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)
LastErrorFn = CFUNCTYPE(c_int32, c_uint64, c_char_p, c_uint64, c_void_p)
SelfFn = CFUNCTYPE(c_int32, c_uint64)
StatsFn = CFUNCTYPE(c_int32, c_uint64, c_void_p)


class Host(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("ctx", c_void_p), ("name", Str),
                ("register_tracer", RegisterFn), ("rest", c_uint64 * 9)]


class Info(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("abi_minor", c_uint32), ("self", c_uint64),
                ("name", Str), ("version", Str), ("last_error", LastErrorFn),
                ("get_extension", c_void_p), ("detach", SelfFn)]


class Args(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("rest", c_uint32 * 25)]


class Ops(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("stop", SelfFn),
                ("restart", SelfFn), ("register_gc_callback", SelfFn), ("get_events", c_void_p),
                ("snapshot", c_void_p), ("get_stats", StatsFn), ("last_error", LastErrorFn),
                ("get_extension", c_void_p), ("destroy", SelfFn)]


class Tracer(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("ops", POINTER(Ops)),
                ("self", c_uint64)]


class Stats(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("state", c_uint32), ("events", c_uint64),
                ("rest", c_uint64 * 9)]


def sized(struct):
    value = struct()
    value.struct_size = ctypes.sizeof(struct)
    return value


def text(last_error, handle):
    buffer = ctypes.create_string_buffer(512)
    last_error(handle, buffer, len(buffer), None)
    return buffer.value.decode()


def visit(plugin, sized=sized, text=text, Host=Host, Info=Info, Args=Args, Tracer=Tracer,
          Stats=Stats, RegisterFn=RegisterFn, ctypes=ctypes, byref=byref, print=print):
    """Binds, makes, stops, destroys. What it needs is bound here: globals go in finalisation."""
    library = ctypes.CDLL(plugin, mode=ctypes.RTLD_LOCAL)
    factory = []

    @RegisterFn
    def register_tracer(ctx, make, make_ctx):
        factory[:] = [make, make_ctx]
        return 0

    host, info = sized(Host), sized(Info)
    host.name.data, host.name.size = b"ctypes", 6
    host.register_tracer = register_tracer
    print("entry", library.kpt_plugin_entry_v1(byref(host), byref(info)))
    make = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        factory[0])
    args, tracer, stats = sized(Args), sized(Tracer), sized(Stats)
    status = make(factory[1], ctypes.addressof(args), ctypes.addressof(tracer))
    print("make", status)
    if status:
        print("reason", text(info.last_error, info.self))
    else:
        ops = tracer.ops.contents
        print("noop", tracer.flags & 1)
        print("reason", text(ops.last_error, tracer.self))
        print("stop", ops.stop(tracer.self), ops.stop(tracer.self))
        print("stopped", text(ops.last_error, tracer.self))
        print("stats", ops.get_stats(tracer.self, ctypes.addressof(stats)), stats.state,
              stats.events)
        print("destroy", ops.destroy(tracer.self), ops.destroy(tracer.self))
    print("detach", info.detach(info.self), flush=True)


class AtTheEnd:
    """Visits when the last module is torn down."""

    def __init__(self, plugin):
        self.plugin = plugin

    def __del__(self, visit=visit, sys=sys, print=print):
        print("finalizing", sys.is_finalizing())
        visit(self.plugin)


if sys.argv[2] == "ending":
    at_the_end = AtTheEnd(sys.argv[1])
else:
    visit(sys.argv[1])
