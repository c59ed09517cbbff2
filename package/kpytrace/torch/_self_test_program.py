"""Is run by _self_test in a separate process, with the path of a shim and the parent's sys.path. Profiles a small
model in each mode, and checks names, nesting and memory. Its last line is "passed", or describes the problem."""

from __future__ import annotations

import atexit
import json
import os
import sys
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

_result = "it ended early"
# The first registered function runs last, so a process that prints the result has shut down torch and kpytrace.
atexit.register(lambda: print(_result, flush=True))


def self_test_leaf() -> None:
    """Encloses no operator."""


def fail_unless(condition: bool, what: str) -> None:
    global _result
    if not condition:
        _result = what
        raise SystemExit(1)


def make_step(torch: ModuleType) -> Callable[[], None]:
    class SelfTestNet(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.inside = torch.nn.Linear(4, 4)

        def forward(self, data: Any) -> Any:
            self_test_leaf()
            return self.inside(data)

    model, data = SelfTestNet(), torch.ones(2, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def self_test_step() -> None:
        optimizer.zero_grad()
        model(data).sum().backward()
        optimizer.step()
    return self_test_step


def profiled(torch: ModuleType, step: Callable[[], None]) -> Any:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True,
                                record_shapes=True, profile_memory=True) as profiler:
        for _ in range(2):
            step()
    return profiler


def walk(nodes: Any, parents: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yields all events of a tree, each with the events around it, outermost first."""
    for node in nodes:
        yield node, parents
        yield from walk(node.children, (*parents, node))


def check_tree(profiler: Any, mode: str) -> None:
    found = list(walk(profiler.profiler.kineto_results.experimental_event_tree()))
    for node, parents in found:
        if parents and node.start_tid == parents[-1].start_tid:
            fail_unless(parents[-1].start_time_ns <= node.start_time_ns,
                        f"mode {mode}: {node.name} begins before {parents[-1].name} around it")
    operators = [parents for node, parents in found if node.name == "aten::linear"]
    fail_unless(len(operators) == 2, f"mode {mode}: {len(operators)} instead of 2 operators aten::linear")
    for parents in operators:
        names = [parent.name for parent in parents]
        places = [next((at for at, name in enumerate(names) if name.endswith(wanted)), -1)
                  for wanted in (": self_test_step", "nn.Module: SelfTestNet_0", ": forward",
                                 "nn.Module: Linear_0")]
        fail_unless(-1 not in places and places == sorted(places),
                    f"mode {mode}: the calls around aten::linear are {names}")
    fields = [node.extra_fields for node, _ in found]
    modules = [of.module.parameters for of in fields if getattr(of, "module", None)]
    optimizers = [of.optimizer.parameters for of in fields if getattr(of, "optimizer", None)]
    counts = [len(parameters) for parameters in modules + optimizers]
    fail_unless(counts == [0, 2, 0, 2, 2, 2],
                f"mode {mode}: modules and optimizers have {counts} parameters")
    weight = modules[1][0][1]
    inputs = {getattr(tensor, "id", None) for node, _ in found if node.name == "aten::linear"
              for tensor in node.extra_fields.inputs}
    fail_unless(weight.sizes == [4, 4] and weight.id is not None and weight.id in inputs,
                f"mode {mode}: the module's weight is not an input of its operator")


def check_file(profiler: Any, mode: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    calls = {event["args"]["Python id"]: event for event in events if event.get("cat") == "python_function"}
    leaves = [call for call in calls.values() if call["name"].endswith(": self_test_leaf")]
    fail_unless(len(leaves) == 2,
                f"mode {mode}: the exported trace has {len(leaves)} instead of 2 calls of a function")
    for leaf in leaves:
        names, inner = [], leaf
        while inner["args"].get("Python parent id") in calls:
            outer = calls[inner["args"]["Python parent id"]]
            # Times are in microseconds, rounded to nanoseconds.
            fail_unless(outer["ts"] <= inner["ts"] + 0.002 and
                        inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.002,
                        f"mode {mode}: {inner['name']} is not within {outer['name']}")
            names.append(outer["name"].rpartition(": ")[2])
            inner = outer
        fail_unless("SelfTestNet_0" in names and "self_test_step" in names,
                    f"mode {mode}: the calls around a function are {names}")


def check_operators(step: Any) -> None:
    """Checks the operators and their inputs in a trace without a profiler of torch's."""
    import kpytrace

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        with kpytrace.trace(path, torch="shapes", gpu=False):
            step()
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    dims = [event["args"].get("Input Dims") for event in events
            if event.get("cat") == "cpu_op" and event["name"] == "aten::linear"]
    fail_unless(dims == [[[2, 4], [4, 4], [4]]],
                f"torch's operators in a trace: aten::linear has the inputs {dims}")


def main() -> None:
    global _result
    sys.path[:] = json.loads(sys.argv[2])
    import torch

    import kpytrace.torch
    from kpytrace.torch import _results, _shim
    from kpytrace.torch._types import MODES

    _shim.load_from(sys.argv[1], torch)
    step = make_step(torch)
    step()
    for mode in MODES:
        kpytrace.torch.install(mode)
        profiler = profiled(torch, step)
        fail_unless(_results.recording_of(profiler.profiler.kineto_results) is not None,
                    f"mode {mode}: kpytrace has recorded nothing")
        check_file(profiler, mode)
        if mode != "fast":
            check_tree(profiler, mode)
    kpytrace.torch.uninstall()
    check_operators(step)
    profiled(torch, step)
    _result = "passed"


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        fail_unless(False, f"{type(error).__name__}: {error}".replace("\n", " "))
