"""Every export of torch's profiler has every call once, in strict JSON whose spans nest."""

import collections
import decimal
import gzip
import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import parts
import support

EXPORTS = str(pathlib.Path(__file__).with_name("exports.py"))
ODD = 'a"b\\c\tü\n'
# What exports.work() calls: (depth, function) in order. Each resume of a generator is a call.
CALLS = [(1, "branch"), (2, "leaf"), (2, "leaf"), (2, "leaf"), (1, "generate"), (2, "leaf"),
         (1, "generate"), (1, "generate"), (1, ODD), (1, "adds"), (1, "adds"), (1, "leaf"),
         (1, "nn.Module: Linear_0"), (1, "passes"), (2, "leaf"), (2, "nn.Module: Identity_0")]


def no_twin(pairs):
    assert len({key for key, _ in pairs}) == len(pairs), f"a key twice: {pairs}"
    return dict(pairs)


def no_constant(name):
    raise AssertionError(f"{name} is no JSON")


def read(path):
    """Returns a file, parsed strictly, with times in nanoseconds."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return json.load(file, object_pairs_hook=no_twin, parse_constant=no_constant,
                         parse_float=lambda text: round(decimal.Decimal(text) * 1000))


def span(event):
    """Returns its begin and end in nanoseconds."""
    return event["ts"], event["ts"] + event["dur"]


def python_calls(trace):
    return [event for event in trace["traceEvents"] if event.get("cat") == "python_function"]


def function(event):
    """Returns the function, without its file and line, or None for C."""
    name = event["name"]
    return name if name.startswith("nn.Module") else name.partition("): ")[2] or None


def parent_of(call):
    """Returns None for an outermost call, which has no parent field from torch 2.15 on (see test_fields)."""
    return call["args"].get("Python parent id")


def below(calls, name):
    """Returns the Python calls below the first call of NAME: (depth, function), in order. Calls of other files than the
    program's are left out, but not their callees."""
    depths, out = {}, []
    for call in sorted(calls, key=lambda call: call["args"]["Python id"]):
        number, parent = call["args"]["Python id"], parent_of(call)
        if not depths and function(call) == name:
            depths[number] = 0
        elif parent in depths:
            own = "exports.py(" in call["name"] or call["name"].startswith("nn.Module")
            depths[number] = depths[parent] + own
            if own:
                out.append((depths[number], function(call)))
    return out


class Exports(unittest.TestCase):
    mode = "fast"

    @classmethod
    def setUpClass(cls):
        if cls is Exports:
            raise unittest.SkipTest("the cases are below, one a mode")
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        reply = support.python(EXPORTS, cls.mode, cls.temporary.name, timeout=240)
        if reply.returncode != 0:
            raise AssertionError(f"exit status {reply.returncode}\n{reply.stdout}\n{reply.stderr}")
        cls.results = cls.read("results.json")
        cls.traces = {name: cls.read(name) for name in cls.results["files"]}

    @classmethod
    def read(cls, name):
        return read(os.path.join(cls.temporary.name, name))

    def each(self):
        for name, trace in self.traces.items():
            with self.subTest(file=name):
                yield trace

    def expected(self):
        return [call for call in CALLS if call[1] != ODD or self.mode in ("full", "fast")]

    def test_every_call_is_there_once(self):
        for trace in self.each():
            calls = parts.once(python_calls(trace))
            self.assertEqual(below(calls, "work"), self.expected())
            ids = sorted(call["args"]["Python id"] for call in calls)
            self.assertEqual(ids, list(range(1, len(ids) + 1)))

    def test_parents_enclose_their_children(self):
        for trace in self.each():
            calls = python_calls(trace)
            of_id = parts.by_id(calls)
            for call in calls:
                parent = parent_of(call)
                if parent is None:
                    continue
                begin, end = span(call)
                self.assertEqual(of_id[parent][0]["tid"], call["tid"])
                self.assertTrue(any(outer[0] <= begin <= end <= outer[1]
                                    for outer in map(span, of_id[parent])), (of_id[parent], call))

    def test_spans_of_a_thread_never_cross(self):
        for trace in self.each():
            threads = collections.defaultdict(list)
            for event in trace["traceEvents"]:
                if event["ph"] == "X" and event["pid"] != "Spans":
                    threads[event["pid"], event["tid"]].append(event)
            for events in threads.values():
                open_ends = []
                for event in sorted(events, key=lambda e: (span(e)[0], -span(e)[1])):
                    begin, end = span(event)
                    while open_ends and open_ends[-1] <= begin:
                        open_ends.pop()
                    self.assertTrue(not open_ends or end <= open_ends[-1], event)
                    open_ends.append(end)

    def test_fields(self):
        # What torch has written by itself, after uninstall(), says which fields its release has.
        stock = python_calls(self.read("after.json.gz"))
        stock_may = {field for call in stock for field in call["args"]}
        stock_must = stock_may.intersection(*(call["args"] for call in stock))
        for name, trace in self.traces.items():
            with self.subTest(file=name):
                events = trace["traceEvents"]
                numbers = [event["args"]["Ev Idx"] for event in events
                           if "Ev Idx" in event.get("args", {})]
                self.assertEqual(len(numbers), len(set(numbers)))
                modules = [e for e in events if e["name"].startswith("nn.Module")]
                self.assertEqual([m["args"]["Python module id"] for m in modules], [0, 0])
                wanted = {"Python id", "Python parent id", "Ev Idx"}
                if name == "verbose.json":
                    wanted |= {"Python thread", "Call stack"}
                for call in python_calls(trace):
                    optional = {"Python module id", "clamped", "continued"} | (stock_may - wanted)
                    if parent_of(call) is None:
                        optional |= {"Call stack", "Python parent id"} - stock_must
                    self.assertLessEqual(wanted - optional, set(call["args"]), call)
                    self.assertLessEqual(set(call["args"]), wanted | optional, call)
                    self.assertEqual(call["pid"], self.results["pid"])
                    self.assertGreater(call["tid"], 0)

    def test_verbose_traces_have_call_stacks(self):
        calls = {c["args"]["Python id"]: c for c in python_calls(self.traces["verbose.json"])}
        for call in calls.values():
            stack, outer = "", parent_of(call)
            while outer is not None:
                stack += calls[outer]["name"] + ";"
                outer = parent_of(calls[outer])
            self.assertEqual(call["args"].get("Call stack", ""), stack)

    def test_operators_are_there_too(self):
        for trace in self.each():
            names = collections.Counter(event["name"] for event in trace["traceEvents"])
            self.assertEqual((names["aten::add"], names["span"], names["aten::linear"]), (2, 1, 1))

    def test_event_list(self):
        events = self.read("events.json")
        names = collections.Counter(function(e) for e in events if "exports.py(" in e["name"])
        expected = collections.Counter(n for _, n in CALLS if n[:3] not in ("nn.", ODD[:3]))
        self.assertEqual({name: names[name] for name in expected}, expected)
        self.assertEqual({event["pid"] for event in events}, {"CPU functions"})
        [module] = [e for e in events if e["name"] == "nn.Module: Linear_0"]
        [linear] = [e for e in events if e["name"] == "aten::linear"]
        self.assertEqual(module["tid"], linear["tid"])
        self.assertTrue(span(module)[0] <= span(linear)[0] <= span(linear)[1] <= span(module)[1])

    def test_metadata_that_is_no_json_becomes_text(self):
        for name in ("mended.json", "mended.json.gz"):
            self.assertEqual(self.traces[name]["bad"], "{nope")

    def test_a_second_export_has_torchs_own_error(self):
        self.assertEqual(self.results["twice"], dict.fromkeys(("same.json", "same.json.gz"),
                                                           "Trace is already saved."))

    def test_uninstall_gives_everything_back(self):
        self.assertTrue(self.results["restored"])
        found = below(python_calls(self.read("after.json.gz")), "work")
        self.assertEqual(found, [call for call in CALLS if call[1] != ODD])


class Fast(Exports):
    pass


class Full(Exports):
    mode = "full"


class All(Exports):
    mode = "all"


if __name__ == "__main__":
    unittest.main()
