#!/usr/bin/env python3
"""Measures the cost of Python stacks in torch's profiler, in the Python that runs this; figures as JSON to
stdout.

usage: torch_host.py none|stock|fast|full FOLDER [CALLS]     FOLDER is best on a memory-backed file system
       torch_host.py --gil none|fast FOLDER [CALLS]          how long other threads wait for the GIL

"none" is a profiler without stacks, which the others are compared with. Times are wall time in seconds,
since export uses more than one thread.
"""
import gc
import json
import os
import sys
import threading
import time

import torch
from torch.profiler import ProfilerActivity, profile

LEAVES = 300_000
STEPS = 30


def leaf():
    pass


def leaves(count):
    for _ in range(count):
        leaf()


class Step:
    """A small eager training step."""

    def __init__(self):
        layers = [torch.nn.Linear(32, 32), torch.nn.LayerNorm(32), torch.nn.GELU()] * 4
        self.net = torch.nn.Sequential(*layers, torch.nn.Linear(32, 4))
        self.optimizer = torch.optim.AdamW(self.net.parameters(), foreach=False)
        self.data, self.target = torch.randn(8, 32), torch.randint(4, (8,))

    def __call__(self, count):
        for _ in range(count):
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.net(self.data), self.target).backward()
            self.optimizer.step()


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def timed(function, *args):
    began = time.perf_counter()
    function(*args)
    return time.perf_counter() - began


def new_profiler(kind):
    return profile(activities=[ProfilerActivity.CPU], with_stack=kind != "none")


def exported(prof, path):
    seconds = timed(prof.export_chrome_trace, path)
    size = os.path.getsize(path)
    os.unlink(path)
    return seconds, size


def measure(program, count, kind, folder):
    """Traces PROGRAM, stops and exports, twice: once as .json, once as .json.gz."""
    figures = {"bare": timed(program, count)}
    for form in (".json", ".json.gz"):
        gc.collect()
        prof, before = new_profiler(kind), resident_bytes()
        prof.start()
        figures["traced"] = min(timed(program, count), figures.get("traced", float("inf")))
        figures["stop"] = min(timed(prof.stop), figures.get("stop", float("inf")))
        figures["held"] = max(resident_bytes() - before, figures.get("held", 0))
        figures[form], figures[form + " bytes"] = exported(prof, os.path.join(folder, "t" + form))
        del prof
    return figures


class Ticker(threading.Thread):
    """Wakes up as often as possible. A late wake-up means that another thread holds the GIL, or that the
    machine is busy; the kernel reports the share of the latter."""

    PAUSE = 0.0005
    USUAL = 0.002  # a pause, with the usual delay of a wake-up

    def __init__(self):
        super().__init__(daemon=True)
        self.done, self.longest, self.waited = False, 0.0, 0.0

    def run(self):
        clock = time.perf_counter
        queue = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

        def queued():
            return int(os.pread(queue, 64, 0).split()[1]) / 1e9
        last, waited = clock(), queued()
        while not self.done:
            time.sleep(self.PAUSE)
            now, now_waited = clock(), queued()
            blocked = now - last - (now_waited - waited)
            self.longest = max(self.longest, blocked)
            self.waited += max(0.0, blocked - self.USUAL)
            last, waited = now, now_waited
        os.close(queue)


def held_gil(kind, folder, count):
    prof, ticker = new_profiler(kind), Ticker()
    prof.start()
    leaves(count)
    ticker.start()
    seconds = timed(prof.stop)
    path = os.path.join(folder, "t.json")
    seconds += timed(prof.export_chrome_trace, path)
    ticker.done = True
    ticker.join()
    os.unlink(path)
    return {"seconds": seconds, "longest": ticker.longest, "waited": ticker.waited}


def main():
    arguments = sys.argv[1:]
    gil = "--gil" in arguments and not arguments.remove("--gil")
    kind, folder = arguments[:2]
    count = int((arguments[2:] or [LEAVES])[0])
    torch.set_num_threads(1)
    if kind in ("fast", "full"):
        import kpytrace.torch

        kpytrace.torch.install(kind)
    step = Step()
    step(2)
    with new_profiler(kind):  # one-time costs belong to no session
        step(1)
    if gil:
        figures = held_gil(kind, folder, count)
    else:
        figures = {"python": sys.version.split()[0], "torch": torch.__version__, "calls": count,
                   "leaves": measure(leaves, count, kind, folder),
                   "step": measure(step, STEPS, kind, folder)}
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main()
