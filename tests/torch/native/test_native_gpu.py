"""GPU work in the file of a native profile, without a GPU: a stand-in of CUPTI plays the launches."""

import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
for folder in ("tests/torch/support", "tests/fixtures/cupti"):
    sys.path.insert(0, str(ROOT / folder))

if not os.environ.get("KPT_STAND_IN_CUPTI"):
    print("skipped: GPU activities were not built")
    raise SystemExit(77)
import played
import support
import torch
from torch.profiler import ProfilerActivity, profile, record_function

import kpytrace.torch

launch = played.launcher(os.environ["KPT_STAND_IN_CUPTI"], os.environ["KPT_STAND_IN_CUDA"], 'played "kernel"')
BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
LIBRARY = torch.library.Library("played", "DEF")
LIBRARY.define("launch(Tensor x) -> Tensor")
KEYS = {"External id", "device", "context", "stream", "correlation", "queued", "registers per thread", "shared memory",
        "blocks per SM", "warps per SM", "grid", "block", "est. achieved occupancy %", "local memory"}


@torch.library.impl(LIBRARY, "launch", "CPU")
def launch_in_operator(x):
    launch()
    return x + 1


def backward_hook(*_):
    torch.ops.played.launch(torch.ones(2))


def step():
    x = torch.ones(2, requires_grad=True) * 2
    x.grad_fn.register_hook(backward_hook)
    with record_function("outer"):
        with record_function("inner"):
            torch.ops.played.launch(x.detach())
    x.sum().backward()
    launch()


def profiled(work, **options):
    with mock.patch.object(torch.cuda, "is_available", lambda: True), \
            mock.patch.object(torch.cuda, "synchronize", lambda: None), \
            mock.patch.object(torch.autograd.profiler, "_supported_activities", lambda: set(BOTH)):
        with profile(activities=BOTH, **options) as prof:
            work()
    return prof


def exported(**options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiled(step, **options).export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)


class Gpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kpytrace.torch.install("native")
        cls.trace = exported(with_stack=True)
        kpytrace.torch.install("native", kernel_stacks=False)
        cls.bare = exported(with_stack=True)
        kpytrace.torch.install("native")

    def of(self, *categories):
        return [event for event in self.trace["traceEvents"] if event.get("cat") in categories]

    def test_kernels(self):
        kernels = self.of("kernel")
        self.assertEqual(len(kernels), 3)
        operators = {e["args"]["External id"]: e["name"] for e in self.of("cpu_op")}
        self.assertEqual([operators.get(e["args"].get("External id")) for e in kernels],
                         ["played::launch", "played::launch", None])
        for event in kernels:
            self.assertEqual(event["name"], 'played "kernel"')
            self.assertEqual(set(event["args"]) | {"External id"}, KEYS | {"launched at", "Python stack"})

    def test_stacks(self):
        """As in the mode "full"."""
        first, second, last = (event["args"] for event in self.of("kernel"))
        for arguments in first, second, last:
            self.assertRegex(arguments["launched at"], r"played.py\(\d+\): <lambda>$")
            self.assertTrue(arguments["Python stack"].endswith(";" + arguments["launched at"]))
        self.assertRegex(first["Python stack"], r"test_native_gpu.py\(\d+\): step;.*: launch_in_operator;")
        self.assertIn(": backward_hook;", second["Python stack"])
        self.assertNotIn("launch_in_operator", last["Python stack"])
        for event in self.bare["traceEvents"]:
            self.assertFalse({"launched at", "Python stack"} & set(event.get("args", ())), event)
        for trace in (self.trace, self.bare):
            self.assertNotIn("stackFrames", trace)
            self.assertFalse([event for event in trace["traceEvents"] if "sf" in event])

    def test_calls_and_arrows(self):
        calls = {e["args"]["correlation"]: e for e in self.of("cuda_driver", "cuda_runtime")}
        arrows = [(e["ph"], e["id"], e["pid"], e["tid"], e["ts"]) for e in self.of("ac2g")]
        for event in self.of("kernel"):
            call = calls[event["args"]["correlation"]]
            self.assertEqual(call["pid"], os.getpid())
            self.assertLessEqual(call["ts"], event["ts"])
            for end, phase in ((call, "s"), (event, "f")):
                self.assertIn((phase, event["args"]["correlation"], end["pid"], end["tid"], end["ts"]), arrows)
        self.assertEqual(len(arrows), 6)

    def test_annotations(self):
        """On the device they reach from the first to the last kernel that was launched in them."""
        numbers = {e["name"]: e["args"]["External id"] for e in self.of("user_annotation")}
        found = {e["name"]: e for e in self.of("gpu_user_annotation")}
        self.assertEqual(set(found), {"outer", "inner"})
        for name, event in found.items():
            self.assertEqual(event["args"], {"External id": numbers[name]})
            self.assertEqual((event["ts"], event["dur"]), tuple(self.of("kernel")[0][key] for key in ("ts", "dur")))

    def test_device(self):
        [device] = self.trace["deviceProperties"]
        self.assertEqual(device["id"], 0)
        self.assertTrue({"name", "totalGlobalMem", "computeMajor", "computeMinor", "maxThreadsPerBlock", "warpSize",
                         "maxThreadsPerMultiprocessor", "regsPerMultiprocessor", "sharedMemPerMultiprocessor",
                         "numSms"} <= set(device))
        self.assertEqual(next(iter(self.trace)), "schemaVersion")
        names = {(e["name"], e["pid"]): e["args"] for e in self.trace["traceEvents"] if e["ph"] == "M"}
        self.assertEqual(names["process_labels", 0], {"labels": "GPU 0"})

    def test_arrows_of_autograd(self):
        ends = [event for event in self.trace["traceEvents"] if event.get("cat") == "fwdbwd"]
        self.assertEqual(sorted(event["ph"] for event in ends), ["f", "f", "s", "s"])


@unittest.skipIf(support.torch_version() < (2, 13), "this torch's Inductor reads other events")
class Inductor(unittest.TestCase):
    """What Inductor reads in the events of a profile when it benchmarks a function: the time of its kernels alone."""

    @classmethod
    def setUpClass(cls):
        kpytrace.torch.install("native")

    def test_benchmarks(self):
        from torch._inductor import utils
        from torch._inductor.runtime import benchmarking

        def benchmark():
            for name in (utils._DO_BENCH_PROFILE_EVENT_NAME, benchmarking._CALLABLE_PROFILE_EVENT_NAME):
                for _ in range(3):
                    torch.ops.played.launch(data)  # clears the cache
                    with record_function(name):
                        torch.ops.played.launch(data)
                        torch.ops.played.launch(data)
        data = torch.ones(2)
        for _ in range(1000):
            launch()  # so that no launch has the number of an operator: Inductor takes one for the other
        prof = profiled(benchmark)
        events, cuda = prof.profiler.kineto_results.events(), torch.autograd.DeviceType.CUDA
        times = [event.duration_ns() for event in events if event.activity_type() == "kernel"]
        self.assertEqual(len(times), 18)
        us = sum(times) / 3 / 1000  # a third of the kernels are in each of the two benchmarks
        self.assertGreater(us, 0)
        self.assertAlmostEqual(utils._get_do_bench_profile_result(events, prof.events(), 3, cuda), us / 1000 / 3)
        self.assertAlmostEqual(benchmarking._get_callable_device_kernel_time_us(events, prof.events(), 3, cuda), us)


if __name__ == "__main__":
    unittest.main()
