"""Side by side: torch's observer and kpytrace's record the same run, and write the same nodes, but for
what docs/execution_trace.md lists as corrected."""

import ctypes
import json
import os
import subprocess
import threading
import unittest


import et
import et_sides
import torch
from torch._subclasses import FakeTensorMode

HERE = os.path.dirname(os.path.abspath(__file__))


class Wrapper(torch.Tensor):
    """A wrapper subclass made by torch's own function, without elements."""

    @staticmethod
    def __new__(cls, inner, **options):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, **options)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        inner = [value.inner if isinstance(value, Wrapper) else value for value in args]
        return function(*inner, **(kwargs or {}))


def devices(tree, name):
    """Returns the devices of the inputs and outputs of operators of that name."""
    return {value[5] for node in tree.nodes if node["name"] == name for side in ("inputs", "outputs")
            for value, kind in zip(node[side]["values"], node[side]["types"]) if kind.startswith("Tensor(")}


class SideBySide(et_sides.SideBySide):
    def test_payload(self):
        self.same(lambda: [et.loop(index) for index in range(3)])

    def test_training(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, bias=False), torch.nn.BatchNorm2d(4),
                                    torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5))
        optimizer = torch.optim.Adam(model.parameters(), foreach=True)

        def work():
            for _ in range(3):
                loss = torch.nn.functional.cross_entropy(model(torch.randn(2, 1, 8, 8)),
                                                         torch.tensor([1, 2]))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        ours = self.same(work)
        backward = [node for node in ours.nodes if et.attr(node, "fw_parent")]
        self.assertTrue(backward)

    def test_values(self):
        u = torch.randn(3, 4)
        dtypes = [torch.zeros(2, dtype=dtype) for dtype in
                  (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
                   torch.uint16, torch.uint32, torch.uint64, torch.float16, torch.bfloat16,
                   torch.float64, torch.complex64, torch.complex128, torch.float8_e4m3fn)]
        values = [1, -7, 10 ** 15, -2 ** 63, 2 ** 63 - 1, True, 2.5, -0.0, 1e100, float("inf"),
                  float("nan"), "hello", None, torch.device("cpu"), torch.device("meta"),
                  {"a": 1}, [1, 2], [1.5], [True], ["s"], (1, "x", 2.0, u), [[1, 2], [3]], [(1, u)],
                  torch.float32, 1 + 2j, torch.Size([1, 2]), list(range(5000)), [u] * 4100,
                  torch.empty(2, device="meta"), torch.empty(0), torch.tensor(3),
                  u.t()[1:, ::2], u.expand(5, 3, 4), torch.eye(2).to_sparse(),
                  torch.quantize_per_tensor(u, 0.1, 0, torch.quint8)]

        def work():
            for value in values + dtypes:
                with et.annotation("value", value):
                    pass
            with et.annotation("all", *values, *dtypes):
                pass

        ours = self.same(work)
        self.assertEqual(len(ours.by_id), len(values) + len(dtypes) + 3)

    def test_many_values(self):
        """Lists are cut; the inputs of an operator are not."""
        said = {"kernel_backend": "triton", "kernel_file": "kernel.py", "stream": 3, "grid": "grid(1,)"}

        def work():
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                        record_shapes=True):  # else torch has no arguments for anybody
                with et.annotation("many", *range(5000)):
                    pass
                with torch._C._profiler._RecordFunctionFast("kernel", tuple(range(5000)), said):
                    pass

        ours = self.same(work)
        counts = {node["name"]: len(node["inputs"]["values"]) for node in ours.nodes}
        self.assertEqual((counts["many"], counts["kernel"]), (5000, 5001))

    def test_operators(self):
        @torch.jit.script
        def scripted(x):
            return x.sin() + 1

        def work():
            x = torch.randn(6, 4, requires_grad=True)
            torch.split(x, 2)
            torch.einsum("ij,jk->ik", x, x.t())
            x[1:, None], x[torch.tensor([1])]
            torch.nn.LSTM(4, 3)(torch.randn(2, 3, 4))
            torch.nn.functional.embedding(torch.tensor([1, 2]), x).sum().backward()
            torch.rand(2, generator=torch.Generator())
            torch.eye(2).to_sparse() + torch.eye(2).to_sparse()
            scripted(x)
            with torch.inference_mode():
                torch.ones(2, dtype=torch.int64) * 3
            with torch.autocast("cpu", torch.bfloat16):
                x @ x.t()
            torch.vmap(torch.sin)(x)
            torch.func.functional_call(torch.nn.Linear(4, 2), {}, (x,))
            torch.nested.nested_tensor([x.detach(), x.detach()[1:]], layout=torch.jagged).sin().cos()

        self.same(work)

    def test_fake_tensors(self):
        """Fake tensors are on the device that they represent, and on meta while a kernel runs."""
        mode = FakeTensorMode()
        real = torch.ones(3, 4, requires_grad=True)

        def work():
            fake = mode.from_tensor(real)
            with mode:
                model = torch.nn.Linear(4, 2)
                model(fake.sin()).sum().backward()
                torch.zeros(3).add_(fake.detach()[:, 1:2].t()[0])
                torch.stack([fake, fake * 2])
            torch.cos(fake)

        ours = self.same(work)
        self.assertEqual(devices(ours, "aten::sin"), {"cpu", "meta"})
        self.assertEqual(devices(ours, "aten::linear"), {"cpu"})

    def test_fake_tensors_of_other_devices(self):
        """The index of the device that they represent is known only to Python, which is not called."""
        def work():
            with FakeTensorMode():
                torch.ones(2, device="mps:0").sin()

        theirs, ours = (devices(et_sides.Tree(trace), "aten::sin") for trace in et_sides.both(work))
        self.assertEqual((theirs, ours), ({"mps:0", "meta"}, {"mps", "meta"}))

    def test_wrappers(self):
        wrappers = [Wrapper(torch.ones(2, 3), device=device, **options) for device in ("cpu", "meta", "mps:0")
                    for options in ({}, {"storage_size": 24}, {"strides": (1, 2), "storage_offset": 1})]
        ours = self.same(lambda: [wrapper.sin() for wrapper in wrappers])
        self.assertEqual(devices(ours, "aten::sin"), {"cpu", "meta", "mps:0"})

    def test_threads(self):
        def work():
            x = torch.randn(4, 4, requires_grad=True)
            threads = [threading.Thread(target=lambda: (x @ x).sum().backward()) for _ in range(3)]
            for thread in threads:
                thread.start()
                thread.join()

        self.assertEqual(len(self.same(work).of_thread()), 5)  # three, the one that waits, and the root's

    def test_custom_operator(self):
        @torch.library.custom_op("kpytrace_test::twice", mutates_args=())
        def twice(x: torch.Tensor, n: int = 2, names: str = "ab") -> torch.Tensor:
            return x * n

        self.same(lambda: twice(torch.ones(2)))

    def test_kernels(self):
        """Kernels as torch's compiler reports them."""
        fast = torch._C._profiler._RecordFunctionFast
        said = [{"kernel_backend": "triton", "kernel_file": "/tmp/some/kernel.py", "stream": 7,
                 "grid": "grid(1,)"},
                {"kernel_backend": "cpp"}, {"other": 1}, {}]

        def work():
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                        record_shapes=True):  # else torch has no arguments for anybody
                for words in said:
                    with fast("a_kernel", [torch.ones(2), 3], words):
                        pass
                with fast("no arguments"):
                    pass

        nodes = [node for node in self.same(work).nodes if node["name"] == "a_kernel"]
        self.assertEqual([et.attr(node, "kernel_file") for node in nodes],
                         ["kernel.py", "", "", ""])
        self.assertEqual([et.attr(node, "kernel_backend") for node in nodes],
                         ["triton", "cpp", "", ""])
        self.assertEqual(nodes[0]["inputs"]["values"][2], 7)

    def test_collectives(self):
        from kpytrace.torch import _compile, _environment

        with et.folder() as folder:
            library = os.path.join(folder, "collective.so")
            subprocess.run(_compile.command(torch, _environment.find_compiler(),
                                            os.path.join(HERE, "collective.cc"), library), check=True)
            helper = ctypes.CDLL(library)
        ours = self.same(lambda: [helper.kpt_collective(known) for known in (1, 0)])
        nodes = [node for node in ours.nodes if node["name"] == "record_param_comms"]
        self.assertEqual([et.has_attr(node, "debug") for node in nodes], [False, True])
        self.assertEqual(et.attr(nodes[0], "collective_name"), "allreduce")
        self.assertEqual(et.attr(nodes[0], "in_split_size"), "[1, 2]")
        self.assertEqual(et.attr(nodes[0], "pg_size"), 16)
        self.assertEqual(et.attr(nodes[1], "debug"), "missing comms info")

    def test_process_groups(self):
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        self.addCleanup(torch.distributed.destroy_process_group)
        with et.folder() as folder:
            trace = et.record(os.path.join(folder, "trace.json"),
                              lambda: torch.distributed.all_reduce(torch.ones(4)))
        groups = json.loads(et.the(trace, "## process_group:init ##")["inputs"]["values"][0])
        self.assertEqual(groups, [{"pg_name": "0", "pg_desc": "default_pg",
                                   "backend_config": groups[0]["backend_config"], "ranks": [],
                                   "group_size": 1, "group_count": 1}])
        self.assertIn("gloo", groups[0]["backend_config"])


if __name__ == "__main__":
    unittest.main()
