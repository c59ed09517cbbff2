#!/usr/bin/env python3
"""Measures the cost of recording torch's operators on a host-bound training step, in the Python that runs this; figures
as JSON to stdout.

usage: operators.py FOLDER [ROUNDS]     FOLDER keeps the compiled pair of empty callbacks

Each contestant runs the same steps in turns, and the least time counts, since other load on the machine only adds.
"floor" has kpytrace's Python calls and a pair of callbacks that does nothing: what torch takes to call anyone.
"""
import gc
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time

import kpytrace
import torch
from kpytrace.torch import _compile, _environment
from training_step import Step

STEPS = 10


def empty_callbacks(folder):
    """Compiles the module once, and loads it."""
    source = pathlib.Path(__file__).resolve().parent.parent / "native" / "empty_callbacks.cc"
    path = pathlib.Path(folder, f"empty_callbacks-{torch.__version__}-{sys.implementation.cache_tag}.so")
    if not path.exists():
        subprocess.run(_compile.command(torch, _environment.find_compiler(), str(source), str(path)), check=True)
    loader = importlib.machinery.ExtensionFileLoader("empty_callbacks", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("empty_callbacks", loader))
    loader.exec_module(module)
    return module


class Contest:
    def __init__(self, folder):
        self.step, self.empty, self.folder = Step(), empty_callbacks(folder), folder
        self.figures = {}

    def note(self, name, value):
        self.figures[name] = min(value, self.figures.get(name, float("inf")))

    def bare(self):
        return self.step(STEPS)

    def record(self, name, **options):
        trace = kpytrace.start(**options)
        if trace._operators and trace._operators.reason:
            sys.exit("operators.py: operators are not recorded")
        seconds = self.step(STEPS)
        began = time.perf_counter()
        trace.stop()
        self.note(f"{name} stop", (time.perf_counter() - began) / STEPS)
        self.figures[f"{name} bytes"] = trace.stats()["bytes_held"] / STEPS
        return trace, seconds

    def calls(self):
        trace, seconds = self.record("calls")
        self.figures["calls events"] = trace.stats()["events"] / STEPS
        trace.close()
        return seconds

    def floor(self):
        self.empty.add()
        try:
            return self.calls()
        finally:
            self.empty.remove()

    def operators(self):
        trace, seconds = self.record("operators", torch=True)
        self.figures["operators events"] = trace.stats()["events"] / STEPS
        path = os.path.join(self.folder, "operators.kpt")
        trace.write(path)
        self.figures["kpt bytes"] = os.path.getsize(path) / STEPS
        os.unlink(path)
        trace.close()
        return seconds

    def shapes(self):
        trace, seconds = self.record("shapes", torch="shapes")
        self.figures["shapes events"] = trace.stats()["events"] / STEPS
        trace.close()
        return seconds

    def ring(self):
        trace, seconds = self.record("ring", torch=True, ring="64MB")
        trace.close()
        return seconds

    def stock(self, name, **options):
        prof = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options)
        prof.start()
        seconds = self.step(STEPS)
        began = time.perf_counter()
        prof.stop()
        self.note(f"{name} stop", (time.perf_counter() - began) / STEPS)
        path = os.path.join(self.folder, "stock.json")
        prof.export_chrome_trace(path)
        self.figures[f"{name} bytes"] = os.path.getsize(path) / STEPS
        os.unlink(path)
        return seconds

    def stock_plain(self):
        return self.stock("stock_plain")

    def stock_shapes(self):
        return self.stock("stock_shapes", record_shapes=True)

    def stock_stack(self):
        return self.stock("stock_stack", with_stack=True)


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    torch.set_num_threads(1)
    contest = Contest(sys.argv[1])
    contest.step(5)
    for number in range(rounds):
        names = ["bare", "calls", "floor", "operators", "shapes", "ring"]
        if number < 4:
            names += ["stock_plain", "stock_shapes"]
        if number < 2:
            names += ["stock_stack"]
        for name in names:
            gc.collect()
            contest.note(name, getattr(contest, name)())
    print(json.dumps(contest.figures))


if __name__ == "__main__":
    main()
