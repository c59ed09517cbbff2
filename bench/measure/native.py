#!/usr/bin/env python3
"""Measures kpytrace.torch.profile beside torch.profiler.profile on a host-bound training step, in the Python that runs
this; figures as JSON to stdout.

usage: native.py FOLDER [ROUNDS [STEPS [cuda]]]     FOLDER keeps the files while they are measured

The contestants run the same steps in turns, and the least time counts, since other load on the machine only adds.
"""
import gc
import json
import os
import sys
import time

import kpytrace.torch
import torch
from training_step import Step

OPTIONS = {"plain": {}, "stack": {"with_stack": True}, "shapes": {"with_stack": True, "record_shapes": True}}
TABLE_ROUNDS = 1  # torch's own tables take seconds


def held_bytes():
    """Returns the resident memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Contest:
    def __init__(self, folder, steps, device):
        self.folder, self.steps = folder, steps
        self.step = Step(device)
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

    def profile(self, kind, options, suffix, with_tables):
        """Runs the steps under one profile, and measures everything behind it. torch can export a profile once."""
        own = f"{kind} {options}"
        gc.collect()
        before = held_bytes()
        prof = (kpytrace.torch.profile if kind == "native" else torch.profiler.profile)(
            activities=self.activities, **OPTIONS[options])
        prof.start()
        self.note(f"{own} run", self.step(self.steps))
        self.timed(f"{own} stop", prof.stop)
        self.note(f"{own} held", max(held_bytes() - before, 0))
        path = os.path.join(self.folder, f"native.{suffix}")
        self.timed(f"{own} {suffix}", lambda: prof.export_chrome_trace(path))
        self.figures[f"{own} {suffix} bytes"] = os.path.getsize(path)
        os.unlink(path)
        if with_tables:  # first, as torch computes its events for it
            self.timed(f"{own} table", lambda: prof.key_averages().table())
            self.timed(f"{own} events", prof.events)


def main():
    folder = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    device = sys.argv[4] if len(sys.argv) > 4 else "cpu"
    torch.set_num_threads(1)
    contest = Contest(folder, steps, device)
    contest.step(5)
    for number in range(rounds):
        contest.note("bare", contest.step(steps))
        for options in OPTIONS:
            for kind in ("stock", "native"):
                contest.profile(kind, options, ("json", "json.gz")[number % 2], number < TABLE_ROUNDS)
        contest.note("bare", contest.step(steps))
    print(json.dumps(contest.figures))


main()
