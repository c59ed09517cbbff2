"""The inputs of torch's operators and ranges in a trace: torch="shapes"."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import kpytrace
import torch
from torch._C._profiler import _RecordFunctionFast
from kpytrace.torch import ExecutionTraceObserver

FIELDS = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims", "grid", "stream", "share", "names", "none", "scope")
MODEL = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8))


def train():
    MODEL(torch.ones(2, 8)).square().mean().backward()
    parameters = [p.detach() for p in MODEL.parameters()]
    torch._foreach_add_(parameters, [p.grad for p in MODEL.parameters()], alpha=-0.01)
    MODEL.zero_grad()


def values():
    a, b = torch.ones(3, 4), torch.ones(4, 5)
    torch.add(a, a, alpha=2.5)
    a.sum(dim=[0, 1])
    a.mul(-3)
    for value in (1e-7, 3.0, -2.0, float("inf"), float("nan"), True, False, 1 + 2j, 1 - 2.5j, 1e20, 0.1, -0.0, 2**62,
                  -2**63, 123456789.125, 1e10, 9999999999.0):
        torch.full((2,), value)
    torch.einsum("ij,jk->ik", a, b)
    torch.zeros([1] * 40).sum(list(range(40)))  # a list that is too long for torch's profiler
    torch.nn.functional.interpolate(torch.rand(1, 1, 2, 2), scale_factor=2.)


def tensors():
    a = torch.ones(3, 4)
    a.t().contiguous()
    torch.ones(3).expand(4, 3).clone()
    torch.cat([a, a, a[:0]], 1 - 1)
    torch._foreach_add_([a, a.t(), torch.ones(())], 1)
    a[:, torch.tensor([0])]
    torch.empty(0)
    a.sum()
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float64,
                  torch.complex64, torch.complex128, torch.complex32, torch.bool, torch.bfloat16, torch.uint16,
                  torch.uint32, torch.uint64, torch.float8_e5m2, torch.float8_e4m3fn, torch.float8_e5m2fnuz,
                  torch.float8_e4m3fnuz):
        torch.empty(2, dtype=dtype).clone()
    torch.quantize_per_tensor(a, 0.1, 0, torch.qint8).clone()


def ranges():
    x = torch.ones(2, 3)
    with torch.profiler.record_function("with an argument", "the argument"):
        x.neg()
    for i in range(5):
        with _RecordFunctionFast("a kernel", [x, i, [x, x.t()], "text"],
                                 {"grid": "grid(1, 2)", "stream": i, "share": 0.5, "names": ["a", "b"], "none": None}):
            x.neg()
    with _RecordFunctionFast("an annotation", [], {"scope": "user_scope"}):
        x.neg()


def odd_tensors():
    torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.tensor([1., 2.]), (3,)).coalesce()
    torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(4, 5)]).clone()
    torch.empty(2, 3, device="meta").clone()
    torch.nn.Parameter(torch.ones(2, 2)).mul(2)


class Inputs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def operators(self, path):
        """Returns the name and the inputs of each operator, in the order of their starts."""
        with open(path) as file:
            events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X" and e["cat"] in ("cpu_op", "user_annotation")]
        events.sort(key=lambda e: (e["ts"], -e["dur"]))
        return [(e["name"], {f: e["args"][f] for f in FIELDS if f in e["args"]})
                for e in events]

    def recorded(self, work, **options):
        path = os.path.join(self.folder, "ours.json")
        kpytrace.start(path, torch=options.pop("torch", "shapes"), **options)
        try:
            work()
        finally:
            kpytrace.stop()
        return self.operators(path)

    def test_they_are_those_of_torchs_profiler(self):
        for work in (train, values, tensors, odd_tensors):
            with self.subTest(work=work.__name__):
                work()
                path = os.path.join(self.folder, "stock.json")
                with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                            record_shapes=True) as stock:
                    work()
                stock.export_chrome_trace(path)
                theirs, ours = self.operators(path), self.recorded(work)
                self.assertGreater(sum(bool(inputs) for _, inputs in theirs), 9)
                for stocks, own in zip(theirs, ours):
                    self.assertEqual(own, stocks)
                self.assertEqual(len(ours), len(theirs))

    def test_of_ranges_beside_torchs_profiler(self):
        """torch reports a _RecordFunctionFast only while a profiler runs."""
        path = os.path.join(self.folder, "stock.json")
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as stock:
            ours = self.recorded(ranges)
        stock.export_chrome_trace(path)
        theirs = self.operators(path)
        self.assertEqual(ours, [row for row in theirs if row in ours])
        self.assertEqual(dict(ours)["a kernel"]["names"], ["a", "b"])
        self.assertEqual([inputs for name, inputs in ours if name == "with an argument"][0]["Input Dims"], [[]])
        self.assertEqual(dict(ours)["an annotation"], {"scope": "user_scope"})

    def test_they_are_recorded_only_on_demand(self):
        for work in (train, ranges):
            self.assertFalse(any(inputs for _, inputs in self.recorded(work, torch=True)))

    def test_of_a_list_that_is_too_long_the_first_ones_are_kept(self):
        many = [torch.ones(1000 + i) for i in range(5000)]
        wanted = [[1000 + i] for i in range(5000)]
        name, inputs = next((n, i) for n, i in self.recorded(lambda: torch._foreach_add_(many, 1))
                            if n == "aten::_foreach_add_")
        sizes, scalar = inputs["Input Dims"]
        self.assertGreater(len(sizes), 2000)
        self.assertEqual(sizes, wanted[:len(sizes)])
        self.assertEqual(scalar, [])

    def test_a_python_class_of_tensors_is_not_asked(self):
        class Loud(torch.Tensor):
            @classmethod
            def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
                asked.append(function)
                return torch.ones(2, 3)
        asked = []
        loud = torch.Tensor._make_wrapper_subclass(Loud, (2, 3), dispatch_sizes_strides_policy="sizes")
        found = self.recorded(lambda: torch.add(loud, 1))
        self.assertEqual([str(f) for f in asked], ["aten.add.Tensor"])
        self.assertIn(("aten::add", [2, 3]), [(n, i["Input Dims"][0]) for n, i in found if i])

    def test_one_of_two_traces_has_them(self):
        paths = [os.path.join(self.folder, name) for name in ("with.json", "without.json")]
        with kpytrace.trace(paths[0], torch="shapes"), kpytrace.trace(paths[1], torch=True):
            torch.ones(2, 3).mul(2)
        found = [dict(self.operators(path))["aten::mul"] for path in paths]
        self.assertEqual(found[0]["Input Dims"][0], [2, 3])
        self.assertEqual(found[1], {})

    def test_beside_an_execution_trace(self):
        """One pair of callbacks serves both, before, while and after the observer runs."""
        observer = ExecutionTraceObserver().register_callback(os.path.join(self.folder, "et.json"))

        def work():
            torch.ones(1).mul(2)
            observer.start()
            torch.ones(2).mul(2)
            observer.stop()
            torch.ones(3).mul(2)
        found = [i["Input Dims"][0] for n, i in self.recorded(work) if n == "aten::mul"]
        observer.unregister_callback()
        self.assertEqual(found, [[1], [2], [3]])

    def test_through_a_file_and_a_ring(self):
        def train():
            globals()["train"]()
            ranges()
        wanted = self.recorded(train)
        file, ring = (os.path.join(self.folder, name) for name in ("trace.kpt", "ring.json"))
        kpytrace.start(file, torch="shapes")
        train()
        kpytrace.stop()
        subprocess.run([sys.executable, "-m", "kpytrace", "convert", "-q", file, file + ".json"], check=True)
        self.assertEqual(self.operators(file + ".json"), wanted)
        kpytrace.start(ring, torch="shapes", ring="64MB")
        train()
        kpytrace.stop()
        self.assertEqual(self.operators(ring), wanted)


if __name__ == "__main__":
    unittest.main()
