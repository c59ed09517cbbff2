#!/usr/bin/env python3
"""Measures kpytrace.torch.profile beside torch.profiler.profile on a host-bound training step, in the Python that runs
this; figures as JSON to stdout.

usage: native.py FOLDER [ROUNDS [STEPS [cuda]]]     FOLDER keeps the files while they are measured

The contestants run the same steps in turns, and the least time counts, since other load on the machine only adds.
"""
import gc
import json
import os
import subprocess
import sys
import time

import kpytrace.torch
import torch
from training_step import Step

OPTIONS = {"plain": {}, "stack": {"with_stack": True}, "shapes": {"with_stack": True, "record_shapes": True}}
TABLES = ("table", "events")  # once, in these rounds: torch's own take seconds


def held_bytes(kind, options, steps, device):
    """Returns by how much the resident memory of a process grows with a profile, in a process of its own."""
    code = (f"import sys; sys.argv = ['native.py']; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
            f"import native; native.hold({kind!r}, {options!r}, {steps}, {device!r})")
    return int(subprocess.check_output([sys.executable, "-W", "ignore", "-c", code]).split()[-1])


def hold(kind, options, steps, device):
    contest = Contest(None, steps, device)
    with open("/proc/self/statm") as file:
        def resident():
            file.seek(0)
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        contest.steps = 1
        contest.profiled(kind, options)  # what only the first profile of a process takes
        contest.steps = steps
        gc.collect()
        before = resident()
        prof = contest.profiled(kind, options)
        gc.collect()
        print(resident() - before)
    del prof


class Contest:
    def __init__(self, folder, steps, device):
        torch.set_num_threads(1)
        self.folder, self.steps = folder, steps
        self.step = Step(device)
        self.step(5)
        kinds = torch.profiler.ProfilerActivity
        self.activities = [kinds.CPU] + [kinds.CUDA] * (device == "cuda")
        self.figures = {"steps": steps}

    def note(self, name, value):
        self.figures[name] = min(value, self.figures.get(name, float("inf")))

    def timed(self, name, call):
        began = time.perf_counter()
        result = call()
        self.note(name, time.perf_counter() - began)
        return result

    def profiled(self, kind, options):
        """Runs the steps under a profile, and returns it."""
        prof = (kpytrace.torch.profile if kind == "native" else torch.profiler.profile)(
            activities=self.activities, **OPTIONS[options])
        prof.start()
        self.note(f"{kind} {options} run", self.step(self.steps))
        self.timed(f"{kind} {options} stop", prof.stop)
        return prof

    def profile(self, kind, options, suffix, table):
        """Measures one profile, and everything behind it. torch can export a profile once, and keeps its events."""
        own = f"{kind} {options}"
        gc.collect()
        prof = self.profiled(kind, options)
        path = os.path.join(self.folder, f"native.{suffix}")
        self.timed(f"{own} {suffix}", lambda: prof.export_chrome_trace(path))
        self.figures[f"{own} {suffix} bytes"] = os.path.getsize(path)
        os.unlink(path)
        if table == "table":
            self.timed(f"{own} table", lambda: prof.key_averages().table())
        elif table == "events":
            self.timed(f"{own} events", prof.events)


def main():
    folder = sys.argv[1]
    rounds = max(int(sys.argv[2]) if len(sys.argv) > 2 else 4, len(TABLES))
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    device = sys.argv[4] if len(sys.argv) > 4 else "cpu"
    contest = Contest(folder, steps, device)
    for number in range(rounds):
        contest.note("bare", contest.step(steps))
        for options in OPTIONS:
            for kind in ("stock", "native"):
                contest.profile(kind, options, ("json", "json.gz")[number % 2], dict(enumerate(TABLES)).get(number))
        contest.note("bare", contest.step(steps))
    for options in OPTIONS:
        for kind in ("stock", "native"):
            contest.figures[f"{kind} {options} held"] = held_bytes(kind, options, steps, device)
    print(json.dumps(contest.figures))


if __name__ == "__main__":
    main()
