"""Bounds: a full budget keeps the beginning or the end, and reports its losses. The remaining calls nest as
before."""

import os
import threading
import time
import unittest

import kpytrace
from support import BEGAN_BEFORE, Case, RECOVERED


def leaf():
    pass


def numbered(n):
    """Makes N % 10 calls, so that a recording shows the number of the call."""
    for _ in range(n % 10):
        leaf()


def down(depth, then):
    return down(depth - 1, then) if depth else then()


class Stop(Case):
    def test_events(self):
        def work():
            for n in range(20_000):
                leaf()
        recording = self.record(work, max_events=10_000)
        kept = recording.count(leaf)
        self.assertTrue(1_000 < kept < 10_000, kept)
        self.assertGreater(self.summary.dropped, 20_000)
        self.assertLessEqual(recording.stats["events"], 10_000 + 100)
        begin = recording.of(work).start
        self.assertLess(recording.all(leaf)[0].start - begin, 50_000_000, "the beginning is kept")

    def test_bytes(self):
        def work():
            for n in range(50_000):
                leaf()
        recording = self.record(work, max_bytes="200kB")
        self.assertLessEqual(recording.stats["bytes_held"], 200_000)
        self.assertGreater(recording.stats["bytes_held"], 50_000)
        self.assertGreater(self.summary.dropped, 50_000)
        self.assertGreater(recording.count(leaf), 2_000)

    def test_what_is_open_when_it_is_full_is_closed(self):
        recording = self.record(lambda: down(30, lambda: [leaf() for _ in range(20_000)]),
                                max_events=5_000)
        self.assertEqual(recording.count(down), 31)
        self.assertTrue(all(a.parent is b for a, b in zip(recording.all(down)[1:],
                                                          recording.all(down))))

    def test_a_budget_that_is_not_reached_changes_nothing(self):
        recording = self.record(lambda: [leaf() for _ in range(100)], max_events=10**6,
                                max_bytes="100MB")
        self.assertEqual(recording.count(leaf), 100)
        self.assertEqual(self.summary.dropped, 0)


class Ring(Case):
    def check_wrap(self, recording, last):
        """Checks that the end is recorded below its ancestors, and that dropped events are counted."""
        self.assertGreater(self.summary.dropped, 0)
        self.assertEqual(recording.count(down), 31)
        for frame in recording.all(down):
            self.assertIn(BEGAN_BEFORE, frame.flags)
        for a, b in zip(recording.all(down)[1:], recording.all(down)):
            self.assertIs(a.parent, b)
        calls = recording.all(numbered)
        counts = [len(c.children) for c in calls if not c.flags]
        expected = [n % 10 for n in range(last - len(counts), last)]
        self.assertEqual(counts[1:], expected[1:], "without a gap, up to the end")
        self.assertGreater(len(counts), 100)
        return len(counts)

    def work(self, count):
        def loop():
            for n in range(count):
                numbered(n)
        return down(30, loop)

    def test_events(self):
        recording = self.record(lambda: self.work(6_000), max_events=20_000, on_full="ring")
        kept = self.check_wrap(recording, 6_000)
        self.assertLess(kept * 11, 20_000 + 20_000)

    def test_bytes(self):
        recording = self.record(lambda: self.work(6_000), ring_bytes="200kB")
        self.check_wrap(recording, 6_000)
        self.assertLessEqual(recording.stats["bytes_held"], 300_000)

    def test_budget_in_bytes(self):
        recording = self.record(lambda: self.work(6_000), max_bytes="200kB", on_full="ring")
        self.check_wrap(recording, 6_000)

    def test_time(self):
        def work():
            begin = time.perf_counter()
            for _ in range(5_000):  # several chunks, also on a slow machine
                numbered(5)
            while time.perf_counter() - begin < 0.03:
                numbered(5)
            return (time.perf_counter() - begin) * 1e9
        lengths, whole = [], []
        for _ in range(5):  # the best of several rounds, since the machine may be busy
            recording = self.record(work, ring_ns="5ms")
            self.assertGreater(self.summary.dropped, 0)
            self.assertIn(BEGAN_BEFORE, recording.of(work).flags)
            calls = [c for c in recording.all(numbered) if BEGAN_BEFORE not in c.flags]
            lengths.append(calls[-1].end - calls[0].start)
            whole.append(self.result)
        self.assertGreaterEqual(min(lengths), 4_750_000, "at least so much")
        self.assertLess(min(a / b for a, b in zip(lengths, whole)), 5 / 6)

    def test_generators_across_a_wrap(self):
        def generate():
            for n in range(6_000):
                numbered(n)
                yield n

        def work():
            return sum(1 for _ in generate())
        recording = self.record(work, ring_bytes="200kB")
        self.assertEqual(self.result, 6_000)
        whole = [c for c in recording.all(generate) if not c.flags]
        self.assertGreater(len(whole), 50)
        self.assertTrue(all(c.below() in (["numbered"], []) for c in whole))
        self.assertTrue(all(c.parent.label == "<genexpr>" for c in whole))

    def test_recursion_deeper_than_the_ring(self):
        def deep(n):
            if n:
                deep(n - 1)
            leaf()
        recording = self.record(lambda: [deep(200) for _ in range(100)], ring_bytes="200kB")
        self.assertGreater(self.summary.dropped, 0)
        depths = [c.depth for c in recording.all(deep)]
        self.assertEqual(max(depths) - min(depths), 200)

    def test_threads(self):
        """The ring keeps the end of each running thread."""
        together = threading.Barrier(3)

        def one():
            self.work(2_500)
            together.wait()

        def work():
            threads = [threading.Thread(target=one, name=f"ring {n}") for n in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        recording = self.record(work, ring_bytes="400kB")
        for n in range(3):
            calls = recording.thread(f"ring {n}").calls
            self.assertEqual(sum(c.label == "down" for c in calls), 31)
            self.assertGreater(sum(c.label == "numbered" for c in calls), 10)

    def test_threads_that_have_ended(self):
        """The ring drops the chunks of ended threads when they are the oldest, for any number of threads."""
        def work():
            begin = time.perf_counter()
            running = len(os.listdir("/proc/self/task"))
            for n in range(100_000):
                thread = threading.Thread(target=self.work, args=(50,), name=f"ended {n}")
                thread.start()
                thread.join()
                while len(os.listdir("/proc/self/task")) > running:  # a joined thread may still hold its chunks
                    time.sleep(0)
                if n >= 200 and time.perf_counter() - begin > 0.5:
                    return thread.name
        for bound in ({"ring_bytes": "200kB"}, {"ring": "0.1s"}):
            recording = self.record(work, **bound)
            names = [thread.name for thread in recording.threads]
            self.assertIn(self.result, names, bound)
            self.assertNotIn("ended 0", names, bound)
            self.assertGreater(self.summary.dropped, 30_000, bound)
            calls = [c for c in recording.thread(self.result).calls if c.label == "numbered"]
            self.assertEqual([len(c.children) for c in calls], [n % 10 for n in range(50)], bound)
            if "ring_bytes" in bound:  # two chunks of each running thread
                self.assertLess(recording.stats["bytes_held"], 300_000)

    def test_filters_hold_for_ancestors(self):
        recording = self.record(lambda: self.work(6_000), ring_bytes="200kB", exclude=__file__)
        self.assertEqual([c for c in recording.calls if __file__ in c.name], [])

    def test_that_does_not_wrap_is_whole(self):
        recording = self.record(lambda: self.work(50), ring_bytes="10MB")
        self.assertEqual(self.summary.dropped, 0)
        self.assertEqual(recording.count(numbered), 50)
        self.assertEqual([c for c in recording.all(down) if c.flags], [])
        self.assertEqual([c for c in recording.calls if RECOVERED in c.flags], [])


class Account(Case):
    """Each event of the program is either recorded or counted as dropped."""

    def total(self, **options):
        def work():
            for _ in range(10_000):
                leaf()
        recording = self.record(work, c_calls=False, include=__file__, **options)
        heads = sum(BEGAN_BEFORE in c.flags for c in recording.calls)
        self.held = recording.count(leaf)
        return recording.stats["events"] + recording.stats["events_dropped"], heads

    def test_every_bound(self):
        whole, _ = self.total()
        self.assertEqual(self.held, 10_000)
        own = 2 * 10_001  # events of leaf and work; the others are of calls that were open at the start
        rows = [{"max_events": 5_000}, {"max_bytes": "60kB"}, {"max_events": 1},
                {"max_events": 5_000, "on_full": "ring"}, {"max_bytes": "150kB", "on_full": "ring"},
                {"ring_bytes": "150kB"}, {"ring_ns": "1us"}]
        for options in rows:
            total, heads = self.total(**options)
            self.assertLess(self.held, 10_000, options)
            self.assertGreaterEqual(total, own, options)
            # The chunks of a ring repeat the open calls, each with its line.
            self.assertLessEqual(total, whole + 2 * 10 * max(heads, 1), options)


class Stats(Case):
    def test_counters_while_it_runs(self):
        trace = kpytrace.start()
        before = trace.stats()["events"]
        for _ in range(1000):
            leaf()
        after = trace.stats()
        self.assertGreaterEqual(after["events"] - before, 2000)
        self.assertGreaterEqual(after["bytes_held"], 2000 * 8)
        self.assertGreaterEqual(after["threads"], 1)
        trace.stop()


if __name__ == "__main__":
    unittest.main()
