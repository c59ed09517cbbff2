"""Schedules with several cycles, with each way to keep their events. Run as

    cycles.py FOLDER stock
    cycles.py FOLDER all full fast

Each kind writes its files to a folder in FOLDER, and other results to results.json there."""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import torch
import traced
from programs import Net, outer, train
from torch.profiler import schedule, tensorboard_trace_handler

WAIT, ACTIVE, CYCLES = 1, 2, 3
STEPS = (WAIT + 1 + ACTIVE) * CYCLES

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(2, 3)


def step_of(number):
    """A step with its own name."""
    def step():
        ord("a")
        outer()
        train(net, optimizer, x)
    step.__code__ = step.__code__.replace(co_name=f"step_{number}")
    return step


ALL = [step_of(number) for number in range(STEPS)]


def cycles(handler, **options):
    plan = schedule(wait=WAIT, warmup=1, active=ACTIVE, repeat=CYCLES)
    with traced.profile(with_stack=True, activities=traced.CPU, schedule=plan,
                        on_trace_ready=handler, **options) as prof:
        for step in ALL:
            step()
            prof.step()
    return prof


def accumulated(to):
    counts = []
    prof = cycles(lambda prof: counts.append(len(prof.events())), acc_events=True)
    prof.events().export_chrome_trace(to("accumulated.json"))
    return {"counts": counts,
            "events": [[traced.plain(event.name), getattr(event, "is_python_function", False)]
                       for event in prof.events() if event.count],
            "parts": [traced.plain(event.name) for event in prof.events() if not event.count],
            "averages": sorted([traced.plain(row.key), row.count] for row in prof.key_averages()
                               if row.key.startswith("aten::"))}


def without_operators(to):
    """Sessions of one profiler that have nothing but Python calls."""
    prof = traced.profile(with_stack=True, activities=traced.CPU, acc_events=True)
    for _ in range(2):
        prof.start()
        outer()
        prof.stop()
    prof.events().export_chrome_trace(to("without_operators.json"))


def run(kind, folder):
    def to(name):
        return os.path.join(folder, name)
    if kind != "stock":
        kpytrace.torch.install(kind)
    os.mkdir(folder)
    results = accumulated(to)
    without_operators(to)
    cycles(tensorboard_trace_handler(to("plain"), "worker"))
    cycles(tensorboard_trace_handler(to("packed"), "worker", use_gzip=True))
    os.mkdir(to("exported"))
    cycles(lambda prof: prof.export_chrome_trace(to(f"exported/{prof.step_num:02}.json")))
    with open(to("results.json"), "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    if sys.argv[2:] != ["stock"]:
        import kpytrace.torch
    for each in sys.argv[2:]:
        run(each, os.path.join(sys.argv[1], each))
