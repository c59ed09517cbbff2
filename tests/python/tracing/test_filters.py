"""Filters: which code is recorded, where the calls of excluded code appear, and that excluded code runs as without
us.

Neither the calls nor the C calls of excluded code are recorded. Python functions that it calls are recorded unless
they are excluded themselves, as children of the nearest recorded caller."""

import collections
import os
import sys
import threading
import time
import unittest
import unittest.mock

from host_case import HostCase, abi_host
from support import Case, MONITORING, define

OUTER = """
import contextlib
def outer(inner):
    len("abc")
    inner()
    return helper()
def helper():
    return sorted([2, 1], key=lambda x: -x)
def fails(inner):
    try:
        inner()
    finally:
        len("x")
def generate(inner):
    try:
        while True:
            inner()
            yield len("x")
    except KeyError:
        yield "caught"
    finally:
        len("closing")
def delegate(inner):
    return (yield from generate(inner))
async def wait(inner):
    inner()
    return 5
"""


def leaf():
    return 1


def inner():
    leaf()
    len("inner")


def fail():
    raise ValueError("on purpose")


class Filters(Case):
    def setUp(self):
        super().setUp()
        self.file = str(self.folder / "package" / "outer_code.py")
        self.scope = {"__name__": "package.outer_code"}
        define(OUTER, "outer", self.file, self.scope)
        self.outer = self.scope["outer"]

    def outline(self, work, **options):
        recording = self.record(work, **options)
        self.assertIsNone(self.error)
        return recording.of(work).outline()

    def work(self):
        self.outer(inner)

    EVERYTHING = ["work", "  outer", "    [len]", "    inner", "      leaf", "      [len]",
                  "    helper", "      [sorted]", "        <lambda>", "        <lambda>"]
    WITHOUT_OUTER = ["work", "  inner", "    leaf", "    [len]"]
    ONLY_OUTER = ["outer", "  [len]", "  helper", "    [sorted]", "      <lambda>",
                  "      <lambda>"]

    def test_exclude_by_every_kind_of_pattern(self):
        def work():
            self.outer(inner)
        self.assertEqual(self.outline(work), self.EVERYTHING)
        for pattern in (self.file, str(self.folder) + "/", "package", "package.outer_code",
                        "*/package/*", "outer_*.py", "file:" + self.file, "glob:*outer_code.py",
                        ["nothing", "package"]):
            self.assertEqual(self.outline(work, exclude=pattern), self.WITHOUT_OUTER, pattern)
        for pattern in ("pack", "package.outer", "outer_code", str(self.folder / "none"),
                        "*/nothing/*"):
            self.assertEqual(self.outline(work, exclude=pattern), self.EVERYTHING, pattern)

    def test_include(self):
        def work():
            self.outer(inner)
        for pattern in (self.file, "package", "*/package/*"):
            recording = self.record(work, include=pattern)
            self.assertEqual(recording.of("outer").outline(), self.ONLY_OUTER, pattern)
            self.assertEqual(recording.count(leaf), 0)
            self.assertEqual(recording.count(work), 0)

    def test_an_exclude_wins_over_an_include(self):
        recording = self.record(lambda: self.outer(inner), include=str(self.folder) + "/",
                                exclude=self.file)
        self.assertEqual(recording.count("outer"), 0)

    def test_two_runs_with_different_filters(self):
        """The second run records the code that the first run has switched off in the interpreter."""
        def work():
            self.outer(inner)
        for _ in range(3):
            self.assertEqual(self.outline(work, exclude="package"), self.WITHOUT_OUTER)
            self.assertEqual(self.outline(work), self.EVERYTHING)
            recording = self.record(work, include="package")
            self.assertEqual(recording.of("outer").outline(), self.ONLY_OUTER)
            self.assertEqual(self.record(work, exclude="*").calls, [])

    def test_a_call_site_that_is_shared(self):
        """One call site has included and excluded callees, and C functions, in any order."""
        excluded = self.scope["helper"]

        def work():
            for callee in (excluded, leaf, len, excluded, repr, leaf):
                callee("x") if callee in (len, repr) else callee()
        self.assertEqual(self.record(work, exclude="package").of(work).below(),
                         ["leaf", "[len]", "[repr]", "leaf"])

    def test_included_callees_of_c_calls_of_excluded_code(self):
        work = define("def work(f):\n    return sorted([2, 1], key=f)", "work", self.file)
        recording = self.record(lambda: work(lambda x: leaf()), exclude="*/package/*")
        self.assertEqual(recording.count("[sorted]"), 0)
        self.assertEqual([c.parent.label for c in recording.all(leaf)], ["<lambda>"] * 2)
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_exceptions_through_excluded_code(self):
        def work():
            seen = []
            for function in (fail, leaf, fail):
                try:
                    self.scope["fails"](function)
                except ValueError as error:
                    seen.append(str(error))
            return seen
        for _ in range(3):
            self.assertEqual(self.outline(work, exclude="package"),
                             ["work", "  fail", "  [list.append]", "  leaf", "  fail",
                              "  [list.append]"])
            self.assertEqual(self.result, ["on purpose"] * 2)

    def test_generators_of_excluded_code(self):
        def work():
            g = self.scope["delegate"](leaf)
            seen = [next(g), next(g), g.throw(KeyError())]
            g.close()
            h = self.scope["delegate"](leaf)
            next(h)
            del h
            coroutine = self.scope["wait"](leaf)
            try:
                coroutine.send(None)
            except StopIteration as stop:
                seen.append(stop.value)
            k = self.scope["generate"](leaf)
            next(k)
            try:
                k.throw(ValueError)
            except ValueError:
                seen.append("value error")
            return seen
        for _ in range(3):
            recording = self.record(work, exclude="package")
            self.assertIsNone(self.error)
            self.assertEqual(self.result, [1, 1, "caught", 5, "value error"])
            self.assertEqual(recording.count(leaf), 5)
            self.assertEqual(recording.count("generate"), 0)
            self.assertEqual(recording.stats["events_repaired"], 0)

    def test_in_threads(self):
        def work():
            threads = [threading.Thread(target=self.outer, args=(inner,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        recording = self.record(work, exclude=["package", "threading"])
        self.assertEqual((recording.count(inner), recording.count("outer")), (3, 0))
        self.assertEqual(recording.count("_bootstrap"), 0)

    @unittest.skipUnless(MONITORING, "nothing can be switched off in the interpreter")
    def test_excluded_code_is_switched_off(self):
        """After the first call of excluded code the interpreter does not call us any more."""
        spin = define("def spin(n):\n    for _ in range(n): f()\ndef f(): pass", "spin", self.file)
        seen = collections.Counter()

        def counting(ours):
            def callback(code, *rest):
                seen[code.co_name] += 1
                return ours(code, *rest)
            return callback

        def work():
            tool, events = 3, sys.monitoring.events
            for event in (events.PY_START, events.PY_RETURN, events.CALL):
                ours = sys.monitoring.register_callback(tool, event, None)
                sys.monitoring.register_callback(tool, event, counting(ours))
            spin(1000)
        self.record(work, exclude=self.file)
        self.assertTrue(1 <= seen["f"] <= 2, seen)  # its start, and perhaps its return
        self.assertLessEqual(seen["spin"], 4, seen)  # the same, and its two call sites

    def test_minimum_duration(self):
        def short():
            pass

        def long():
            short()
            time.sleep(0.01)

        def work():
            for _ in range(100):
                short()
            long()
        recording = self.record(work, min_duration_ns="5ms")
        self.assertTrue(all(call.duration >= 5_000_000 for call in recording.calls))
        self.assertEqual([c.label for c in recording.of(work).children if c.label != "short"],
                         ["long"])
        self.assertIn("[sleep]", recording.of(long).below())
        self.assertLess(recording.count(short), 50, "a busy machine makes some of them long")

    def test_depth(self):
        def down(n):
            len("x")
            return down(n - 1) if n else 0
        for limit in (1, 2, 5):
            recording = self.record(lambda: down(10), max_depth=limit)
            expected = ["<lambda>"]
            for n in range(1, limit):
                expected.append("  " * n + "down")
                expected += ["  " * (n + 1) + "[len]"] * (n + 1 < limit)
            self.assertEqual(recording.of("<lambda>").outline(), expected)
            self.assertEqual(recording.stats["events_repaired"], 0)

    def test_depth_and_exceptions_and_generators(self):
        def down(n):
            if not n:
                fail()
            down(n - 1)

        def generate():
            for _ in range(3):
                leaf()
                yield

        def work():
            for _ in range(5):
                try:
                    down(10)
                except ValueError:
                    leaf()
            for _ in generate():
                leaf()
        recording = self.record(work, max_depth=2)
        self.assertEqual(recording.of(work).python_outline(),
                         ["work"] + ["  down", "  leaf"] * 5
                         + ["  generate", "  leaf"] * 3 + ["  generate"])


    def test_environment_variables(self):
        """Environment variables have the effect of the keywords."""
        def work():
            self.outer(inner)
        rows = [("EXCLUDE", "nothing,package", self.WITHOUT_OUTER),
                ("EXCLUDE", self.file, self.WITHOUT_OUTER),
                ("EXCLUDE", "*/package/*", self.WITHOUT_OUTER),
                ("MAX_DEPTH", "1", ["work"]),
                ("MAX_DEPTH", "3", ["work", "  outer", "    [len]", "    inner", "    helper"]),
                ("MIN_DURATION_NS", "1min", []),
                ("C_CALLS", "0", [line for line in self.EVERYTHING if "[" not in line])]
        for name, value, expected in rows:
            with unittest.mock.patch.dict(os.environ, {f"KPYTRACE_{name}": value}):
                recording = self.record(work)
            lines = [line for call in recording.all(work) for line in call.outline()]
            if name == "C_CALLS":  # functions that [sorted] called appear below its caller
                expected = expected[:-2] + [line[2:] for line in expected[-2:]]
            self.assertEqual(lines, expected, name)
        with unittest.mock.patch.dict(os.environ, {"KPYTRACE_INCLUDE": "package"}):
            self.assertEqual(self.record(work).of("outer").outline(), self.ONLY_OUTER)


class Arguments(HostCase):
    """The same through the arguments of the contract's make."""

    def outline(self, work, **arguments):
        tracer = self.make(**arguments)
        work()
        tracer.stop()
        recording = tracer.recording()
        self.assertEqual(recording.stats["events_repaired"], 0)
        return [line for call in recording.all(work) for line in call.outline()]

    def test_each(self):
        def work():
            inner()
            time.sleep(0)
        rows = [({}, ["work", "  inner", "    leaf", "    [len]", "  [sleep]"]),
                ({"flags": abi_host.NO_C_CALLS}, ["work", "  inner", "    leaf"]),
                ({"max_depth": 2}, ["work", "  inner", "  [sleep]"]),
                ({"min_duration_ns": 60_000_000_000}, []),
                ({"filters": [(abi_host.EXCLUDE, abi_host.FILE_PREFIX, __file__)]}, []),
                ({"flags": abi_host.NO_C_CALLS, "max_depth": 1}, ["work"])]
        for arguments, expected in rows:
            self.assertEqual(self.outline(work, **arguments), expected, arguments)

    def test_the_last_filter_that_matches_decides(self):
        rows = [
            ([(abi_host.EXCLUDE, abi_host.FILE_PREFIX, "<"), (abi_host.INCLUDE, abi_host.FILE_GLOB,
                                                              "*b*")], {"b"}),
            ([(abi_host.INCLUDE, abi_host.FILE_GLOB, "<*"), (abi_host.EXCLUDE,
                                                             abi_host.FILE_PREFIX, "<b")], {"a"}),
            ([(abi_host.EXCLUDE, abi_host.MODULE, "one")], {"b"}),
            ([(abi_host.INCLUDE, abi_host.MODULE, "one"), (abi_host.EXCLUDE, abi_host.FILE_PREFIX,
                                                           "<c")], {"a"}),
        ]
        a = define("def a(): pass", "a", "<a>", {"__name__": "one"})
        b = define("def b(): pass", "b", "<b>", {"__name__": "two"})
        for filters, expected in rows:
            tracer = self.make(filters=filters)
            a()
            b()
            tracer.stop()
            labels = {c.label for c in tracer.recording().calls} & {"a", "b"}
            self.assertEqual(labels, expected, filters)


if __name__ == "__main__":
    unittest.main()
