"""Real traces: the file has the calls of this Python. Needs the backend for it beside the plugin."""

import collections
import gc
import os
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case, TAG, run_python

import kpytrace


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def count_to(n):
    yield from range(n)


def fail():
    raise ValueError("on purpose")


WHY_SKIPPED = f"there is no backend for CPython {TAG} beside the plugin"


@unittest.skipUnless(BACKEND.exists(), WHY_SKIPPED)
class Backend(Case):
    def trace(self, work, **options):
        with self.no_warnings(), kpytrace.trace(self.path, **options) as t:
            work()
        self.check_nesting()
        self.assertEqual(t.summary.calls, len(self.calls()))
        self.assertIsNone(t.summary.noop)
        return t.summary

    def check_nesting(self):
        """Checks ids and parents, and that a child lies within its parent."""
        calls = {c["args"]["Python id"]: c for c in self.calls()}
        self.assertEqual(len(calls), len(self.calls()), "an id is there twice")
        for call in calls.values():
            parent = call["args"]["Python parent id"]
            if parent is not None:
                outer = calls[parent]
                self.assertEqual(call["tid"], outer["tid"])
                self.assertGreaterEqual(call["ts"], outer["ts"] - 0.001)
                self.assertLessEqual(call["ts"] + call["dur"], outer["ts"] + outer["dur"] + 0.002)

    def counts(self):
        """Returns the number of calls of each function of this file, by its bare name."""
        mark = os.path.basename(__file__) + "("
        return collections.Counter(name.rpartition(": ")[2] for name in self.names()
                                   if mark in name)

    def test_every_call_is_there(self):
        self.trace(lambda: fib(10))
        self.assertEqual(self.counts()["fib"], 177)
        self.assertTrue(any(name.endswith(f"({fib.__code__.co_firstlineno}): fib")
                            for name in self.names()))

    def test_builtin_functions(self):
        self.trace(lambda: [len("abc") for _ in range(5)])
        self.assertEqual(self.names().count("<built-in function len>"), 5)
        self.trace(lambda: len("abc"), c_calls=False)
        self.assertEqual([name for name in self.names() if "built-in" in name], [])

    def test_generators_and_exceptions(self):
        def work():
            self.assertEqual(sum(count_to(3)), 3)
            self.assertRaises(ValueError, fail)
        self.trace(work)
        self.assertEqual(self.counts()["count_to"], 4, "each resume is a span")
        self.assertEqual(self.counts()["fail"], 1)

    def test_threads_have_their_names(self):
        def work():
            thread = threading.Thread(target=fib, args=(5,), name="a \"worker\"")
            thread.start()
            thread.join()
        summary = self.trace(work)
        self.assertEqual(summary.threads, 2)
        events = self.read_trace()["traceEvents"]
        names = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
        self.assertIn('a "worker"', names)
        self.assertEqual({c["tid"] for c in self.calls() if c["name"].endswith(": fib")},
                         {names['a "worker"']})

    def test_open_calls_are_marked(self):
        self.trace(lambda: None)
        began = [c for c in self.calls() if c["args"].get("began before")]
        self.assertTrue(any("test_open_calls_are_marked" in c["name"] for c in began))
        self.assertTrue(any(c["args"].get("ended by stop") for c in began))

    def test_our_own_calls_stand_at_the_ends_only(self):
        self.trace(lambda: fib(1))
        calls = {c["args"]["Python id"]: c["name"] for c in self.calls()}
        fib_call, = (c for c in self.calls() if c["name"].endswith(": fib"))
        caller = calls[fib_call["args"]["Python parent id"]]
        self.assertTrue(caller.endswith(": <lambda>"), caller)

    def test_collections(self):
        self.trace(gc.collect, gc=True)
        self.assertIn("Python GC", self.names())

    def test_filters_and_bounds(self):
        self.trace(lambda: fib(6), exclude=__file__)
        self.assertEqual(self.counts()["fib"], 0)
        self.trace(lambda: fib(6), include=__file__)
        self.assertEqual(self.counts()["fib"], 25)
        summary = self.trace(lambda: fib(16), max_events=100)
        self.assertLess(summary.calls, 200)
        self.assertGreater(summary.dropped, 0)

    def test_names_of_any_kind(self):
        scope = {}
        exec(compile("def größe(): pass", 'quo"te\\and\nline.py', "exec"), scope)
        self.trace(scope["größe"])
        self.assertTrue(any("größe" in name and 'quo"te\\and\nline.py' in name
                            for name in self.names()))

    def test_times_are_those_of_the_clock(self):
        import time
        before = time.time_ns()
        self.trace(lambda: time.sleep(0.02))
        after = time.time_ns()
        base = self.read_trace()["baseTimeNanoseconds"]
        sleep, = (c for c in self.calls() if c["name"] == "<built-in function sleep>")
        self.assertTrue(20e3 <= sleep["dur"] < (after - before) / 1e3, sleep)
        self.assertTrue(before - 1e6 <= base + sleep["ts"] * 1e3 <= after + 1e6)

    def test_a_trace_that_runs_at_exit_is_written(self):
        program = f"import kpytrace; kpytrace.start({str(self.path)!r}); " \
                  "[len('x') for i in range(7)]"
        reply = run_python("-W", "error", "-c", program)
        self.assertEqual((reply.returncode, reply.stderr), (0, ""))
        self.assertEqual(self.names().count("<built-in function len>"), 7)


if __name__ == "__main__":
    if not BACKEND.exists():
        print(f"skipped: {WHY_SKIPPED}")
        sys.exit(77)  # what ctest knows as skipped
    unittest.main()
