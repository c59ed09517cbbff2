"""The clock that a host names: its converter gets what that clock showed."""

import ctypes
import time
import unittest

import abi_host

MONOTONIC, REALTIME = 2, 3
ConvertFn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64),
                             ctypes.POINTER(ctypes.c_int64), ctypes.c_uint64)
SLACK_NS = 100_000  # of two clocks that are read one after the other


@ConvertFn
def as_they_are(ctx, ticks, ns, count):
    for i in range(count):
        ns[i] = ticks[i]


def nap():
    time.sleep(0.02)


class Clocks(abi_host.HostCase):
    def record(self, source, now):
        tracer = self.make(host=self.new_host(tick_source=source))
        times = [now()]
        for _ in range(300):  # more than a block
            times.append(now())
        nap()
        times.append(now())
        tracer.stop()
        convert = ctypes.cast(as_they_are, ctypes.c_void_p)
        found = tracer.deliver(convert=convert).recording()
        [slept] = found.all(nap)
        return slept, times

    def check(self, source, now):
        slept, times = self.record(source, now)
        self.assertLess(times[-2] - SLACK_NS, slept.start)
        self.assertLess(slept.end, times[-1] + SLACK_NS)
        self.assertGreater(slept.duration, 20_000_000 - SLACK_NS)

    def test_real_time(self):
        self.check(REALTIME, time.time_ns)

    def test_monotonic(self):
        self.check(MONOTONIC, time.monotonic_ns)


if __name__ == "__main__":
    unittest.main()
