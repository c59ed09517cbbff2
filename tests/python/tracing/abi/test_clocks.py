"""The clock that a host selects: the host's converter receives values that this clock showed, or that it read
itself (issue 23, 21)."""

import ctypes
import os
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from host_case import HostCase

MONOTONIC, REALTIME, HOST = 2, 3, 4
ConvertFn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64),
                             ctypes.POINTER(ctypes.c_int64), ctypes.c_uint64)
SLACK_NS = 100_000  # between two clocks that are read one after the other


@ConvertFn
def as_they_are(ctx, ticks, ns, count):
    for i in range(count):
        ns[i] = ticks[i]


def nap():
    time.sleep(0.02)


def leaf():
    pass


class Clocks(HostCase):
    def record(self, source, now):
        tracer = self.make(host=self.new_host(tick_source=source))
        times = [now()]
        for _ in range(300):  # more than one block
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


class HostsClock(HostCase):
    def setUp(self):
        super().setUp()
        self.native = ctypes.CDLL(os.environ["KPT_NATIVE"])
        self.native.native_ticks.restype = ctypes.c_uint64

    def make_with(self, clock, **options):
        function = ctypes.cast(clock, ctypes.c_void_p).value
        return self.make(host=self.new_host(tick_source=HOST, now_ticks=function), **options)

    def read(self):
        return self.native.native_ticks(None)

    def ticks(self, tracer, **options):
        convert = ctypes.cast(as_they_are, ctypes.c_void_p)
        return tracer.deliver(convert=convert, **options).recording()

    def work(self):
        for _ in range(2000):  # more than one chunk
            leaf()
            len("")

    def test_each_event_has_its_ticks(self):
        begin = self.read()
        tracer = self.make_with(self.native.native_ticks)
        started = self.read()
        self.work()
        stopping = self.read()
        tracer.stop()
        end = self.read()
        self.assertGreaterEqual(stopping - started, 4 * 2000, "read twice a call")
        found = self.ticks(tracer)
        calls = found.all(leaf) + found.all("[len]")
        self.assertEqual(len(found.all(leaf)), 2000)
        stamps = [t for call in calls for t in (call.start, call.end)]
        self.assertEqual(len(set(stamps)), len(stamps), "no reading is used twice")
        self.assertTrue(all(started < t < stopping for t in stamps))
        everything = [t for call in found.calls for t in (call.start, call.end)]
        self.assertTrue(all(begin <= t <= end for t in everything))

    def test_beside_a_tracer_with_another_clock(self):
        begin = self.read()
        hosted = self.make_with(self.native.native_ticks)
        plain = self.make()
        nap()
        self.work()
        hosted.stop()
        plain.stop()
        [slept] = plain.recording().all(nap)
        self.assertTrue(20_000_000 - SLACK_NS < slept.duration < 10_000_000_000, slept)
        self.assertEqual(plain.recording().count(leaf), 2000)
        found = self.ticks(hosted)
        self.assertEqual(found.count(leaf), 2000)
        self.assertTrue(all(begin < call.start <= call.end < self.read() for call in found.calls))

    def test_our_own_converter(self):
        """If the host has no converter, its ticks are calibrated like the counter's."""
        tracer = self.make_with(self.native.native_tenths)
        begin = time.time_ns()
        nap()
        end = time.time_ns()
        tracer.stop()
        [slept] = tracer.recording().all(nap)
        self.assertTrue(begin - SLACK_NS < slept.start < slept.end < end + SLACK_NS, slept)
        self.assertGreater(slept.duration, 20_000_000 - SLACK_NS)

    def test_marks_and_restarts(self):
        tracer = self.make_with(self.native.native_ticks)
        tracer.mark()
        leaf()
        tracer.stop()
        between = self.read()
        tracer.restart()
        leaf()
        tracer.stop()
        first, second = self.ticks(tracer).all(leaf)
        self.assertTrue(first.end < between < second.start)

    def test_a_ring_by_time(self):
        """The length of the ring is in nanoseconds, for any unit of the host's ticks."""
        tracer = self.make_with(self.native.native_ticks, ring_ns=10**12)
        self.work()
        self.assertEqual(tracer.stats()["events_dropped"], 0)
        tracer.destroy()
        tracer = self.make_with(self.native.native_ticks, ring_ns=1)
        for _ in range(20):
            self.work()
        self.assertGreater(tracer.stats()["events_dropped"], 0)


if __name__ == "__main__":
    unittest.main()
