"""Functions written in C: the same functions on all versions, with the names that programmers use (T3), and no
objects that are not functions."""

import collections
import datetime
import functools
import io
import json
import math
import operator
import re
import sys
import time
import unittest

import ground_truth
from support import Case, MONITORING, RECOVERED, VERSION


HEARS_BOUND = VERSION >= (3, 11)

try:
    from _testcapi import type_get_version as version_of_type
except ImportError:  # CPython's own tests are not installed
    version_of_type = None


class A:
    method_with_c_function = classmethod(repr)


class Callable:
    def __call__(self):
        return 5


def leaf():
    pass


def fixed_program():
    """Calls most kinds of C callables."""
    items = [3, 1, 2]
    items.append(4)
    items.sort()
    len(items)
    list.append(items, 5)
    "a,b".split(",")
    str.upper("x")
    {}.get("key")
    dict.fromkeys("ab")
    int.from_bytes(b"a", "big")
    math.sqrt(4)
    operator.add(1, 2)
    collections.deque().append(1)
    io.StringIO().write("x")
    datetime.datetime.now().isoformat()
    json.loads("[1]")
    re.compile("a+").match("aaa")
    sorted(items, key=lambda x: -x)
    isinstance(items, list)
    functools.reduce(operator.mul, items)
    bytes.fromhex("00").hex()
    "".join(["a"])
    getattr(items, "missing", None)
    (5).bit_length()
    object.__reduce_ex__(5, 2)
    A.__subclasses__()
    A.mro()
    b"".startswith(b"")
    time.perf_counter()


# The C functions that fixed_program calls directly, on every version.
FIXED = """
    [list.append] [list.sort] [len] [list.append] [str.split] [str.upper] [dict.get]
    [type.fromkeys] [type.from_bytes] [sqrt] [add] [collections.deque.append]
    [_io.StringIO.write] [type.now] [datetime.datetime.isoformat] loads compile
    [re.Pattern.match] [sorted] [isinstance] [reduce] [type.fromhex] [bytes.hex]
    [str.join] [getattr] [int.bit_length] [int.__reduce_ex__] [type.__subclasses__] [type.mro]
    [bytes.startswith] [perf_counter]
    """.split()


def python_reports(call, function):
    """Whether sys.monitoring, if it exists, reports the call of FUNCTION that CALL makes. This differs between
    patch releases."""
    if not hasattr(sys, "monitoring"):
        return False
    monitoring, reported = sys.monitoring, []
    monitoring.use_tool_id(4, "test")
    monitoring.register_callback(4, monitoring.events.CALL,
                                 lambda code, offset, callable, first: reported.append(callable))
    monitoring.set_events(4, monitoring.events.CALL)
    call()
    monitoring.set_events(4, 0)
    monitoring.free_tool_id(4)
    return any(getattr(callable, "__func__", callable) is function for callable in reported)


class CCalls(Case):
    def test_the_same_functions_on_all_versions(self):
        fixed_program()  # fills imports and caches
        recording = self.record(fixed_program)
        self.assertEqual(recording.of(fixed_program).below(), FIXED)

    def test_the_interpreter_reports_the_same(self):
        fixed_program()
        truth = ground_truth.Truth()
        truth.record(fixed_program)
        expected, = (ground_truth.below(t, "fixed_program") for t in truth.threads.values())
        self.assertEqual(self.record(fixed_program).of(fixed_program).labels(), expected)

    def test_names(self):
        def work():
            len("")
            [].append(1)
            str.join("", [])
            dict.fromkeys("a")
        names = [call.name for call in self.record(work).of(work).children]
        self.assertEqual(names, ["<built-in function len>",
                                 "<built-in method append of list object>",
                                 "<built-in method join of str object>",
                                 "<built-in method fromkeys of type object>"])

    def test_types_and_slots_are_no_functions(self):  # T4
        def work():
            list()
            int("5")
            str(5)
            dict(a=1)
            type("T", (), {})
            Callable()
            Callable()()
            functools.partial(int)()
            operator.itemgetter(0)([1])
            functools.lru_cache(leaf)()
            (5).__add__(6)
            "a" + "b"
            [1][0]
            range(3)
            print.__name__
        labels = {label for _, label in self.record(work).of(work).labels()}
        for absent in ("[list]", "[int]", "[str]", "[dict]", "[type]", "[Callable]", "[partial]",
                       "[int.__add__]", "[str.__add__]", "[range]", "[itemgetter]"):
            self.assertNotIn(absent, labels)
        self.assertIn("__call__", labels)
        self.assertIn("leaf", labels)

    def test_sorted_with_a_key_that_calls_c(self):  # seed 000, test 1
        def get_key(x):
            A().method_with_c_function()
            time.sleep(0.06)
            return len(x)

        def work():
            return sorted(["Alice", "Bob"], key=get_key)
        recording = self.record(work)
        self.assertEqual(self.result, ["Bob", "Alice"])
        # 3.10 does not report the call of a bound method over a C function.
        key = ["    get_key"] + ["      [repr]"] * HEARS_BOUND + ["      [sleep]", "      [len]"]
        self.assertEqual(recording.of(work).outline(), ["work", "  [sorted]"] + key * 2)
        self.assertGreaterEqual(recording.of("[sorted]").duration, 120_000_000)
        self.assertEqual(recording.of("[sorted]").flags, frozenset())

    def test_star_calls(self):
        def work():
            items = []
            items.append(*[1])
            leaf()
            len(*[items])
            leaf()
            str.join(*["", ["a"]])
            items.sort(**{"reverse": True})
            return items
        self.assertEqual(self.record(work).of(work).below(),
                         ["[list.append]", "leaf", "[len]", "leaf", "[str.join]", "[list.sort]"])
        self.assertEqual(self.result, [1])

    def test_star_calls_without_an_end(self):
        """A bound method over a C function that is called with a star argument. 3.12.1 and before do not report
        the call. Later versions report the call, but not its end, which is inferred from the end of the caller,
        and counted. Calls that follow are inside it until then."""
        def inner(n):
            A().method_with_c_function(*[])
            leaf()
            return n

        def work():
            return [inner(n) for n in range(100)]
        recording = self.record(work)
        reported = python_reports(functools.partial(inner, 0), repr)
        self.assertEqual(self.result, list(range(100)))
        self.assertEqual(recording.count("[repr]"), 100 * reported)
        self.assertEqual(recording.count(leaf), 100)
        self.assertEqual(len({c.depth for c in recording.all(inner)}), 1, "they do not pile up")
        recovered = [c for c in recording.calls if RECOVERED in c.flags]
        if not reported:
            self.assertEqual(recovered, [])
            self.assertEqual(recording.stats["events_repaired"], 0)
        else:
            self.assertEqual([c.label for c in recovered], ["[repr]"] * 100)
            self.assertEqual(recording.stats["events_repaired"], 100)

    def test_c_functions_that_call_python_that_calls_c(self):
        class Key:
            def __init__(self, value):
                self.value = value

            def __lt__(self, other):
                return min(self.value, other.value, key=abs) == self.value

            def __hash__(self):
                return hash(self.value)

            def __eq__(self, other):
                return operator.eq(self.value, other.value)

        def work():
            a, b = Key(1), Key(2)
            {a: 1}.get(b)
            return sorted([b, a])
        self.assert_outline(self.record(work).of(work), """
            work
              __init__
              __init__
              __hash__
                [hash]
              [dict.get]
                __hash__
                  [hash]
              [sorted]
                __lt__
                  [min]
            """)

    def test_no_c_calls(self):
        def work():
            sorted([2, 1], key=lambda x: leaf() or len(str(x)))
            [].append(*[1])
        recording = self.record(work, c_calls=False)
        self.assert_outline(recording.of(work), """
            work
              <lambda>
                leaf
              <lambda>
                leaf
            """)
        self.assertEqual([c for c in recording.calls if c.kind != "python"], [])
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_all_callables(self):
        def work():
            list()
            Callable()()
            functools.partial(leaf)()
            len("")
        labels = self.record(work, all_callables=True).of(work).labels()
        self.assertIn((1, "[len]"), labels)
        if not MONITORING:  # the interpreter does not report them
            self.assertEqual([label for _, label in labels], ["work", "__call__", "leaf", "[len]"])
            return
        names = [call.name for _, call in self.record(work, all_callables=True).of(work).walk()]
        self.assertEqual(names.count("<class 'list'>"), 1)
        self.assertEqual(names.count("<class 'Callable'>"), 1)
        self.assertEqual(names.count("<functools.partial object>"), 1)
        self.assertEqual([n.rpartition(": ")[2] for n in names if n.endswith((": __call__", "leaf"))],
                         ["__call__", "leaf"])

    @unittest.skipUnless(MONITORING and version_of_type, "there is no version that the interpreter would assign")
    def test_a_type_without_a_version_gets_one(self):
        """Without one, each call of a C function of the type would be named anew, such as all of pybind11's."""
        class Kind(list):
            pass
        append = Kind().append
        Kind.changed = True  # removes the version
        self.assertEqual(version_of_type(Kind), 0)
        self.assertEqual(self.record(lambda: append(1)).count("[Kind.append]"), 1)
        self.assertNotEqual(version_of_type(Kind), 0)

    def test_c_calls_that_were_open_at_start(self):
        def begin():
            self.trace = __import__("kpytrace").start(self.path)
            return 5
        sorted([1, 2], key=lambda x: begin() if x == 1 else leaf() or 6)
        leaf()
        self.trace.stop()
        recording = self.read(self.trace)
        self.assertEqual(recording.count("[sorted]"), 0)
        self.assertEqual(recording.count(leaf), 2)


if __name__ == "__main__":
    unittest.main()
