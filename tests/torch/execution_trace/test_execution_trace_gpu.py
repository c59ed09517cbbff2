"""Execution traces of operators on a GPU, and of kernels that torch's compiler generates."""

import array
import json
import os
import re
import unittest


import et
import et_sides
import kpytrace.torch
import torch
from kpytrace.torch import ExecutionTraceObserver
from torch.profiler import profile, ProfilerActivity, record_function, schedule

if not torch.cuda.is_available():
    print("skipped: there is no GPU")
    raise SystemExit(77)

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


class SideBySide(et_sides.SideBySide):
    def test_training(self):
        model = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.LayerNorm(8), torch.nn.GELU(),
                                    torch.nn.Linear(8, 4)).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        data, target = torch.randn(3, 16).cuda(), torch.tensor([1, 2, 3]).cuda()

        def work():
            for _ in range(3):
                loss = torch.nn.functional.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        ours = self.same(work)
        devices = {value[5] for node in ours.nodes for value, kind in
                   zip(node["inputs"]["values"], node["inputs"]["types"]) if kind == "Tensor(float)"}
        self.assertIn("cuda:0", devices)


class Elements(unittest.TestCase):
    def gathered(self, **variables):
        with et.folder() as folder, et.environment(**variables):
            source = torch.tensor([[9, 9], [1, 2], [3, 4]]).cuda()[1:]  # a view with an offset
            index = torch.tensor([[0, 1], [0, 0]]).cuda().t()  # and one with strides
            trace = et.record(os.path.join(folder, "trace.json"), lambda: torch.gather(source, 1, index),
                              lambda observer: observer.set_extra_resource_collection(True))
            resources = os.path.join(folder, "trace_resources")
            files = {}
            for name in os.listdir(resources):
                if not name.endswith(".dat"):
                    continue  # of what was compiled before
                with open(os.path.join(resources, name), "rb") as file:
                    files[name] = list(array.array("q", file.read()))
        return et.the(trace, "aten::gather"), files

    def test_range(self):
        node, files = self.gathered(SAVE_INTEGRAL_TENSOR_RANGE="1")
        self.assertEqual(json.loads(et.attr(node, "tensor_range")), {"0": [1, 4], "1": [0, 1]})
        self.assertEqual(files, {})

    def test_data(self):
        node, files = self.gathered(SAVE_INTEGRAL_TENSOR_DATA="aten::gather")
        self.assertEqual(files, {f"nid_{node['id']}_tid_0.dat": [1, 2, 3, 4],
                                 f"nid_{node['id']}_tid_1.dat": [0, 0, 1, 0]})


class Compiled(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch._inductor.codecache.PyCodeCache.cache_clear(purge=True)
        self.given = [torch.randn(4, 4).cuda() for _ in range(3)]
        self.fn = torch.compile(self.plain)
        with torch._inductor.config.patch(compile_threads=1, fx_graph_cache=False,
                                          fx_graph_remote_cache=False):
            self.fn(*self.given)

    @staticmethod
    def plain(a, b, c):
        x = torch.nn.functional.linear(a, b).sin()
        return (x.t() + c * 1111).cos()

    def looped(self, **options):
        with profile(activities=BOTH, record_shapes=True,
                     schedule=schedule(wait=1, warmup=1, active=2, repeat=1), **options) as prof:
            for index in range(6):
                with record_function(f"## LOOP {index} ##"):
                    self.fn(*self.given)
                prof.step()
        return prof.execution_trace_observer

    def check_kernels(self, trace, files):
        kernels = [node for node in trace["nodes"] if node["name"].startswith("triton_")
                   and et.attr(node, "kernel_file")]
        self.assertEqual(len(kernels), 2)  # one in each loop
        for node in kernels:
            self.assertGreater(len(node["inputs"]["values"]), 0)
            self.assertEqual(node["outputs"]["values"], [])
            self.assertEqual(et.attr(node, "kernel_backend"), "triton")
            self.assertIn(et.attr(node, "kernel_file"), files)
            # The stream is behind the arguments, but not among the strides.
            self.assertEqual(len(node["inputs"]["values"]), len(node["inputs"]["strides"]) + 1)
        self.assertTrue(any("Call CompiledFxGraph" in node["name"] for node in trace["nodes"]))

    def test_with_pt2(self):
        with et.folder() as folder:
            observer = ExecutionTraceObserver().register_callback(os.path.join(folder, "trace.json"))
            observer.set_extra_resource_collection(True)
            self.looped(execution_trace_observer=observer)
            resources = os.path.join(folder, "trace_resources")
            files = os.listdir(resources)
            self.check_kernels(et.load(observer.get_output_file_path()), files)
            self.check_graph(resources)

    def check_graph(self, resources):
        """Checks that the graph's file names the operators of the kernel in a comment."""
        found = []
        for name in os.listdir(resources):
            with open(os.path.join(resources, name)) as file:
                lines = [line.strip() for line in file]
            for at, line in enumerate(lines):
                if line.startswith("# Graph fragment:"):
                    block = lines[at + 1:]
                    end = next(i for i, text in enumerate(block) if not text.startswith("#   "))
                    found.append(block[:end])
        fragment = next(block for block in found if any("aten.sin" in line for line in block))
        self.assertEqual([re.match(r"#   (%\w+|return %cos)", line)[1] for line in fragment],
                         ["%mm", "%arg2_1", "%sin", "%permute_1", "%mul", "%add", "%cos",
                          "return %cos"])
        for line in fragment[:-1]:
            self.assertIn("cuda:0", line)

    def test_env_enabled_with_pt2(self):
        kpytrace.torch.install(execution_trace=True)
        self.addCleanup(kpytrace.torch.uninstall)
        with et.environment(ON="1", EXTRAS="1"):
            observer = self.looped()
        self.assertIs(type(observer), ExecutionTraceObserver)
        files = os.listdir(observer.get_resources_dir())
        self.assertEqual(len(files), 2)
        self.check_kernels(et.load(observer.get_output_file_path()), files)

    def test_side_by_side(self):
        """torch's own observer records the same kernels."""
        def work():
            with profile(activities=BOTH, record_shapes=True):
                self.fn(*self.given)

        theirs, ours = et_sides.both(work)
        kernels = [[(node["name"], node["inputs"]["types"], et.attr(node, "kernel_file"),
                     et.attr(node, "kernel_backend")) for node in trace["nodes"]
                    if node["name"].startswith("triton_")] for trace in (theirs, ours)]
        self.assertTrue(kernels[0])
        self.assertEqual(kernels[0], kernels[1])


if __name__ == "__main__":
    unittest.main()
