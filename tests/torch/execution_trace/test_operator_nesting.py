"""Operators that nest, with what runs in the middle of them: their ends find their begins."""

import collections
import json
import os
import tempfile
import threading
import unittest

import kpytrace
import torch

LIBRARY = torch.library.Library("kpt_nesting", "DEF")
LIBRARY.define("call(Tensor x, int depth) -> Tensor")
MORE_THAN_KEPT = 200  # OpCaller keeps 64


class Work:
    """What the innermost of the nested operators runs."""
    run = staticmethod(lambda: None)


def call(x, depth):
    if depth > 1:
        return torch.ops.kpt_nesting.call(x, depth - 1).clone()
    Work.run()
    return x.clone()


LIBRARY.impl("call", call, "CompositeExplicitAutograd")


def nested(depth, run=lambda: None):
    Work.run = run
    try:
        with torch.no_grad():
            torch.ops.kpt_nesting.call(torch.ones(2), depth)
    finally:
        Work.run = lambda: None


class Nesting(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "trace.json")
        trace = self.start()  # the operators have their numbers from now on
        nested(2)
        trace.stop()

    def start(self, **options):
        trace = kpytrace.trace(**{"torch": True, **options})  # such traces nest
        trace.__enter__()
        self.addCleanup(trace.close)
        self.addCleanup(trace.stop)
        return trace

    def events(self, trace, check=True):
        trace.stop()
        if check:
            self.assertEqual(trace.stats()["events_repaired"], 0)
        trace.write(self.path)
        with open(self.path) as file:
            found = [e for e in json.load(file)["traceEvents"] if e.get("cat") == "cpu_op"]
        return sorted(found, key=lambda e: (e["ts"], -e["dur"]))

    def counts(self, trace, check=True):
        return collections.Counter(e["name"] for e in self.events(trace, check))

    def calls(self, trace):
        return [e for e in self.events(trace) if e["name"] == "kpt_nesting::call"]

    def assertNest(self, calls):
        for outer, inner in zip(calls, calls[1:]):
            self.assertGreaterEqual(outer["ts"] + outer["dur"] + 0.002, inner["ts"] + inner["dur"])

    def test_more_than_a_thread_keeps(self):
        trace = self.start()
        nested(MORE_THAN_KEPT)
        nested(3)
        calls = self.calls(trace)
        self.assertEqual(len(calls), MORE_THAN_KEPT + 3)
        self.assertNest(calls[:MORE_THAN_KEPT])
        self.assertNest(calls[MORE_THAN_KEPT:])

    def test_an_exception_through_all(self):
        def fail():
            raise KeyError("in the innermost")
        trace = self.start()
        for depth in (5, MORE_THAN_KEPT):
            with self.assertRaises(KeyError):
                nested(depth, fail)
        nested(4)
        calls = self.calls(trace)
        self.assertEqual(len(calls), 5 + MORE_THAN_KEPT + 4)
        self.assertNest(calls[:5])
        self.assertNest(calls[-4:])

    def test_a_trace_that_begins_in_the_middle(self):
        """Torch does not call the end of an operator for a pair of callbacks that was registered after its begin."""
        traces = []
        nested(3, lambda: (traces.append(self.start()), torch.ones(2).mul(2)))
        nested(2)
        found = self.counts(traces[0])
        self.assertEqual(found["aten::mul"], 1)
        self.assertEqual(found["kpt_nesting::call"], 2)

    def test_a_trace_that_ends_in_the_middle(self):
        trace = self.start()
        nested(3, trace.stop)
        self.assertEqual(self.counts(trace)["kpt_nesting::call"], 3)
        trace = self.start()
        nested(2)
        self.assertEqual(self.counts(trace)["kpt_nesting::call"], 2)

    def test_another_trace_in_its_place_in_the_middle(self):
        """The operators of the first trace end while the second one has its slot."""
        for options in ({"torch": True}, {"torch": "shapes"}):
            with self.subTest(options=options):
                traces = [self.start()]

                def replace():
                    traces[0].stop()
                    traces.append(self.start(**options))
                    nested(2)
                nested(3, replace)
                nested(1)
                self.assertEqual(self.counts(traces[0])["kpt_nesting::call"], 3)
                # C calls of Python that were open when it began end in it, and are repaired.
                self.assertEqual(self.counts(traces[1], check=False)["kpt_nesting::call"], 3)

    def test_a_second_trace_in_the_middle(self):
        for options in ({"torch": True}, {"torch": "shapes"}):
            with self.subTest(options=options):
                outer = self.start()
                inner = []
                nested(3, lambda: inner.append(self.start(**options)))
                nested(2)
                self.assertEqual(self.counts(inner[0], check=False)["kpt_nesting::call"], 2)
                nested(1)
                calls = self.calls(outer)
                self.assertEqual(len(calls), 6)
                self.assertNest(calls[:3])

    def test_a_range_without_a_schema_that_ends_on_another_thread(self):
        trace = self.start()
        for _ in range(3):
            fast = torch._C._profiler._RecordFunctionFast("autograd::engine::not a function of the engine")
            fast.__enter__()
            thread = threading.Thread(target=fast.__exit__, args=(None, None, None))
            thread.start()
            thread.join()
        nested(3)
        self.assertEqual(self.counts(trace, check=False)["kpt_nesting::call"], 3)


if __name__ == "__main__":
    unittest.main()
