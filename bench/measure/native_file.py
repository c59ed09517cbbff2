#!/usr/bin/env python3
"""Measures the export of a profile of a host-bound training step with stacks, in the mode "native" and in stock torch;
figures as JSON to stdout.

usage: native_file.py FOLDER [ROUNDS]     FOLDER receives the files

Both export ten steps in turns, with and without compression, and the least time counts. Times are those of the
processor in all threads, and by the clock.
"""
import json
import os
import pathlib
import sys
import time

import kpytrace.torch
import torch
from operators import STEPS, Step

CPU = [torch.profiler.ProfilerActivity.CPU]


def profiled(step, shapes):
    with torch.profiler.profile(activities=CPU, with_stack=True, record_shapes=shapes) as prof:
        step(STEPS)
    return prof


def exported(prof, path):
    """Returns the processor's and the clock's milliseconds, and the bytes."""
    began, clock = time.process_time(), time.perf_counter()
    prof.export_chrome_trace(path)
    return ((time.process_time() - began) * 1e3, (time.perf_counter() - clock) * 1e3, os.path.getsize(path))


def main():
    folder, rounds = sys.argv[1], int((sys.argv[2:] or ["3"])[0])
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    step, figures = Step(), {}
    step(2)
    for _ in range(rounds):
        for shapes in (False, True):
            for suffix in ("json", "json.gz"):
                for kind in ("stock", "native"):
                    if kind == "native":
                        kpytrace.torch.install("native")
                    else:
                        kpytrace.torch.uninstall()
                    name = f"{suffix}{' with shapes' if shapes else ''}"
                    found = exported(profiled(step, shapes), os.path.join(folder, f"{kind}.{suffix}"))
                    known = figures.setdefault(name, {}).setdefault(kind, found)
                    figures[name][kind] = tuple(map(min, zip(known, found)))
    for row in figures.values():
        row["of stock's"] = [round(own / theirs, 3) for own, theirs in zip(row["native"], row["stock"])]
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
