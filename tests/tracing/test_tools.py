"""Beside others: the tool that we are, profilers, debuggers and coverage that work as without us."""

import bdb
import cProfile
import os
import pstats
import sys
import threading
import unittest

import abi_host
import kpytrace
from support import Case, MONITORING, run_python

monitoring = getattr(sys, "monitoring", None)


def leaf():
    return 1


def work(n=10):
    return [leaf() for _ in range(n)]


def with_loop(n):
    total = 0
    for i in range(n):
        total += leaf()
    return total


@unittest.skipUnless(MONITORING, "there is no sys.monitoring")
class ToolId(abi_host.HostCase):
    def tools(self):
        return {i: monitoring.get_tool(i) for i in range(6) if monitoring.get_tool(i)}

    def take(self, *ids):
        for i in ids:
            monitoring.use_tool_id(i, f"other {i}")
            self.addCleanup(monitoring.free_tool_id, i)

    def test_the_default_is_three(self):
        self.assertEqual(self.tools(), {})
        tracer = self.make()
        self.assertEqual(self.tools(), {3: "kpytrace"})
        another = self.make()
        self.assertEqual(self.tools(), {3: "kpytrace"}, "one tool serves all tracers")
        tracer.stop()
        self.assertEqual(self.tools(), {3: "kpytrace"})
        another.stop()
        self.assertEqual(self.tools(), {})

    def test_four_where_three_is_taken(self):
        self.take(3)
        tracer = self.make()
        self.assertEqual(self.tools(), {3: "other 3", 4: "kpytrace"})
        work()
        tracer.stop()
        self.assertEqual(self.tools(), {3: "other 3"})
        self.assertEqual(tracer.recording().count(leaf), 10)

    def test_none_is_free(self):
        self.take(3, 4)
        with self.assertRaises(abi_host.Failed) as caught:
            self.make()
        self.assertEqual(caught.exception.status, abi_host.E_BUSY)
        self.assertIn("tools 3 and 4 are both taken", caught.exception.text)
        with self.assertRaisesRegex(Exception, "tools 3 and 4 are both taken"):
            kpytrace.start()
        self.assertEqual(self.tools(), {3: "other 3", 4: "other 4"})

    def test_asked_for(self):
        for wanted in (1, 2, 5, 4):
            tracer = self.make(tool_id=wanted)
            self.assertEqual(self.tools(), {wanted: "kpytrace"})
            work()
            tracer.stop()
            self.assertEqual(self.tools(), {})
            self.assertEqual(tracer.recording().count(leaf), 10)

    def test_asked_for_and_taken(self):
        self.take(2)
        with self.assertRaises(abi_host.Failed) as caught:
            self.make(tool_id=2)
        self.assertEqual(caught.exception.status, abi_host.E_BUSY)
        self.assertIn("tool 2 is taken", caught.exception.text)
        work()
        self.make().stop()

    def test_asked_for_while_we_are_another(self):
        tracer = self.make()
        with self.assertRaises(abi_host.Failed) as caught:
            self.make(tool_id=5)
        self.assertEqual(caught.exception.status, abi_host.E_BUSY)
        self.assertIn("tool 3", caught.exception.text)
        same = self.make(tool_id=3)
        work()
        same.stop()
        tracer.stop()
        self.assertEqual((same.recording().count(leaf), tracer.recording().count(leaf)), (10, 10))

    def test_taken_before_a_restart(self):
        tracer = self.make()
        tracer.stop()
        self.take(3, 4)
        with self.assertRaises(abi_host.Failed) as caught:
            tracer.restart()
        self.assertEqual(caught.exception.status, abi_host.E_BUSY)
        tracer.deliver()

    def test_seed_monitoring(self):  # seed 000, test 2
        """Torch's id, 2, is free during a run, and everything is after it."""
        with kpytrace.trace():
            self.assertIsNone(monitoring.get_tool(2))
            self.assertEqual(monitoring.get_tool(3), "kpytrace")
        self.assertEqual(self.tools(), {})
        with kpytrace.trace(tool_id=2):
            self.assertEqual(monitoring.get_tool(2), "kpytrace")
        self.assertEqual(self.tools(), {})

    def test_a_tool_like_coverage(self):
        """It disables lines, and must not see them again because of us."""
        lines, calls = [], []

        def on_line(code, line):
            lines.append((code.co_name, line))
            return monitoring.DISABLE

        def on_start(code, offset):
            calls.append(code.co_name)
        self.take(1)
        monitoring.register_callback(1, monitoring.events.LINE, on_line)
        monitoring.register_callback(1, monitoring.events.PY_START, on_start)
        monitoring.set_events(1, monitoring.events.LINE | monitoring.events.PY_START)
        self.addCleanup(monitoring.set_events, 1, 0)
        with_loop(3)
        before = [name for name, _ in lines].count("with_loop")
        tracer = self.make()
        with_loop(3)
        with_loop(3)
        tracer.stop()
        with_loop(3)
        monitoring.set_events(1, 0)
        self.assertEqual(tracer.recording().count(leaf), 6)
        self.assertEqual(calls.count("leaf"), 12, "its events go on")
        # A start must undo our own DISABLEs, which undoes those of all tools: once a start.
        self.assertLessEqual([name for name, _ in lines].count("with_loop"), 2 * before)

    def test_somebody_frees_our_tool(self):
        tracer = self.make()
        work()
        monitoring.set_events(3, 0)
        monitoring.free_tool_id(3)
        work()
        tracer.stop()
        self.assertEqual(tracer.recording().count(leaf), 10)
        self.assertEqual(self.tools(), {})
        tracer.restart()
        work()
        tracer.stop()
        self.assertEqual(tracer.recording().count(leaf), 20)


class Profilers(Case):
    def test_cprofile_within(self):
        profile = cProfile.Profile()

        def run():
            profile.enable()
            work()
            profile.disable()
            return work()
        recording = self.record(run)
        stats = pstats.Stats(profile).stats
        calls = {key[2]: value[0] for key, value in stats.items()}
        self.assertEqual(calls["leaf"], 10)
        if MONITORING:
            self.assertEqual(recording.count(leaf), 20)

    def test_cprofile_around(self):
        profile = cProfile.Profile()
        profile.enable()
        try:
            recording = self.record(work)
        finally:
            profile.disable()
        self.assertEqual(recording.count(leaf), 10)
        if MONITORING:
            calls = {k[2]: v[0] for k, v in pstats.Stats(profile).stats.items()}
            self.assertEqual(calls["leaf"], 10)

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
        """It works; on 3.11 and before it takes our place on that thread, and stays after us."""
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
