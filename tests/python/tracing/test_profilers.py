"""Other tools: profilers, debuggers and coverage work as without us, and we work beside them."""

import bdb
import cProfile
import io
import os
import pdb
import pstats
import re
import sys
import threading
import trace
import unittest

from support import Case, FREE_THREADED, MONITORING, VERSION, run_python


def leaf():
    return 1


def work(n=10):
    return [leaf() for _ in range(n)]


def with_loop(n):
    total = 0
    for i in range(n):
        total += leaf()
    return total


class Profilers(Case):
    @staticmethod
    def leaves(profile):
        """Returns the number of calls of leaf that a cProfile has recorded."""
        return {key[2]: value[0] for key, value in pstats.Stats(profile).stats.items()}["leaf"]

    def test_cprofile_within(self):
        """On 3.11 and before cProfile replaces our profile function on its thread."""
        profile = cProfile.Profile()

        def run():
            work(5)
            profile.enable()
            work(10)
            profile.disable()
        recording = self.record(run)
        self.assertEqual(self.leaves(profile), 10)
        self.assertEqual(recording.count(leaf), 15 if MONITORING else 5)

    @unittest.skipIf(FREE_THREADED, "cProfile's own lists are not safe there")
    def test_cprofile_within_and_threads(self):
        """We continue on threads that cProfile does not profile."""
        profile = cProfile.Profile()

        def run():
            profile.enable()
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            work(5)
            profile.disable()
        recording = self.record(run)
        # From 3.12 on cProfile is a tool of sys.monitoring, which all threads share.
        self.assertEqual(self.leaves(profile), 15 if MONITORING else 5)
        self.assertEqual(recording.count(leaf), 15 if MONITORING else 10)

    def test_cprofile_around(self):
        """On 3.11 and before cProfile pauses while we record, and continues afterwards."""
        profile = cProfile.Profile()
        profile.enable()
        try:
            work(3)
            recording = self.record(work)
            work(5)
        finally:
            profile.disable()
        self.assertEqual(recording.count(leaf), 10)
        self.assertEqual(self.leaves(profile), 18 if MONITORING else 8)

    def test_a_profile_function_of_before_is_restored(self):
        seen = []

        def profiler(frame, event, arg):
            seen.append((event, frame.f_code.co_name))
        sys.setprofile(profiler)
        try:
            recording = self.record(work)
            self.assertIs(sys.getprofile(), profiler)
            seen.clear()
            work(1)
        finally:
            sys.setprofile(None)
        self.assertEqual(recording.count(leaf), 10)
        self.assertIn(("call", "leaf"), seen)

    def test_profile_functions_of_other_threads_are_restored(self):
        begin, end, seen, kept = threading.Event(), threading.Event(), [], []

        def profiler(frame, event, arg):
            seen.append((event, frame.f_code.co_name))

        def run():
            sys.setprofile(profiler)
            begin.set()
            end.wait()
            seen.clear()
            leaf()
            kept.append(sys.getprofile())
            sys.setprofile(None)
        thread = threading.Thread(target=run)
        thread.start()
        begin.wait()
        self.record(work)
        end.set()
        thread.join()
        self.assertEqual(kept, [profiler])
        self.assertIn(("call", "leaf"), seen)

    def test_a_profile_function_set_within(self):
        """It works. On 3.11 and before it replaces ours on that thread, and stays after us."""
        seen = []

        def profiler(frame, event, arg):
            seen.append((event, frame.f_code.co_name))

        def run():
            work()
            sys.setprofile(profiler)
            work()
        try:
            recording = self.record(run)
            self.assertIs(sys.getprofile(), profiler)
        finally:
            sys.setprofile(None)
        self.assertEqual(seen.count(("call", "leaf")), 10)
        self.assertEqual(recording.count(leaf), 20 if MONITORING else 10)

    def test_nothing_is_left_behind(self):
        self.record(work)
        self.assertIsNone(sys.getprofile())
        self.assertIsNone(sys.gettrace())
        self.assertIsNone(threading._profile_hook)


class Debuggers(Case):
    maxDiff = None

    def test_a_trace_function(self):
        def traced(function):
            lines = []

            def tracer(frame, event, arg):
                if frame.f_code in (with_loop.__code__, leaf.__code__):
                    lines.append((event, frame.f_code.co_name,
                                  frame.f_lineno - frame.f_code.co_firstlineno))
                    return tracer
                return None
            old = sys.gettrace()
            sys.settrace(tracer)
            try:
                function()
            finally:
                sys.settrace(old)
            return lines
        expected = traced(lambda: with_loop(3))
        recording = self.record(lambda: traced(lambda: with_loop(3)))
        self.assertEqual(self.result, expected)
        self.assertEqual(recording.count(leaf), 3)

    def test_bdb(self):
        class Debugger(bdb.Bdb):
            def __init__(self):
                super().__init__()
                self.stops = []

            def user_line(self, frame):
                if frame.f_code in (with_loop.__code__, leaf.__code__):
                    self.stops.append(frame.f_code.co_name)
                self.set_step()

            def user_return(self, frame, value):
                self.set_step()

        def debug():
            debugger = Debugger()
            debugger.runcall(with_loop, 2)
            return debugger.stops
        expected = debug()
        recording = self.record(debug)
        self.assertEqual(self.result, expected)
        self.assertEqual(recording.count(leaf), 2)

    def test_breakpoints_at_a_line(self):
        class Debugger(bdb.Bdb):
            hits = 0

            def user_line(self, frame):
                if self.break_here(frame):
                    self.hits += 1
                self.set_continue()

        def debug():
            debugger = Debugger()
            debugger.set_break(debugger.canonic(__file__), leaf.__code__.co_firstlineno + 1)
            debugger.runcall(with_loop, 4)
            debugger.clear_all_breaks()
            return debugger.hits
        expected = debug()
        self.record(debug)
        self.assertEqual(self.result, expected)
        self.assertGreater(expected, 0)


    def test_pdb(self):
        script = "step\nstep\nnext\np total, i\nbreak leaf\ncontinue\nreturn\np 6 * 7\n" \
                 "clear 1\ncontinue\n"

        def debug(**options):
            bdb.Breakpoint.clearBreakpoints()
            out = io.StringIO()
            debugger = pdb.Pdb(stdin=io.StringIO(script), stdout=out, nosigint=True, readrc=False,
                               **options)
            debugger.runcall(with_loop, 3)
            return out.getvalue()
        for options in [{}, {"backend": "monitoring"}] if VERSION >= (3, 14) else [{}]:
            expected = debug(**options)
            self.assertIn("42", expected)
            recording = self.record(lambda: debug(**options))
            self.assertIsNone(self.error)
            self.assertEqual(self.result, expected)
            self.assertEqual(recording.count(leaf), 3)


class Coverage(Case):
    def count(self):
        """Returns how often each line was run, counted by the standard library's tool."""
        tool = trace.Trace(count=1, trace=0)
        tool.runfunc(with_loop, 3)
        return {key: n for key, n in tool.results().counts.items()
                if key[0] == with_loop.__code__.co_filename}

    def test_lines(self):
        expected = self.count()
        self.assertGreater(len(expected), 3)
        for options in ({}, {"exclude": "*"}, {"c_calls": False}):
            self.record(self.count, **options)
            self.assertEqual(self.result, expected)


class Commands(Case):
    def test_modules_that_profile(self):
        script = self.folder / "script.py"
        script.write_text("import kpytrace\n"
                          "def leaf(): pass\n"
                          f"with kpytrace.trace({str(self.path)!r}) as t:\n"
                          "    [leaf() for _ in range(7)]\n"
                          "print('calls', t.summary.calls > 7)\n")
        for options in (["-m", "cProfile"], ["-m", "trace", "--count", "-C", str(self.folder)]):
            reply = run_python(*options, str(script), cwd=self.folder)
            self.assertEqual(reply.returncode, 0, reply.stderr)
            self.assertIn("calls True", reply.stdout)
            self.assertTrue(os.path.exists(self.path))
            os.unlink(self.path)


if __name__ == "__main__":
    unittest.main()
