"""Marks of a host while its thread runs Python: calls that contain a point, and spans of the host, which calls do
not cross."""

import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from host_case import HostCase, WITHOUT_HOST, abi_host
from abi_host import DELIVER_MARKED, MARK_BEGIN, MARK_END, MARKED_BIT
from support import CLAMPED


class Marks(HostCase):
    def setUp(self):
        super().setUp()
        self.tracer = self.make(filters=WITHOUT_HOST, flags=abi_host.NO_C_CALLS)

    def operator(self):
        self.tracer.mark()

    def plain(self):
        pass

    def work(self):
        self.plain()
        self.operator()
        self.plain()

    def enter(self, number):
        self.tracer.mark(MARK_BEGIN, number)

    def marked(self, delivery):
        return [delivery.names[a.name].function.text for a in delivery.activities
                if a.flags & MARKED_BIT]

    def test_points(self):
        self.plain()
        self.work()
        self.plain()
        self.tracer.stop()
        whole = self.tracer.deliver()
        self.assertEqual(self.marked(whole)[:2], ["operator", "work"])
        self.assertNotIn("plain", self.marked(whole))
        for order in (abi_host.ORDER_THREAD, abi_host.ORDER_START):
            whole = {a.id: a.flags for a in self.tracer.deliver(order).activities}
            some = self.tracer.deliver(order, flags=DELIVER_MARKED)
            self.assertEqual([a.id for a in some.activities],
                             [i for i, flags in whole.items() if flags & MARKED_BIT])
        with self.assertRaises(abi_host.Failed):
            self.tracer.deliver(abi_host.ORDER_TIME, flags=DELIVER_MARKED)

    def test_spans(self):
        """Like an annotation that begins in __enter__ and ends in __exit__."""
        def body():
            self.enter(3)
            self.plain()
            self.tracer.mark(MARK_END, 3)
        body()
        self.tracer.stop()
        recording = self.tracer.recording()
        self.assertEqual(recording.of("enter").flags, {CLAMPED})
        self.assertEqual(recording.of(body).flags, set())
        self.assertEqual([c.function for c in recording.of(body).children], ["enter", "plain"])
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_spans_that_end_on_another_thread(self):
        """Calls that outlive the span are clamped where it ends; calls of the other thread are not."""
        def ends():
            self.tracer.mark(MARK_END, 3)

        def waits():
            thread = threading.Thread(target=ends)
            thread.start()
            thread.join()
            self.plain()

        def body():
            self.tracer.mark(MARK_BEGIN, 3)
            waits()
            self.plain()
        body()
        self.tracer.stop()
        recording = self.tracer.recording()
        self.assertEqual(recording.of(waits).flags, {CLAMPED})
        self.assertEqual(recording.of(body).flags, set())
        self.assertEqual(recording.of(ends).flags, set())
        self.assertEqual([c.function for c in recording.of(body).children
                          if c.function in ("waits", "plain")], ["waits", "plain", "plain"])
        self.assertLessEqual(recording.of(ends).start, recording.of(waits).end)
        self.assertLessEqual(recording.of(waits).end, recording.of(ends).end)

    def test_more_open_spans_than_a_thread_remembers(self):
        def ends(numbers):
            for n in numbers:
                self.tracer.mark(MARK_END, n)

        def body():
            for n in range(40):
                self.tracer.mark(MARK_BEGIN, n)
            ends(range(20))
            ends(range(20, 40))
        body()
        self.tracer.stop()
        recording = self.tracer.recording()
        self.assertEqual(recording.of(body).flags, set())
        self.assertEqual([call.flags for call in recording.all(ends)], [{CLAMPED}, {CLAMPED}])
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_of_many_threads(self):
        def many():
            for n in range(2000):
                self.enter(n)
                self.work()
                self.tracer.mark(MARK_END, n)
        threads = [threading.Thread(target=many) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.tracer.stop()
        delivery = self.tracer.deliver()
        recording = delivery.recording(self.tracer.stats())
        self.assertEqual(recording.stats["events_repaired"], 0)
        self.assertEqual(self.marked(delivery).count("work"), 8000)
        self.assertEqual(sum(CLAMPED in c.flags for c in recording.all("enter")), 8000)

    def test_where_nothing_is_recorded(self):
        self.tracer.stop()
        self.tracer.mark()
        only = self.make(flags=abi_host.NO_C_CALLS | 4)  # records this thread only
        thread = threading.Thread(target=only.mark)
        thread.start()
        thread.join()
        only.stop()
        self.assertEqual(self.marked(only.deliver()), [])

    def test_in_a_ring(self):
        tracer = self.tracer = self.make(ring_bytes=200_000, filters=WITHOUT_HOST)
        for _ in range(5000):
            self.work()
        tracer.stop()
        recording = tracer.recording()
        self.assertGreater(recording.stats["events_dropped"], 0)
        self.assertGreater(self.marked(tracer.deliver()).count("work"), 100)


if __name__ == "__main__":
    unittest.main()
