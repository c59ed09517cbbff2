"""A host in Python. It makes and controls tracers through the plugin's C entry, with ctypes, for operations that
the package does not offer. The structs mirror abi/*.h; test_mirror.py compares them with the golden layout.

    host = Host()
    tracer = host.make(max_depth=5)
    ...
    tracer.stop()
    recording = tracer.recording()
"""

import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, PYFUNCTYPE, byref, c_char_p, c_int32, c_int64, c_uint16,
                    c_uint32, c_uint64, c_void_p)

import kpytrace
import support

OK, E_STATE, E_BUSY = 0, -3, -5
ORDER_THREAD, ORDER_TIME, ORDER_START = 0, 1, 2
PHASE_COMPLETE, PHASE_BEGIN, PHASE_END = 0, 1, 2
KIND_PYTHON, KIND_C, KIND_GC = 1, 2, 3
NO_C_CALLS = 1
FULL_RING = 1
FLAGS = {1: support.BEGAN_BEFORE, 2: support.ENDED_BY_STOP, 4: support.CLAMPED,
         8: support.RECOVERED, 16: support.WATCHED}
WATCHED_BIT, MARKED_BIT = 16, 32
DELIVER_MARKED = 1
MARK_POINT, MARK_BEGIN, MARK_END = 1, 2, 3
THREAD_ENDED = 1
INCLUDE, EXCLUDE = 1, 2
FILE_PREFIX, MODULE, FILE_GLOB = 1, 2, 3

LastErrorFn = CFUNCTYPE(c_int32, c_uint64, c_char_p, c_uint64, c_void_p)
SelfFn = CFUNCTYPE(c_int32, c_uint64)
MarkFn = CFUNCTYPE(c_int32, c_uint64, c_uint32, c_uint64)
SelfOutFn = CFUNCTYPE(c_int32, c_uint64, c_void_p)
RegisterFn = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)
MakeFn = PYFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)  # with the GIL held
BatchFn = CFUNCTYPE(c_int32, c_void_p, c_void_p)
WatchedFn = CFUNCTYPE(c_uint64, c_void_p, c_uint64, c_void_p, c_uint64)


# Filters for a tracer that is called while it runs, since calls of this host would add more events than it reads.
WITHOUT_HOST = [(EXCLUDE, FILE_PREFIX, file)
                for file in (__file__, support.__file__, os.path.dirname(ctypes.__file__))]


class Str(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_uint64)]

    @property
    def text(self):
        return ctypes.string_at(self.data, self.size).decode() if self.size else ""


LogFn = CFUNCTYPE(None, c_void_p, c_int32, Str)


class HostTable(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("ctx", c_void_p), ("name", Str),
                ("register_tracer", RegisterFn), ("register_memory_tracer", c_void_p),
                ("register_observer", c_void_p), ("log", LogFn), ("alloc", c_void_p),
                ("dealloc", c_void_p), ("tick_source", c_uint32), ("tick_flags", c_uint32),
                ("now_ticks", c_void_p), ("thread_attach", c_void_p),
                ("on_watched_call", WatchedFn)]


class Info(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("abi_minor", c_uint32), ("self", c_uint64),
                ("name", Str), ("version", Str), ("last_error", LastErrorFn),
                ("get_extension", c_void_p), ("detach", SelfFn)]


class Filter(ctypes.Structure):
    _fields_ = [("action", c_uint32), ("match", c_uint32), ("pattern", Str)]


class Watch(ctypes.Structure):
    _fields_ = [("watch", c_uint64), ("code", c_void_p)]


class Args(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("on_full", c_uint32),
                ("tool_id", c_uint32), ("max_events", c_uint64), ("max_bytes", c_uint64),
                ("ring_ns", c_uint64), ("ring_bytes", c_uint64), ("min_duration_ns", c_uint64),
                ("max_depth", c_uint32), ("overhead_permille", c_uint32), ("filters", c_void_p),
                ("filter_count", c_uint32), ("filter_stride", c_uint32), ("watches", c_void_p),
                ("watch_count", c_uint32), ("watch_stride", c_uint32), ("chunk_sink", c_void_p)]


class Ops(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("stop", SelfFn),
                ("restart", SelfFn), ("register_gc_callback", SelfFn), ("get_events", SelfOutFn),
                ("snapshot", SelfOutFn), ("get_stats", SelfOutFn), ("last_error", LastErrorFn),
                ("get_extension", c_void_p), ("destroy", SelfFn), ("mark", MarkFn)]


class Made(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("ops", POINTER(Ops)),
                ("self", c_uint64)]


class Stats(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("state", c_uint32)] + [
        (name, c_uint64) for name in (
            "events", "bytes_held", "events_dropped", "events_repaired", "events_filtered",
            "chunks_sealed", "chunks_refused", "threads", "threads_unreached",
            "functions_disabled")]


class LaterStats(Stats):
    """Stats with the fields that later versions appended."""
    _fields_ = [("stacks_walked", c_uint64), ("layouts_unknown", c_uint64)]


class Activity(ctypes.Structure):
    _fields_ = [("id", c_uint64), ("parent_id", c_uint64), ("start_ns", c_int64),
                ("end_ns", c_int64), ("thread", c_uint32), ("name", c_uint32), ("kind", c_uint16),
                ("phase", c_uint16), ("flags", c_uint32), ("line", c_uint32), ("depth", c_uint32),
                ("value0", c_uint64), ("value1", c_uint64), ("value2", c_uint64)]


class Name(ctypes.Structure):
    _fields_ = [("index", c_uint32), ("first_line", c_uint32), ("display", Str),
                ("function", Str), ("qualname", Str), ("file", Str)]


class ThreadRecord(ctypes.Structure):
    _fields_ = [("index", c_uint32), ("flags", c_uint32), ("os_tid", c_uint64),
                ("host_value", c_uint64), ("name", Str)]


class Batch(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("order", c_uint32), ("activities", c_void_p),
                ("names", c_void_p), ("threads", c_void_p), ("activity_count", c_uint32),
                ("activity_stride", c_uint32), ("name_count", c_uint32), ("name_stride", c_uint32),
                ("thread_count", c_uint32), ("thread_stride", c_uint32)]


class DeliveryTable(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("order", c_uint32),
                ("batch_size", c_uint32), ("end_ns", c_int64), ("convert", c_void_p),
                ("convert_ctx", c_void_p), ("sink", BatchFn), ("sink_ctx", c_void_p)]


class Chunk(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("format", c_uint32), ("thread", c_uint32),
                ("sequence", c_uint32), ("os_tid", c_uint64), ("first_ticks", c_uint64),
                ("last_ticks", c_uint64), ("dropped_before", c_uint64), ("data", c_void_p),
                ("size_bytes", c_uint64)]


class ChunkSink(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("chunk_bytes", c_uint64),
                ("sealed", c_void_p), ("chunk_ctx", c_void_p)]


# Mirror -> the struct's name in abi/*.h.
MIRRORS = {Str: "kpt_str", HostTable: "kpt_host", Info: "kpt_plugin_info", Filter: "kpt_filter",
           Watch: "kpt_watch", Args: "kpt_tracer_args", Ops: "kpt_tracer_ops", Made: "kpt_tracer",
           Stats: "kpt_stats", Activity: "kpt_activity", Name: "kpt_name",
           ThreadRecord: "kpt_thread", Batch: "kpt_batch", DeliveryTable: "kpt_delivery",
           Chunk: "kpt_chunk", ChunkSink: "kpt_chunk_sink"}


def sized(struct, **fields):
    return struct(struct_size=ctypes.sizeof(struct), **fields)


def text_of(last_error, handle):
    buffer = ctypes.create_string_buffer(512)
    last_error(handle, buffer, len(buffer), None)
    return buffer.value.decode()


class Failed(Exception):
    """A call of the ABI did not return OK."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status, self.text = status, text


class Delivery:
    """The content of a delivery: activities in the order of arrival, names and threads by their numbers."""

    def __init__(self):
        self.activities, self.names, self.threads = [], {}, {}
        self.batches = 0

    def take(self, batch):
        self.batches += 1
        for name in self._records(Name, batch.names, batch.name_count, batch.name_stride):
            self.names[name.index] = name
        for thread in self._records(ThreadRecord, batch.threads, batch.thread_count,
                                    batch.thread_stride):
            self.threads[thread.index] = thread
        for a in self._records(Activity, batch.activities, batch.activity_count,
                               batch.activity_stride):
            assert a.name in self.names and a.thread in self.threads, "a name comes before its use"
            self.activities.append(a)

    @staticmethod
    def _records(struct, address, count, stride):
        data = ctypes.string_at(address, count * stride) if count else b""
        return [struct.from_buffer_copy(data, i * stride) for i in range(count)]

    @property
    def count(self):
        """Returns the number of calls."""
        return sum(a.phase != PHASE_BEGIN for a in self.activities)

    def recording(self, stats=None):
        """Returns the delivery as a support.Recording. The args of a call are its activity."""
        calls = {}
        for a in self.activities:
            if a.phase != PHASE_BEGIN:
                flags = [text for bit, text in FLAGS.items() if a.flags & bit]
                calls.setdefault(a.thread, []).append(support.Call(
                    a.id, a.parent_id, self.names[a.name].display.text, a.start_ns, a.end_ns,
                    flags, a))
        threads = {i: (t.os_tid, t.name.text) for i, t in self.threads.items()}
        recording = support.Recording(threads, calls, stats)
        recording.check_nesting()
        return recording


class Tracer:
    """A tracer that Host.make has made."""

    def __init__(self, made, kept):
        self.handle, self.ops, self._kept = made.self, made.ops.contents, kept

    def _call(self, function, *args):
        status = function(self.handle, *args)
        if status != OK:
            raise Failed(status, text_of(self.ops.last_error, self.handle))

    def stop(self):
        self._call(self.ops.stop)

    def restart(self):
        self._call(self.ops.restart)

    def register_gc_callback(self):
        self._call(self.ops.register_gc_callback)

    def mark(self, what=MARK_POINT, number=0):
        self._call(self.ops.mark, what, number)

    def stats(self):
        stats = sized(LaterStats)
        self._call(self.ops.get_stats, ctypes.addressof(stats))
        return {name: getattr(stats, name) for name, _ in Stats._fields_[1:] + LaterStats._fields_}

    def deliver(self, order=ORDER_THREAD, function=None, during=None, **fields):
        """Returns the delivery of get_events, or of another function with the same arguments. DURING() is called
        after the first batch."""
        delivery = Delivery()

        @BatchFn
        def sink(ctx, batch):
            delivery.take(Batch.from_address(batch))
            if during and delivery.batches == 1:
                during()
            return OK
        table = sized(DeliveryTable, order=order, sink=sink, **fields)
        self._call(function or self.ops.get_events, ctypes.addressof(table))
        return delivery

    def snapshot(self, **options):
        return self.deliver(function=self.ops.snapshot, **options)

    def recording(self):
        delivery = self.deliver()
        return delivery.recording(self.stats())

    def destroy(self):
        self._call(self.ops.destroy)


class Host:
    """A binding to the plugin. WATCHED(watch, self, call_id) is called with the object itself, LOG(level, text)
    with each message of the plugin."""

    def __init__(self, watched=None, thread_attach=None, log=None, name="", tick_source=0,
                 now_ticks=None):
        library = ctypes.CDLL(str(kpytrace.plugin_path()), mode=ctypes.RTLD_LOCAL)
        self._factory = []

        @RegisterFn
        def register(ctx, make, make_ctx):
            self._factory[:] = MakeFn(make), make_ctx
            return OK

        @WatchedFn
        def on_watched(ctx, watch, self_address, call_id):
            instance = ctypes.cast(self_address, ctypes.py_object).value if self_address else None
            return watched(watch, instance, call_id)

        @LogFn
        def on_log(ctx, level, message):
            log(level, message.text)
        self._table = sized(HostTable, register_tracer=register, thread_attach=thread_attach,
                            tick_source=tick_source, now_ticks=now_ticks)
        if watched:
            self._table.on_watched_call = on_watched
        if log:
            self._table.log = on_log
        text = ctypes.create_string_buffer(name.encode())
        self._table.name = Str(ctypes.addressof(text), len(name.encode()))
        self._kept = register, on_watched, on_log
        self.info = sized(Info)
        status = library.kpt_plugin_entry_v1(byref(self._table), byref(self.info))
        if status != OK:
            raise Failed(status, text_of(self.info.last_error, 0))

    def make(self, filters=(), watches=(), chunk_sink=None, **fields):
        """Returns a running tracer. FILTERS: (action, match, pattern); WATCHES: (number, function)."""
        table = (Filter * len(filters))()
        kept = [table]
        for row, (action, match, pattern) in zip(table, filters):
            data = ctypes.create_string_buffer(os.fsencode(pattern))
            kept.append(data)
            row.action, row.match = action, match
            row.pattern.data, row.pattern.size = ctypes.addressof(data), len(data) - 1
        watched = (Watch * len(watches))(*[(n, id(f.__code__)) for n, f in watches])
        args = sized(Args, **fields)
        args.filters, args.filter_count = ctypes.addressof(table), len(table)
        args.watches, args.watch_count = ctypes.addressof(watched), len(watched)
        args.filter_stride, args.watch_stride = ctypes.sizeof(Filter), ctypes.sizeof(Watch)
        if chunk_sink:
            args.chunk_sink = ctypes.addressof(chunk_sink)
            kept.append(chunk_sink)
        made = sized(Made)
        make, make_ctx = self._factory
        status = make(make_ctx, ctypes.addressof(args), ctypes.addressof(made))
        if status != OK:
            raise Failed(status, text_of(self.info.last_error, self.info.self))
        return Tracer(made, kept)

    def detach(self):
        status = self.info.detach(self.info.self)
        if status != OK:
            raise Failed(status, text_of(self.info.last_error, self.info.self))


class HostCase(support.Case):
    """A test case with a host, and tracers that are destroyed at its end."""

    def setUp(self):
        super().setUp()
        self.host = self.new_host()

    def new_host(self, **options):
        host = Host(**options)
        self.addCleanup(host.detach)
        return host

    def make(self, host=None, **options):
        tracer = (host or self.host).make(**options)
        self.addCleanup(self.end, tracer)
        return tracer

    def end(self, tracer):
        try:
            tracer.destroy()
        except Failed:
            pass
