"""Tracers through the contract: the three orders, snapshots of a running tracer, restarts, and several tracers at
once."""

import ctypes
import os
import pathlib
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from host_case import HostCase, WITHOUT_HOST, abi_host
from abi_host import ORDER_START, ORDER_THREAD, ORDER_TIME, PHASE_BEGIN, PHASE_END
from support import BEGAN_BEFORE, ENDED_BY_STOP

ORDERS = ORDER_THREAD, ORDER_START, ORDER_TIME


def leaf():
    pass


def work(n):
    for _ in range(n):
        leaf()


def down(n, then):
    return down(n - 1, then) if n else then()


def spin(rounds):
    for _ in range(rounds):
        down(10, leaf)
        time.sleep(0.001)


class Orders(HostCase):
    def setUp(self):
        super().setUp()
        self.tracer = self.make()
        threads = [threading.Thread(target=work, args=(300,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        down(20, lambda: work(100))
        for thread in threads:
            thread.join()
        self.tracer.stop()

    def key(self, a):
        return a.thread, a.start_ns, a.end_ns, a.name, a.depth, a.flags

    def test_by_thread(self):
        delivery = self.tracer.deliver(ORDER_THREAD, batch_size=64)
        self.assertGreater(delivery.batches, 10)
        activities = delivery.activities
        self.assertEqual(sorted(a.id for a in activities), list(range(1, len(activities) + 1)))
        seen, order = set(), []
        for a in activities:
            self.assertNotIn(a.parent_id, seen, "children come before their parent")
            self.assertTrue(a.parent_id < a.id)
            seen.add(a.id)
            if a.thread not in order:
                order.append(a.thread)
            self.assertEqual(a.thread, order[-1], "thread after thread")
        delivery.recording()

    def test_by_start(self):
        activities = self.tracer.deliver(ORDER_START).activities
        self.assertEqual([a.id for a in activities], list(range(1, len(activities) + 1)))
        starts = [a.start_ns for a in activities]
        self.assertEqual(starts, sorted(starts))
        self.assertTrue(all(a.parent_id < a.id for a in activities))

    def test_by_time(self):
        activities = self.tracer.deliver(ORDER_TIME, batch_size=100).activities
        stacks, last = {}, 0
        for a in activities:
            stack = stacks.setdefault(a.thread, [])
            now = a.end_ns if a.phase == PHASE_END else a.start_ns
            self.assertGreaterEqual(now, last)
            last = now
            if a.phase == PHASE_BEGIN:
                self.assertEqual(a.end_ns, a.start_ns)
                self.assertEqual(a.depth, len(stack))
                self.assertEqual(a.parent_id, stack[-1].id if stack else 0)
                stack.append(a)
            else:
                begin = stack.pop()
                self.assertEqual((begin.id, begin.name), (a.id, a.name))
        self.assertEqual([s for s in stacks.values() if s], [])

    def test_all_bring_the_same(self):
        by_thread = self.tracer.deliver(ORDER_THREAD).activities
        expected = sorted(map(self.key, by_thread))
        self.assertEqual(sorted(map(self.key, self.tracer.deliver(ORDER_START).activities)),
                         expected)
        ends = [a for a in self.tracer.deliver(ORDER_TIME).activities if a.phase == PHASE_END]
        self.assertEqual(sorted(map(self.key, ends)), expected)
        again = self.tracer.deliver(ORDER_THREAD).activities
        self.assertEqual([(self.key(a), a.id) for a in again],
                         [(self.key(a), a.id) for a in by_thread])

    def test_an_earlier_end_cuts(self):
        times = [a.start_ns for a in self.tracer.deliver().activities]
        middle = (min(times) + max(times)) // 2
        delivery = self.tracer.deliver(end_ns=middle)
        self.assertTrue(all(a.end_ns <= middle for a in delivery.activities))
        delivery.recording()


class Snapshots(HostCase):
    def test_of_a_running_tracer(self):
        tracer = self.make(filters=WITHOUT_HOST)
        for n in range(1, 6):
            work(300)
            recording = tracer.snapshot().recording()
            self.assertEqual(recording.count(leaf), 300 * n)
            here = recording.of(Snapshots.test_of_a_running_tracer)
            self.assertEqual(here.flags, {BEGAN_BEFORE, ENDED_BY_STOP})
        tracer.stop()
        self.assertEqual(tracer.recording().count(leaf), 1500)
        self.assertEqual(tracer.snapshot().recording().count(leaf), 1500, "also of a stopped one")
        self.assertEqual(tracer.stats()["events_dropped"], 0)

    def test_open_calls_go_on(self):
        tracer = self.make(filters=WITHOUT_HOST)

        def middle():
            return tracer.snapshot().recording()
        recording = down(30, middle)
        self.assertEqual([c.flags for c in recording.all(down)], [{ENDED_BY_STOP}] * 31)
        tracer.stop()
        recording = tracer.recording()
        self.assertEqual([c.flags for c in recording.all(down)], [frozenset()] * 31)
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_while_threads_run(self):
        """The threads have a fixed amount of work, since a slow reader would never catch up with them
        otherwise."""
        tracer = self.make(filters=WITHOUT_HOST)
        threads = [threading.Thread(target=spin, args=(200,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        deliveries = []
        while len(deliveries) < 6 or any(thread.is_alive() for thread in threads):
            deliveries.append(tracer.snapshot(order=ORDERS[len(deliveries) % 3]))
            time.sleep(0.02)
        tracer.stop()
        recording = tracer.recording()
        self.assertEqual((recording.count(down), recording.count(leaf)), (400 * 11, 400))
        self.assertEqual(recording.stats["events_dropped"], 0)
        self.assertEqual(recording.stats["events_repaired"], 0)
        counts = [delivery.count for delivery in deliveries]
        self.assertEqual(counts, sorted(counts))
        self.assertTrue(0 < counts[0] < counts[-1] <= len(recording.calls), counts)
        for delivery in deliveries:
            delivery.recording()  # checks the nesting

    def test_of_a_ring(self):
        """Each snapshot has the most recent calls, below the open calls, however often the ring has wrapped."""
        tracer = self.make(filters=WITHOUT_HOST, ring_bytes=100_000)

        def rounds():
            for _ in range(3):
                work(10_000)
                yield tracer.snapshot().recording()
        for recording in down(20, lambda: list(rounds())):
            self.assertGreater(recording.count(leaf), 1_000)
            frames = recording.all(down)
            self.assertEqual([c.flags for c in frames], [{BEGAN_BEFORE, ENDED_BY_STOP}] * 21)
            for frame, child in zip(frames, frames[1:]):
                self.assertIs(child.parent, frame)
            # work() has begun again in each round, and returned before the snapshot.
            self.assertEqual({c.parent.label for c in recording.all(leaf)}, {"work"})
            self.assertEqual({c.parent.label for c in recording.all(work)}, {"rounds"})
        tracer.stop()
        self.assertGreater(tracer.recording().count(leaf), 1_000)
        self.assertLessEqual(tracer.stats()["bytes_held"], 2 * 70_000, "two chunks a thread")
        self.assertGreater(tracer.stats()["events_dropped"], 30_000)

    def test_by_a_slow_reader(self):
        """A ring still drops old chunks while it is read, and does not grow beyond twice its size."""
        for bound in ({"ring_bytes": 200_000}, {"ring_ns": 1}):
            tracer = self.make(filters=WITHOUT_HOST, **bound)
            work(20_000)
            before = tracer.stats()["events_dropped"]
            tracer.snapshot(during=lambda: work(60_000)).recording()
            stats = tracer.stats()
            self.assertLessEqual(stats["bytes_held"], 2 * 200_000 + 70_000, bound)
            self.assertGreater(stats["events_dropped"] - before, 60_000, bound)
            work(100)
            tracer.stop()
            self.assertEqual(tracer.recording().all(work)[-1].below(), ["leaf"] * 100)

    def test_of_a_ring_by_time(self):
        tracer = self.make(filters=WITHOUT_HOST, ring_ns=2_000_000)
        begin = time.perf_counter()
        for _ in range(10_000):  # whole chunks are dropped, and filling one may take long
            work(100)
            if time.perf_counter() - begin > 0.02 and tracer.stats()["events_dropped"]:
                break
        calls = [c for c in tracer.snapshot().recording().all(leaf) if not c.flags]
        tracer.stop()
        self.assertGreater(calls[-1].end - calls[0].start, 1_900_000, "at least so much")
        self.assertGreater(tracer.stats()["events_dropped"], 0)


class Restart(HostCase):
    def test_appends(self):
        tracer = self.make()
        down(3, leaf)
        tracer.stop()
        first = tracer.recording()
        work(1000)  # not recorded
        between = time.time_ns()
        tracer.restart()
        down(4, leaf)
        tracer.stop()
        recording = tracer.recording()
        self.assertEqual(recording.count(down), 4 + 5)
        self.assertEqual(recording.count(work), 0)
        here = recording.all(Restart.test_appends)
        self.assertEqual([c.flags for c in here], [{BEGAN_BEFORE, ENDED_BY_STOP}] * 2)
        self.assertEqual(here[0].end, first.of(Restart.test_appends).end)
        self.assertLess(here[0].end, between + 1_000_000)
        self.assertGreater(here[1].start, between - 1_000_000)
        self.assertEqual(len(recording.threads), len(first.threads), "the same thread")

    def test_many_times_and_with_threads(self):
        tracer = self.make()
        for n in range(20):
            thread = threading.Thread(target=work, args=(10,), name=f"run {n}")
            thread.start()
            thread.join()
            tracer.stop()
            tracer.restart()
        tracer.stop()
        recording = tracer.recording()
        for n in range(20):
            calls = recording.thread(f"run {n}").calls
            self.assertEqual(sum(c.label == "leaf" for c in calls), 10)
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_a_thread_that_works_through_runs(self):
        end = threading.Event()

        def work_on():
            while not end.is_set():
                spin(1)
        thread = threading.Thread(target=work_on, name="spinner")
        thread.start()
        tracer = self.make()
        for _ in range(10):
            time.sleep(0.002)
            tracer.stop()
            tracer.restart()
        time.sleep(0.002)
        tracer.stop()
        end.set()
        thread.join()
        roots = [r for r in tracer.recording().thread("spinner").roots]
        self.assertTrue(5 <= len(roots) <= 11, roots)
        self.assertTrue(all(BEGAN_BEFORE in r.flags for r in roots))

    def test_states(self):
        tracer = self.make()
        for call in (tracer.restart, tracer.deliver):
            with self.assertRaises(abi_host.Failed) as caught:
                call()
            self.assertEqual(caught.exception.status, abi_host.E_STATE)
        tracer.stop()
        with self.assertRaises(abi_host.Failed) as caught:
            tracer.stop()
        self.assertEqual(caught.exception.status, abi_host.E_STATE)
        tracer.destroy()
        with self.assertRaises(abi_host.Failed):
            tracer.restart()


class Several(HostCase):
    def test_with_different_filters(self):
        only = self.make(filters=[(abi_host.INCLUDE, abi_host.FILE_PREFIX, __file__)])
        without = self.make(filters=[(abi_host.EXCLUDE, abi_host.FILE_PREFIX, __file__)])
        every = self.make()
        no_c = self.make(flags=abi_host.NO_C_CALLS)
        down(5, lambda: "x".swapcase())
        for tracer in (no_c, every, without, only):
            tracer.stop()
        rows = [(only, 6, 1), (without, 0, 0), (every, 6, 1), (no_c, 6, 0)]
        for tracer, downs, lens in rows:
            recording = tracer.recording()
            self.assertEqual((recording.count(down), recording.count("[str.swapcase]")), (downs, lens))
            self.assertEqual(recording.stats["events_repaired"], 0)
        self.assertEqual(without.recording().count(Several.test_with_different_filters), 0)

    def test_one_that_begins_where_another_has_switched_off(self):
        """The same for a tracer that is restarted after another has switched code off."""
        without = self.make(filters=[(abi_host.EXCLUDE, abi_host.FILE_PREFIX, __file__)])
        work(5)
        every = self.make()
        work(7)
        every.stop()
        work(11)
        every.restart()
        work(13)
        every.stop()
        without.stop()
        self.assertEqual((every.recording().count(leaf), without.recording().count(leaf)), (20, 0))

    def test_that_begin_and_end_in_any_order(self):
        first = self.make()
        work(10)
        second = self.make()
        work(20)
        first.stop()
        work(30)
        third = self.make()
        work(40)
        second.stop()
        third.stop()
        work(50)
        self.assertEqual([t.recording().count(leaf) for t in (first, second, third)], [30, 90, 40])

    def test_of_two_hosts(self):
        other = self.new_host()
        a, b = self.make(), self.make(host=other)
        work(7)
        a.stop()
        b.stop()
        self.assertEqual((a.recording().count(leaf), b.recording().count(leaf)), (7, 7))

    def test_more_than_there_is_room_for(self):
        tracers = []
        with self.assertRaises(abi_host.Failed) as caught:
            for _ in range(100):
                tracers.append(self.make())
        self.assertGreaterEqual(len(tracers), 16)
        self.assertIn("tracers are recording already", caught.exception.text)
        work(3)
        for tracer in tracers:
            tracer.stop()
        for tracer in tracers:
            self.assertEqual(tracer.recording().count(leaf), 3)
        self.make().stop()


@unittest.skipUnless(os.environ.get("KPT_NATIVE"), "the native helper is not built")
class Attach(HostCase):
    def test_each_thread_is_told_once(self):
        native = ctypes.CDLL(os.environ["KPT_NATIVE"])
        host = self.new_host(thread_attach=ctypes.cast(native.native_attach, ctypes.c_void_p).value)
        tracer = self.make(host=host)
        thread = threading.Thread(target=work, args=(5,))
        thread.start()
        thread.join()  # returns a little before the OS has ended the thread
        task = f"/proc/self/task/{thread.native_id}"
        while os.path.exists(task):
            time.sleep(0.001)
        work(1)
        tracer.stop()
        threads = tracer.deliver().threads.values()
        self.assertGreaterEqual(len(threads), 2)
        for t in threads:
            self.assertEqual(t.host_value, t.os_tid << 8 | 0xA5)
        ended = {t.os_tid for t in threads if t.flags & abi_host.THREAD_ENDED}
        self.assertIn(thread.native_id, ended)
        self.assertNotIn(os.getpid(), ended)


if __name__ == "__main__":
    unittest.main()
