"""Calls that were open when the trace began, or when it ended: at any depth, in every thread, and flagged."""

import sys
import threading
import time
import unittest

import kpytrace
from support import BEGAN_BEFORE, Case, ENDED_BY_STOP, FREE_THREADED, define


def leaf():
    pass


def down(n, then):
    """Calls THEN below N frames."""
    return down(n - 1, then) if n else then()


class OpenCalls(Case):
    def start(self, **options):
        self.trace = kpytrace.start(self.path, **options)

    def stop(self):
        self.trace.stop()
        return self.read(self.trace)

    def test_at_start(self):
        before = time.time_ns()
        for depth in (1, 10, 200, 5000):
            limit = sys.getrecursionlimit()
            sys.setrecursionlimit(depth + 1000)
            down(depth, self.start)
            sys.setrecursionlimit(limit)
            leaf()
            recording = self.stop()
            frames = recording.all(down)
            self.assertEqual(len(frames), depth + 1, "no cap as in T21")
            self.assertTrue(all(f.flags == {BEGAN_BEFORE} for f in frames))
            self.assertEqual(len({f.start for f in frames}), 1, "they begin with the trace")
            self.assertGreaterEqual(frames[0].start, before - 1_000_000)
            for frame, child in zip(frames, frames[1:]):
                self.assertIs(child.parent, frame)
            caller = recording.of(OpenCalls.test_at_start)
            self.assertIs(frames[0].parent, caller)
            self.assertEqual(caller.flags, {BEGAN_BEFORE, ENDED_BY_STOP})
            self.assertIn("leaf", caller.below())

    def test_lines_of_open_calls(self):
        line = sys._getframe().f_lineno
        self.start()
        here = self.stop().of(OpenCalls.test_lines_of_open_calls)
        self.assertIn(here.args["line"], (line + 1, line + 2))

    def test_at_stop(self):
        self.start()
        recording = down(50, self.stop)
        frames = recording.all(down)
        self.assertEqual(len(frames), 51)
        self.assertTrue(all(f.flags == {ENDED_BY_STOP} for f in frames))
        ends = {c.end for c in recording.calls if ENDED_BY_STOP in c.flags}
        self.assertEqual(len(ends), 1, "one end time (T18)")
        self.assertEqual(max(c.end for c in recording.calls), ends.pop())

    def test_at_start_and_stop(self):
        self.start()
        recording = self.stop()
        here = recording.of(OpenCalls.test_at_start_and_stop)
        self.assertEqual(here.flags, {BEGAN_BEFORE, ENDED_BY_STOP})
        self.assertEqual({c.flags for c in recording.threads[0].roots},
                         {frozenset({BEGAN_BEFORE, ENDED_BY_STOP})})

    def test_calls_within_the_trace_have_no_flag(self):
        recording = self.record(lambda: down(5, leaf))
        self.assertEqual({c.flags for c in recording.all(down)}, {frozenset()})

    def test_in_a_generator(self):
        def generate():
            self.start()
            yield 1
            leaf()
            yield 2
        self.assertEqual(list(generate()), [1, 2])
        recording = self.stop()
        resumes = recording.all(generate)
        self.assertEqual([c.flags for c in resumes],
                         [frozenset({BEGAN_BEFORE}), frozenset(), frozenset()])
        self.assertEqual(resumes[1].below(), ["leaf"])

    def test_begun_below_and_stopped_above(self):
        """The frames that existed at the start return one by one, up to a frame that stops the trace."""
        def inner():
            self.start()

        def middle():
            inner()
            leaf()

        def outer():
            middle()
            leaf()
            return self.stop()
        recording = outer()
        for function in (inner, middle):
            self.assertEqual(recording.of(function).flags, {BEGAN_BEFORE})
        self.assertEqual(recording.of(outer).flags, {BEGAN_BEFORE, ENDED_BY_STOP})
        self.assertEqual(recording.of(middle).below(), ["inner", "leaf"])
        self.assertEqual(recording.of(outer).below()[:2], ["middle", "leaf"])
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_in_other_threads(self):
        """One thread works, and one only waits, from the start to the end."""
        ready, go, end = threading.Barrier(3), threading.Event(), threading.Event()

        def wait(event):
            ready.wait()
            event.wait()
            leaf()

        def worker():
            down(20, lambda: wait(go))

        def waiter():
            down(30, lambda: wait(end))
        threads = [threading.Thread(target=f, name=f.__name__) for f in (worker, waiter)]
        for thread in threads:
            thread.start()
        ready.wait()
        while not all(self.is_waiting(thread) for thread in threads):
            time.sleep(0.001)
        self.start()
        go.set()
        threads[0].join()
        recording = self.stop()
        end.set()
        threads[1].join()
        labels = [c for c in recording.thread("worker").calls if c.function == "down"]
        self.assertEqual(len(labels), 21)
        self.assertTrue(all(c.flags == {BEGAN_BEFORE} for c in labels))
        self.assertEqual(recording.of(leaf).parent.label, "wait")
        if FREE_THREADED:  # the frames of a running thread can't be read there
            return
        labels = [c for c in recording.thread("waiter").calls if c.function == "down"]
        self.assertEqual(len(labels), 31)
        self.assertTrue(all(c.flags == {BEGAN_BEFORE, ENDED_BY_STOP} for c in labels))
        self.assertEqual(recording.thread("waiter").tid, threads[1].native_id)

    @staticmethod
    def is_waiting(thread):
        frame = sys._current_frames().get(thread.ident)
        names = set()
        while frame:
            names.add(frame.f_code.co_name)
            frame = frame.f_back
        return "down" in names and "acquire" not in names and "wait" in names

    def test_filters_hold_for_open_calls(self):
        path = str(self.folder / "other.py")
        other = define("def other(then):\n    return then()\n", "other", path)
        other(lambda: self.start(exclude=path))
        leaf()
        recording = self.stop()
        self.assertEqual(recording.count("other"), 0)
        self.assertEqual(recording.of("<lambda>").parent.label, "test_filters_hold_for_open_calls")


class Times(Case):
    def test_a_sleep_takes_its_time(self):
        before = time.time_ns()
        recording = self.record(lambda: time.sleep(0.05))
        after = time.time_ns()
        sleep = recording.of("[sleep]")
        self.assertGreaterEqual(sleep.duration, 50_000_000 - 100_000)
        self.assertLess(sleep.duration, after - before)
        self.assertLess(before - 2_000_000, sleep.start)
        self.assertLess(sleep.end, after + 2_000_000)

    def test_times_agree_with_the_clocks(self):
        marks = []

        def tick():
            marks.append((time.time_ns(), time.perf_counter_ns()))

        def work():
            for _ in range(5):
                tick()
                time.sleep(0.01)
        calls = self.record(work).all(tick)
        for call, (wall, _) in zip(calls, marks):
            self.assertLess(call.start - 2_000_000, wall)
            self.assertLess(wall, call.end + 2_000_000)
        for first, then, mark, last in zip(calls, calls[1:], marks, marks[1:]):
            real = last[1] - mark[1]
            self.assertLess(abs((then.start - first.start) - real), 2_000_000 + real // 100)

    def test_a_busy_loop_is_as_long_as_it_is(self):
        def work():
            begin = time.perf_counter_ns()
            while time.perf_counter_ns() - begin < 20_000_000:
                pass
            return time.perf_counter_ns() - begin
        call = self.record(work).of(work)
        self.assertGreaterEqual(call.duration, self.result - 50_000)
        self.assertLess(call.duration, self.result + 20_000_000)


if __name__ == "__main__":
    unittest.main()
