"""Exports the profiles of known programs. Run as

    native_file.py stock|native FOLDER

Each program writes FOLDER/NAME.json."""

import os
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import torch
from native_names import ODD
from torch._C._profiler import _RecordFunctionFast
from torch.profiler import profile, record_function, schedule
from traced import CPU


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.inner(x)) + x


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


net = torch.nn.Sequential(Block(), Block())
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
data = torch.arange(8.0).reshape(2, 4)


def train():
    with record_function("forward pass"):
        loss = Twice.apply(net(data)).sum()
        with record_function("nested"):
            loss = loss * 1.5
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def values():
    torch.cat([data, torch.zeros(1, 4, dtype=torch.float64)])
    torch.add(data, 2, alpha=3)
    torch.full((2, 3), 1.25)
    data.transpose(0, 1)[1:, ::2].sum(dim=(0, 1), keepdim=True)
    torch.stack([data.bool(), data.bool()]).any()


def ranges():
    """Annotations and records without a schema, with inputs and keywords as Inductor gives them."""
    with record_function("with an argument", "the argument"):
        data.add(1)
    kernel = {"kernel_file": "/tmp/kernel.py", "kernel_backend": "triton", "grid": "grid(1, 2, 3)", "stream": 7,
              "num_warps": 4, "share": 0.5, "is_last": True, "is_first": False, "symbols": ["s0", "s1"], "far": -2**40}
    with _RecordFunctionFast("a kernel", [data, 8, 2.5, True, "text", None, [1, 2], [data, data], data[:, ::2], 1 + 2j],
                             kernel):
        data.mul(2)
    with _RecordFunctionFast("without inputs", [], {"none": None, "numbers": [1, 2], "empty": "", "no names": []}):
        pass
    with _RecordFunctionFast("an annotation", (data,), {"scope": "user_scope", "number": 1}):
        data.neg()
    with _RecordFunctionFast("inputs only", [data]):
        pass


def fails():
    try:
        with record_function("fails"):
            torch.ones(2) @ torch.ones(3)
    except RuntimeError:
        torch.ones(1)


def threads():
    """The work of a thread that the profiler does not know, and of one that it does."""
    def work():
        with record_function("in a thread"):
            torch.ones(2).add(1)
    for _ in range(2):
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
    data.add(1)


def profiled(work, times=1, **options):
    options.setdefault("with_stack", True)
    with profile(activities=CPU, **options) as prof:
        for _ in range(times):
            work()
            prof.step()
    return prof


def distributed():
    """Collectives and DistributedDataParallel, with the ranges of their inputs."""
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    net(data).sum().backward()

    def step():
        net(data).sum().backward()
        torch.distributed.all_reduce(torch.ones(3))
    return profiled(step, record_shapes=True, with_stack=False)


def described():
    """With metadata."""
    prof = profile(activities=CPU, custom_trace_id_callback=lambda: "my id")
    prof.preset_metadata_json("preset", "[1, 2]")
    with prof:
        prof.add_metadata("text", "plain")
        prof.add_metadata_json("value", '{"a": 1.5}')
        data.add(1)
    return prof


def odd():
    def call():
        with record_function(ODD):
            data.add(1)
    call.__code__ = call.__code__.replace(co_name=ODD)
    with profile(activities=CPU, with_stack=True, record_shapes=True) as prof:
        prof.add_metadata("quoted", ODD)
        prof.add_metadata_json("no json", "{nope")
        call()
        with _RecordFunctionFast("keywords", [data], {ODD: ODD, "list": [ODD, ""], "Input Dims": "taken", "whole": 2.0,
                                                      "far": float("inf"), "long": 5000 * "é", "path": "a\\b\n",
                                                      "longest": 20000 * "a"}):
            pass
    return prof


def scheduled(to):
    """Two cycles."""
    number = iter("12")
    with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
                 on_trace_ready=lambda prof: prof.export_chrome_trace(to(f"cycle_{next(number)}.json"))) as prof:
        for _ in range(8):
            data.add(1)
            prof.step()


def main():
    kind, folder = sys.argv[1:]
    if kind != "stock":
        import kpytrace.torch

        kpytrace.torch.install(kind)
    train()

    def to(name):
        return os.path.join(folder, name)
    profiles = {"train": lambda: profiled(train, 2, record_shapes=True),
                "alone": lambda: profiled(train, 2, with_stack=False),
                "values": lambda: profiled(values, record_shapes=True),
                "ranges": lambda: profiled(ranges, record_shapes=True),
                "ranges_alone": lambda: profiled(ranges),
                "fails": lambda: profiled(fails),
                "threads": lambda: profiled(threads),
                "described": described}
    if kind != "stock":
        profiles["odd"] = odd  # torch's is no JSON
    for name, make in profiles.items():
        make().export_chrome_trace(to(f"{name}.json"))
    scheduled(to)
    torch.distributed.init_process_group("gloo", init_method=f"file://{to('group')}", rank=0, world_size=1)
    distributed().export_chrome_trace(to("distributed.json"))
    torch.distributed.destroy_process_group()
    if os.path.exists(to("group")):
        os.remove(to("group"))


if __name__ == "__main__":
    main()
