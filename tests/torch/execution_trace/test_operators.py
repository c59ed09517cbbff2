"""torch's operators among the calls of the standalone host's trace."""

import collections
import json
import os
import tempfile
import threading
import unittest

import kpytrace
import torch
from kpytrace._api import native
from kpytrace.torch import ExecutionTraceObserver, _shim

MODEL = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8))


def step():
    MODEL(torch.ones(2, 8)).square().mean().backward()


class Operators(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, **options):
        trace = kpytrace.start(**options)
        ops, handle = native.standalone.tracer(trace._handle)
        self.assertTrue(_shim.load().trace_operators(ops, handle))
        return trace

    def stop(self, trace):
        """Returns the trace's calls as events of Chrome's, in the order of their starts."""
        _shim.load().leave_operators(native.standalone.tracer(trace._handle)[1])
        trace.stop()
        self.assertEqual(trace.stats()["events_repaired"], 0)
        path = os.path.join(self.folder, "trace.json")
        trace.write(path)
        with open(path) as file:
            events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
        return sorted(events, key=lambda e: (e["ts"], -e["dur"]))

    def recorded(self, work, **options):
        trace = self.start(**options)
        try:
            work()
        finally:
            events = self.stop(trace)
        return collections.Counter(e["name"] for e in events)

    def test_they_are_those_that_torchs_profiler_records(self):
        step()  # allocations of the first step
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as stock:
            step()
        # Not stock.events(), which drops an operator whose only child has its name.
        wanted = collections.Counter(e.name() for e in stock.profiler.kineto_results.events())
        found = self.recorded(step)
        for name, count in wanted.items():
            self.assertEqual(found[name], count, name)
        self.assertGreater(sum(wanted.values()), 30)

    def test_they_nest_among_the_calls(self):
        trace = self.start()
        torch.nn.functional.linear(torch.ones(2, 8), torch.ones(4, 8))
        events = self.stop(trace)
        call, = (e for e in events if "linear" in e["name"] and e["name"].startswith("<built-in"))
        inside = [e["name"] for e in events if call["ts"] <= e["ts"] and
                  e["ts"] + e["dur"] <= call["ts"] + call["dur"] and e is not call]
        self.assertEqual(inside[0], "aten::linear")
        self.assertIn("aten::matmul", inside)

    def test_an_operator_that_raises(self):
        def work():
            with self.assertRaises(RuntimeError):
                torch.ones(2) + torch.ones(3)
        self.assertEqual(self.recorded(work)["aten::add"], 1)

    def test_an_observer_at_the_same_time(self):
        """One pair of callbacks serves both; the observer may begin and end while the trace runs."""
        path = os.path.join(self.folder, "et.json")

        def work():
            step()
            with torch.no_grad():
                observer = ExecutionTraceObserver().register_callback(path)
                observer.start()
                torch.ones(3).cumsum(0)
                observer.stop()
                observer.unregister_callback()
            step()
        found = self.recorded(work)
        self.assertEqual(found["aten::cumsum"], 1)
        self.assertEqual(found["aten::gelu"], 2)
        with open(path) as file:
            self.assertIn("aten::cumsum", {node["name"] for node in json.load(file)["nodes"]})

    def test_threads(self):
        """Traces begin and end while other threads are in operators."""
        ended = threading.Event()

        def run():
            x = torch.ones(4)
            while not ended.is_set():
                x.add(1)
        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for options in [{}, {"ring": "1MB"}] * 10:
                trace = self.start(**options)
                for _ in range(50):
                    torch.ones(2).mul(2)
                _shim.load().leave_operators(native.standalone.tracer(trace._handle)[1])
                trace.stop()
                self.assertGreater(trace.stats()["events"], 100)
                trace.close()
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def test_a_fork(self):
        trace = self.start()
        torch.ones(2).mul(2)
        child = os.fork()
        if not child:
            torch.ones(2).mul(2)
            os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        names = collections.Counter(e["name"] for e in self.stop(trace))
        self.assertEqual(names["aten::mul"], 1)


if __name__ == "__main__":
    unittest.main()
