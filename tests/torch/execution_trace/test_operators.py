"""torch's operators among the calls of the standalone host's trace."""

import collections
import contextlib
import ctypes
import gc
import io
import json
import os
import pathlib
import sys
import tempfile
import threading
import time
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "fixtures"))

import abi_host
import kpytrace
import torch
import torch.distributed as dist
from kpytrace._api import native
from kpytrace.torch import ExecutionTraceObserver

MODEL = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8))


class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, value):
        return value * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * 2


def step():
    Double.apply(MODEL(torch.ones(2, 8))).square().mean().backward()


@torch.jit.script
def branch(x):
    return x * 1.01 + 0.1


@torch.jit.script
def waits(x):
    """TorchScript goes on with it on one of its own threads, where it ends."""
    return torch.jit.wait(torch.jit.fork(branch, x))


class Operators(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, **options):
        return kpytrace.start(torch=True, **options)

    def stop(self, trace, phase="X"):
        """Returns the trace's calls as events of Chrome's, in the order of their starts."""
        trace.stop()
        self.assertEqual(trace.stats()["events_repaired"], 0)
        path = os.path.join(self.folder, "trace.json")
        trace.write(path)
        with open(path) as file:
            events = [e for e in json.load(file)["traceEvents"] if e["ph"] in phase]
        return sorted(events, key=lambda e: (e["ts"], -e.get("dur", 0)))

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

    def test_the_fields_are_those_of_kineto(self):
        """Categories, sequence numbers, forward threads and arrows, by name and in the order of time."""
        def work():
            with torch.profiler.record_function("whole step"):
                step()

        def shown(events, categories, base=0):
            return [(e["cat"], e["name"], e["args"].get("Sequence number", 0) - base if
                     "Sequence number" in e["args"] else None, bool(e["args"].get("Fwd thread id")))
                    for e in events if e["ph"] == "X" and e["cat"] in categories]
        work()
        path = os.path.join(self.folder, "stock.json")
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as stock:
            work()
        stock.export_chrome_trace(path)
        with open(path) as file:
            theirs = [e for e in json.load(file)["traceEvents"] if e["ph"] in "Xsf" and "ts" in e]
        theirs.sort(key=lambda e: (e["ts"], -e.get("dur", 0)))
        trace = self.start()
        work()
        ours = self.stop(trace, "Xsf")
        for categories in ({"cpu_op"}, {"user_annotation"}):
            first = [min((e["args"]["Sequence number"] for e in events if e["ph"] == "X" and
                          "Sequence number" in e.get("args", ())), default=0) for events in (theirs, ours)]
            self.assertEqual(shown(ours, categories, first[1]), shown(theirs, categories, first[0]))

        def arrows(events):
            """The operators at both ends of each arrow."""
            at = {(e["tid"], e["ts"]): e["name"] for e in events if e["ph"] == "X" and e["cat"] == "cpu_op"}
            ends = collections.defaultdict(list)
            for e in events:
                if e["ph"] in "sf" and e["cat"] == "fwdbwd":
                    ends[e["id"]].append(at.get((e["tid"], e["ts"])))
            return sorted(map(tuple, ends.values()))
        self.assertGreater(len(arrows(ours)), 4)
        self.assertEqual(arrows(ours), arrows(theirs))

    def test_backward_work_knows_its_forward_line(self):
        """autograd's nodes have the Python function that called their forward operator, also from other threads."""
        def forward():
            return Double.apply(torch.ones(3, requires_grad=True).mul(2)).sum()
        loss = []
        trace = self.start()
        first = threading.Thread(target=lambda: loss.append(forward()))
        first.start()
        first.join()
        loss[0].backward()
        nodes = {e["name"]: e["args"]["forward at"] for e in self.stop(trace) if "forward at" in e["args"]}
        for name in ("MulBackward0", "SumBackward0", "DoubleBackward"):
            self.assertRegex(nodes[name], r"test_operators.py\(\d+\): forward$")
        outside = forward()
        trace = self.start()
        outside.backward()
        nodes = {e["name"]: e["args"]["forward at"] for e in self.stop(trace) if "forward at" in e["args"]}
        self.assertEqual(nodes["MulBackward0"], "(not recorded)")

    def test_a_ring_that_has_dropped_the_forward_operator(self):
        """What another operator did, whose line is still there, is not confused with it."""
        def early():
            return torch.ones(3, requires_grad=True).mul(2)

        def late():
            return torch.ones(3, requires_grad=True).exp()
        trace = self.start(ring="64kB", c_calls=False)
        dropped = early()
        for _ in range(4000):
            torch.ones(2)
        kept = late()
        (dropped.sum() + kept.sum()).backward()
        events = self.stop(trace)
        self.assertGreater(trace.stats()["events_dropped"], 0)
        self.assertNotIn("early", {e["name"].rpartition(": ")[2] for e in events})
        nodes = {e["name"]: e["args"]["forward at"] for e in events if "forward at" in e["args"]}
        self.assertEqual(nodes["MulBackward0"], "(not recorded)")
        self.assertRegex(nodes["ExpBackward0"], r"test_operators.py\(\d+\): late$")

    def test_asynchronous_ranges(self):
        """Those of a collective, on a thread of gloo, and one that a future's thread ends, are as Kineto has them."""
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        self.addCleanup(dist.destroy_process_group)

        def work():
            future, go = torch.futures.Future(), threading.Event()
            other = threading.Thread(target=lambda: go.wait() and future.set_result(0))
            other.start()
            with torch.profiler.record_function("far") as range_:
                range_._call_end_callbacks_on_future(future)
            with torch.profiler.record_function("inside"):
                torch.ones(3).cos()
            go.set()
            other.join()
            torch.ones(3).sin()
            dist.all_reduce(torch.ones(3), async_op=True).wait()
            time.sleep(0.1)  # until gloo's thread has ended the range

        def shown(events):
            """The annotations on each thread, with the operators that begin within."""
            mine = threading.get_native_id()
            return [(e["name"], e["tid"] == mine, [inner["name"] for inner in events if inner["tid"] == e["tid"] and
                     inner["cat"] == "cpu_op" and 0 < inner["ts"] - e["ts"] < e["dur"]])
                    for e in events if e["ph"] == "X" and e["cat"] == "user_annotation"]
        work()
        path = os.path.join(self.folder, "stock.json")
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as stock:
            work()
        stock.export_chrome_trace(path)
        with open(path) as file:
            theirs = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
        theirs.sort(key=lambda e: (e["ts"], -e["dur"]))
        trace = self.start()
        work()
        ours = self.stop(trace)
        self.assertEqual(shown(ours), shown(theirs))
        self.assertEqual([row[:2] for row in shown(ours)], [("far", True), ("inside", True), ("gloo:all_reduce", False)])
        functions, handle = native.standalone.tracer(trace._handle)
        tracer = abi_host.Tracer(types.SimpleNamespace(
            self=handle, ops=ctypes.pointer(abi_host.Ops.from_address(functions)), flags=0), None)
        delivery = tracer.deliver(flags=abi_host.DELIVER_RANGES)
        flags = {delivery.names[a.name].display.text: a.value1 >> 8 for a in delivery.activities
                 if a.kind == abi_host.KIND_RANGE_BEGIN}
        self.assertEqual(flags, {"far": 0, "inside": 0, "gloo:all_reduce": 1})

    def test_a_range_that_ends_elsewhere(self):
        """Calls that would cross an annotation continue after it, and no call is counted twice."""
        trace = self.start()
        range_ = torch.profiler.record_function("open")

        def begin():
            range_.__enter__()
            torch.ones(2)

        def end():
            range_.__exit__(None, None, None)
            torch.ones(3)
        begin()
        end()
        events = self.stop(trace)
        whole, = (e for e in events if e["name"] == "open")
        for name in ("begin", "end"):
            parts = [e for e in events if e["name"].endswith(f": {name}")]
            self.assertEqual(len({e["args"]["Python id"] for e in parts}), 1)
            self.assertEqual([e["args"].get("continued", False) for e in parts], [False, True])
        def span(e):
            return round(e["ts"] * 1000), round(e["ts"] * 1000) + round(e["dur"] * 1000)
        begin, end = span(whole)
        for e in events:
            if e["tid"] == whole["tid"] and e is not whole:
                self.assertFalse(span(e)[0] < begin < span(e)[1] < end, e)
                self.assertFalse(begin < span(e)[0] < end < span(e)[1], e)

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

    def test_steps_are_found(self):
        optimizer = torch.optim.SGD(MODEL.parameters(), 0.1)
        path = os.path.join(self.folder, "steps.kpt")
        trace = self.start()
        for _ in range(3):
            step()
            optimizer.step()
        trace.stop()
        trace.write(path)
        standalone = native.standalone
        handle, _, _ = standalone.open(native.load(), path, False)
        steps = standalone.steps(handle)
        standalone.close(handle)
        self.assertEqual([(number, name) for _, _, number, name in steps],
                         [(i, "Optimizer.step#SGD.step") for i in range(3)])
        for (_, end, *_), (start, *_) in zip(steps, steps[1:]):
            self.assertEqual(end, start)

    def test_operators_that_end_on_another_thread(self):
        """None lasts until the trace ends, with all that follows inside of it."""
        for _ in range(20):
            waits(torch.ones(4))
        trace = self.start(include="module:no_such_module", c_calls=False)
        began = time.perf_counter()
        for _ in range(200):
            waits(torch.ones(4))
        seconds = time.perf_counter() - began
        trace.stop()
        path = os.path.join(self.folder, "ends.json")
        trace.write(path)
        with open(path) as file:
            lasting = [e["dur"] for e in json.load(file)["traceEvents"] if e.get("name") == "waits"]
        self.assertEqual(len(lasting), 200)
        self.assertLess(sum(lasting) / 1e6, 3 * seconds)  # they run one after the other

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
                trace.stop()
                self.assertGreater(trace.stats()["events"], 100)
                trace.close()
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def test_a_trace_that_nobody_stops(self):
        def enter():
            trace = kpytrace.trace(torch=True)
            trace.__enter__()
            torch.ones(2).mul(2)
        for _ in range(20):
            enter()
        gc.collect()
        torch.ones(2).mul(2)
        self.assertEqual(self.recorded(lambda: torch.ones(2).mul(2))["aten::mul"], 1)

    def test_traces_nest(self):
        with kpytrace.trace(torch=True) as outer:
            torch.ones(2).mul(2)
            with kpytrace.trace(torch=True) as inner, kpytrace.trace() as plain:
                torch.ones(2).mul(2)
        counts = []
        for trace in (outer, inner, plain):
            path = os.path.join(self.folder, "nested.json")
            trace.write(path)
            with open(path) as file:
                counts.append(sum(e["name"] == "aten::mul" for e in json.load(file)["traceEvents"]))
        self.assertEqual(counts, [2, 1, 0])

    def test_too_many_traces(self):
        """Those that find no place record without operators, and say so."""
        traces = [kpytrace.trace(torch=True) for _ in range(6)]
        with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.ExitStack() as stack:
            for trace in traces:
                stack.enter_context(trace)
        self.assertIn("torch's operators are not recorded: too many traces", errors.getvalue())

    def test_a_stop_that_a_signal_handler_interrupts(self):
        """The next stop() completes it, and no place in the shim is lost."""
        class Interrupted:
            def leave_operators(self, tracer):
                raise KeyboardInterrupt
        for _ in range(6):
            trace = self.start()
            shim, trace._operators._shim = trace._operators._shim, Interrupted()
            with self.assertRaises(KeyboardInterrupt):
                trace.stop()
            trace._operators._shim = shim
            trace.stop()
            trace.close()
        self.assertEqual(self.recorded(lambda: torch.ones(2).mul(2))["aten::mul"], 1)

    def test_a_fork(self):
        trace = self.start()
        torch.ones(2).mul(2)
        child = os.fork()
        if not child:
            torch.ones(2).mul(2)
            del trace
            os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        names = collections.Counter(e["name"] for e in self.stop(trace))
        self.assertEqual(names["aten::mul"], 1)


if __name__ == "__main__":
    unittest.main()
