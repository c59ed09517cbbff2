"""The small host of host.h, for programs that the tests start. KPT_LIFECYCLE is the path of the library,
KPT_PLUGIN that of the plugin. `free` calls without the GIL, `held` with it."""

import ctypes
import os
from ctypes import c_char, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p


class Result(ctypes.Structure):
    _fields_ = [("status", c_int32), ("threads", c_uint32),
                *((name, c_uint64) for name in ("activities", "broken", "ticks", "pairs", "least",
                                                "most", "ended_open", "gc", "dropped",
                                                "repaired")),
                ("why", c_char * 160)]

    def check(self):
        assert self.status == 0, self.status
        assert not self.broken, (self.broken, self.why)
        return self


def _open(kind):
    library = kind(os.environ["KPT_LIFECYCLE"])
    answers = {"lc_open": c_char_p, "lc_why": c_char_p, "lc_make": c_void_p,
               "lc_stopper_start": c_void_p, "lc_stopper_wait": c_int64, "lc_cycler_start": c_void_p,
               "lc_cycler_why": c_char_p,
               "lc_allocs": c_uint64, "lc_live_blocks": c_int64}
    for name, answer in answers.items():
        getattr(library, name).restype = answer
    return library


free, held = _open(ctypes.CDLL), _open(ctypes.PyDLL)
_error = held.lc_open(os.environ["KPT_PLUGIN"].encode())
assert not _error, _error


class Refused(Exception):
    pass


class Tracer:
    """A tracer that runs from its construction."""

    def __init__(self, library=held, flags=0, max_bytes=0, ring_bytes=0):
        address = library.lc_make(flags, c_uint64(max_bytes), c_uint64(ring_bytes))
        if not address:
            raise Refused(library.lc_why().decode())
        self.address = c_void_p(address)

    def stop(self, library=held):
        assert library.lc_stop(self.address) == 0
        return self

    def deliver(self, library=free):
        result = Result()
        library.lc_deliver(self.address, ctypes.byref(result))
        return result.check()

    def snapshot(self, library=free):
        result = Result()
        library.lc_snapshot(self.address, ctypes.byref(result))
        return result.check()

    def destroy(self, library=held):
        assert library.lc_destroy(self.address) == 0

    def finish(self, library=held):
        """Stops, delivers and destroys the tracer. Returns the content of its recording."""
        result = self.stop(library).deliver()
        self.destroy(library)
        return result


class Cycler:
    """A thread that C code starts, and that makes and ends tracers."""

    def __init__(self, cycles, run_us=500):
        self.address = c_void_p(free.lc_cycler_start(cycles, run_us))

    def wait(self, seconds=100):
        assert free.lc_cycler_wait(self.address, int(seconds * 1000)), "it hangs"
        why = free.lc_cycler_why(self.address).decode()
        assert not why, why


def tick():
    pass


def mark_a():
    pass


def mark_b():
    pass


def ticks(count):
    """Calls tick COUNT times between the marks."""
    mark_a()
    for _ in range(count):
        tick()
    mark_b()
