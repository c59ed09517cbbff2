"""Threads: the calls of each thread are recorded separately, with the id of the OS and the name that the program
has set, for every way to start a thread, and whether or not it still runs."""

import _thread
import concurrent.futures
import ctypes
import os
import sys
import threading
import time
import unittest

import kpytrace
from support import BEGAN_BEFORE, Case, MONITORING, read_chrome, run_python

NATIVE = os.environ.get("KPT_NATIVE")


def leaf():
    return threading.get_native_id()


def plain():
    pass


def work(n=3):
    return [leaf() for _ in range(n)]


class Threads(Case):
    def thread_of(self, recording, function):
        """Returns the only thread that called a function."""
        thread, = (t for t in recording.threads if any(c.label == function for c in t.calls))
        return thread

    def test_started_through_threading(self):
        tids = {}

        def job(name):
            tids[name] = leaf()

        def start():
            threads = [threading.Thread(target=job, args=(f"wörker {i}",), name=f"wörker {i}")
                       for i in range(5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        recording = self.record(start)
        self.assertEqual(len(tids), 5)
        for name, tid in tids.items():
            thread = recording.thread(name)
            self.assertEqual(thread.tid, tid)
            call, = (c for c in thread.calls if c.function == "job")
            self.assertEqual(call.below()[0], "leaf")
            self.assertEqual(call.flags, frozenset())
        self.assertEqual(recording.thread("MainThread").tid, os.getpid())
        self.assertEqual(recording.count(job), 5)

    def test_that_ran_already(self):
        begin, end = threading.Event(), threading.Event()

        def job():
            begin.wait()
            work()
            end.wait()
        thread = threading.Thread(target=job, name="early")
        thread.start()
        trace = kpytrace.start(self.path)
        begin.set()
        end.set()
        thread.join()
        trace.stop()
        recording = self.read(trace)
        early = recording.thread("early")
        self.assertEqual(early.tid, thread.native_id)
        self.assertEqual([c.label for c in early.calls].count("leaf"), 3)

    def test_started_through_the_low_level_module(self):
        done, tids = threading.Event(), []

        def job():
            tids.append(leaf())
            done.set()

        def start():
            _thread.start_new_thread(job, ())
            done.wait()
        recording = self.record(start)
        if MONITORING:
            self.assertEqual([self.thread_of(recording, "job").tid], tids)
            self.assertTrue(self.thread_of(recording, "job").name, "the system's, where it has none")
            self.assertEqual(recording.stats["threads_unreached"], 0)
        else:  # not reached, and counted: see OutOfReach
            self.assertEqual(recording.count(job), 0)

    def test_started_by_c(self):
        if not NATIVE:
            self.skipTest("the native helper is not built")
        tids = []

        @ctypes.CFUNCTYPE(None)
        def job():
            tids.append(leaf())
        native = ctypes.CDLL(NATIVE)
        recording = self.record(lambda: [native.native_in_thread(job) for _ in range(3)])
        self.assertEqual(self.result, [0, 0, 0])
        self.assertEqual(len(tids), 3)
        if MONITORING:
            self.assertEqual(recording.count(leaf), 3)
            threads = [t for t in recording.threads if any(c.label == "leaf" for c in t.calls)]
            self.assertEqual({t.tid for t in threads}, set(tids))
            self.assertEqual({t.name for t in threads}, {"native"})

    def test_started_by_c_before(self):
        """A thread that runs Python when the trace begins is reached on every version."""
        if not NATIVE:
            self.skipTest("the native helper is not built")
        inside, go, tids = threading.Event(), threading.Event(), []

        @ctypes.CFUNCTYPE(None)
        def job():
            inside.set()
            go.wait()
            tids.append(leaf())
        native = ctypes.CDLL(NATIVE)
        starter = threading.Thread(target=native.native_in_thread, args=(job,))
        starter.start()
        inside.wait()
        recording = self.record(lambda: [go.set(), starter.join()])
        thread = self.thread_of(recording, "leaf")
        self.assertEqual(([thread.tid], thread.name), (tids, "native"))
        call, = (c for c in thread.calls if c.label == "job")
        self.assertIn(BEGAN_BEFORE, call.flags)
        self.assertIn("leaf", call.below())
        self.assertEqual(recording.stats["threads_unreached"], 0)

    def test_a_pool(self):
        def task(n):
            return n, leaf()

        def use():
            with concurrent.futures.ThreadPoolExecutor(3, "pool") as pool:
                return list(pool.map(task, range(60)))
        recording = self.record(use)
        self.assertEqual([n for n, _ in self.result], list(range(60)))
        calls = {t.tid: sum(c.label == "task" for c in t.calls) for t in recording.threads}
        expected = [tid for _, tid in self.result]
        self.assertEqual({tid: n for tid, n in calls.items() if n},
                         {tid: expected.count(tid) for tid in set(expected)})
        self.assertTrue(all(t.name.startswith("pool_") for t in recording.threads
                            if calls[t.tid]))

    def test_many_that_end(self):
        def job(n):
            work(n)

        def start():
            for n in range(100):
                thread = threading.Thread(target=job, args=(n,), name=f"short {n}")
                thread.start()
                thread.join()
        recording = self.record(start)
        for n in range(100):
            labels = [c.label for c in recording.thread(f"short {n}").calls]
            self.assertEqual(labels.count("leaf"), n)
        self.assertEqual(recording.stats["threads"], 101)
        self.assertEqual(recording.stats["events_dropped"], 0)

    def test_at_once(self):
        """Calls of different threads are not mixed, though the threads alternate in the middle of calls."""
        def make(n):
            def spin(depth):
                if depth:
                    spin(depth - 1)
                    spin(depth - 1)
                else:
                    time.sleep(0)
            spin.__code__ = spin.__code__.replace(co_name=f"spin_{n}")
            return spin
        spins = [make(n) for n in range(4)]

        def start():
            threads = [threading.Thread(target=spin, args=(9,), name=f"spinner {n}")
                       for n, spin in enumerate(spins)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        recording = self.record(start)
        for n in range(4):
            labels = [c.label for c in recording.thread(f"spinner {n}").calls if "spin" in c.label]
            self.assertEqual(labels, [f"spin_{n}"] * 1023)
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_names_that_are_changed_or_odd(self):
        for name in ('quo"te', "new\nline", "ü" * 100, "🐍" * 50):
            def start():
                thread = threading.Thread(target=leaf, name=name)
                thread.start()
                thread.join()
            recording = self.record(start)
            thread = self.thread_of(recording, "leaf")
            self.assertTrue(name.startswith(thread.name) and thread.name, thread.name)

    def test_they_go_on_while_it_is_written(self):
        """Replay and writing do not hold the GIL, so another thread never waits for most of that time."""
        def longest_wait():
            """Returns the longest wait as a share of the time that writing takes."""
            ticks, end = [], threading.Event()

            def tick():
                while not end.is_set():
                    ticks.append(time.perf_counter())
                    time.sleep(0.0005)
            trace = kpytrace.start(c_calls=False)
            for _ in range(100_000):
                plain()
            trace.stop()
            thread = threading.Thread(target=tick)
            thread.start()
            begin = time.perf_counter()
            trace.write(self.path)
            took = time.perf_counter() - begin
            end.set()
            thread.join()
            trace.close()
            within = [begin] + [t for t in ticks if begin < t < begin + took] + [begin + took]
            return max(b - a for a, b in zip(within, within[1:])) / took
        # A busy machine may also make the thread wait, but not each time.
        self.assertLess(min(longest_wait() for _ in range(5)), 0.5)

    def test_this_thread_only(self):
        def start():
            thread = threading.Thread(target=work, args=(50,))
            thread.start()
            thread.join()
            work(2)
        recording = self.record(start, this_thread=True)
        self.assertEqual(recording.count(leaf), 2)
        self.assertEqual(len(recording.threads), 1)

    def test_started_and_stopped_by_other_threads(self):
        """One thread calls start, another calls stop, and a third works."""
        state = {}

        def in_thread(function):
            thread = threading.Thread(target=function, name=function.__name__)
            thread.start()
            thread.join()

        def begin():
            state["trace"] = kpytrace.start(self.path)

        def end():
            state["trace"].stop()
        in_thread(begin)
        in_thread(work)
        work(5)
        in_thread(end)
        recording = self.read(state["trace"])
        self.assertEqual(recording.count(leaf), 8)
        self.assertEqual([c.label for c in recording.thread("work").calls].count("leaf"), 3)

    def test_the_profile_hook_of_threading_stays(self):
        seen = []

        def hook(*args):
            seen.append(args[1])
        threading.setprofile(hook)
        try:
            self.record(work)
            self.assertIs(threading._profile_hook, hook)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        finally:
            threading.setprofile(None)
        self.assertIn("call", seen)

    def test_unexpected_c_returns(self):  # seed 000, test 3
        """A thread is inside a C call when one trace ends, and leaves it during the next."""
        program = f"""
import threading, time, kpytrace
lock = threading.Lock()
lock.acquire()
event1, event2, event3 = threading.Event(), threading.Event(), threading.Event()
def run():
    event1.set()
    event2.wait()
    lock.acquire()
    event3.set()
threading.Thread(target=run, name="runner", daemon=True).start()
with kpytrace.trace():
    event1.wait()
    event2.set()
    time.sleep(0.1)
with kpytrace.trace({str(self.path)!r}) as t:
    lock.release()
    event3.wait()
print(t.stats()["events_repaired"])
"""
        reply = run_python("-W", "error", "-c", program, cwd=self.folder)
        self.assertEqual((reply.returncode, reply.stderr), (0, ""))
        self.assertLessEqual(int(reply.stdout), 2)
        recording = read_chrome(self.path)
        recording.check_nesting()
        self.assertIn("run", [c.label for c in recording.thread("runner").calls])


@unittest.skipIf(MONITORING, "every thread can be reached")
class OutOfReach(Case):
    """3.10 and 3.11: threads of _thread and of C that start later; see docs/python_tracer.md."""

    def unreached(self, work):
        return self.record(work).stats["threads_unreached"]

    def start(self, job):
        """Starts JOB with _thread. Returns when it runs."""
        begun = threading.Event()

        def run():
            begun.set()
            job()
        _thread.start_new_thread(run, ())
        begun.wait()

    def test_those_that_still_run(self):
        done = threading.Event()
        self.addCleanup(done.set)
        self.assertEqual(self.unreached(lambda: [self.start(done.wait) for _ in range(3)]), 3)

    def test_those_that_have_ended(self):
        def work():
            for _ in range(5):
                done = threading.Lock()
                done.acquire()
                self.start(done.release)
                done.acquire()
        self.assertEqual(self.unreached(work), 5)
        self.assertEqual(self.unreached(leaf), 0, "each trace counts its own")

    def test_those_of_c(self):
        if not NATIVE:
            self.skipTest("the native helper is not built")
        job = ctypes.CFUNCTYPE(None)(leaf)
        native = ctypes.CDLL(NATIVE)
        self.assertEqual(self.unreached(lambda: native.native_in_thread(job)), 1)

    def test_those_of_threading_are_none(self):
        def work():
            for _ in range(5):
                thread = threading.Thread(target=leaf)
                thread.start()
                thread.join()
        self.assertEqual(self.unreached(work), 0)

    def test_one_that_gets_another_profile_function(self):
        begin, end = threading.Event(), threading.Event()

        def job():
            begin.wait()
            sys.setprofile(lambda *args: None)
            end.set()
            done.wait()
        done = threading.Event()
        thread = threading.Thread(target=job)
        thread.start()
        self.assertEqual(self.unreached(lambda: [begin.set(), end.wait()]), 1)
        done.set()
        thread.join()


if __name__ == "__main__":
    unittest.main()
