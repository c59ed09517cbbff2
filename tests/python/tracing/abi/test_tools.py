"""Our tool of sys.monitoring: its id, how long we use it, and other tools beside it."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from host_case import HostCase, abi_host
import kpytrace
from support import MONITORING

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
class ToolId(HostCase):
    maxDiff = None

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
        self.assertIn("tools 3 and 4 are both in use", caught.exception.text)
        with self.assertRaisesRegex(Exception, "tools 3 and 4 are both in use"):
            kpytrace.start()
        self.assertEqual(self.tools(), {3: "other 3", 4: "other 4"})

    def test_has_the_name_of_the_host_that_asked_for_it(self):
        host = self.new_host(name="somebody's profiler")
        tracer = self.make(host=host, tool_id=2)
        self.assertEqual(self.tools(), {2: "somebody's profiler"})
        tracer.stop()
        self.assertEqual(self.tools(), {})

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
        self.assertIn("tool 2 is in use", caught.exception.text)
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
        """Tool 2, torch's id, is free during a run, and all ids are free after it."""
        with kpytrace.trace():
            self.assertIsNone(monitoring.get_tool(2))
            self.assertEqual(monitoring.get_tool(3), "kpytrace")
        self.assertEqual(self.tools(), {})
        with kpytrace.trace(tool_id=2):
            self.assertEqual(monitoring.get_tool(2), "kpytrace")
        self.assertEqual(self.tools(), {})

    def test_a_tool_like_coverage(self):
        """The tool disables lines, and must not receive them again because of us."""
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
        # A start must undo our own DISABLEs, and restart_events() undoes those of all tools, once per start.
        self.assertLessEqual([name for name, _ in lines].count("with_loop"), 2 * before)

    def test_another_tool_hears_what_it_would_without_us(self):
        """Every event, in order, also of code that we switch off for ourselves."""
        names = ["PY_START", "PY_RESUME", "PY_RETURN", "PY_YIELD", "PY_UNWIND", "PY_THROW", "LINE",
                 "CALL", "C_RETURN", "C_RAISE", "RAISE", "EXCEPTION_HANDLED"]
        here = __file__
        heard = []

        def hear(name):
            def callback(code, *rest):
                if code.co_filename == here and code.co_name in ("program", "generate", "leaf"):
                    heard.append((name, code.co_name, *map(repr, rest)))
            return callback

        def generate():
            try:
                yield leaf()
            except KeyError:
                yield len("caught")

        def program():
            g = generate()
            next(g)
            g.throw(KeyError)
            g.close()
            try:
                [].pop()
            except IndexError:
                leaf()
            return sorted([2, 1], key=lambda x: leaf())

        def listen():
            heard.clear()
            for name in names:
                monitoring.register_callback(1, getattr(monitoring.events, name), hear(name))
            monitoring.set_events(1, sum(getattr(monitoring.events, name) for name in names))
            program()
            monitoring.set_events(1, 0)
            # Addresses differ from run to run.
            return [re.sub("0x[0-9a-f]+", "0x", str(row)) for row in heard]
        self.take(1)
        monitoring.restart_events()  # another test may have used this tool, and disabled lines
        expected = listen()
        self.assertGreater(len(expected), 40)
        for filters in ([], [(abi_host.EXCLUDE, abi_host.FILE_GLOB, "*")]):
            tracer = self.make(filters=filters)
            self.assertEqual(listen(), expected)
            self.assertEqual(listen(), expected, "again, with what the first time has switched off")
            tracer.stop()
            self.assertEqual(tracer.recording().count(program), 0 if filters else 2)

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


if __name__ == "__main__":
    unittest.main()
