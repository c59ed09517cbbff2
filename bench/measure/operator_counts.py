#!/usr/bin/env python3
"""Measures what recording an operator costs as their number and the number of threads grow, in the Python that runs this;
one line of JSON to stdout.

usage: operator_counts.py KIND OPERATORS THREADS ROUNDS PATH     KIND: recording, stream or ring; PATH is the stream's

The operators run in TorchScript, without the GIL. Bare and recorded rounds take turns, and the least processor time of
each counts; that of a recorded round has the stop in it, and a stream's writing.
"""
import json
import os
import sys
import threading
import time

import kpytrace
import torch

KINDS = {"recording": {}, "stream": {}, "ring": {"ring": "64MB"}}


@torch.jit.script
def work(x, count: int):
    for _ in range(count):
        x.neg_()
    return x


def run(count, threads):
    def part():
        work(torch.ones(1), count // threads)
    others = [threading.Thread(target=part) for _ in range(threads - 1)]
    for thread in others:
        thread.start()
    part()
    for thread in others:
        thread.join()


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def main():
    kind, count, threads, rounds, path = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
    torch.set_num_threads(1)
    for _ in range(5):
        run(10_000, threads)
    bare, recorded, found = [], [], {}
    for _ in range(rounds):
        began = time.process_time()
        run(count, threads)
        bare.append(time.process_time() - began)
        before = resident()
        began = time.process_time()
        trace = kpytrace.start(path if kind == "stream" else None, torch=True, gpu=False, **KINDS[kind])
        run(count, threads)
        found["memory"] = resident() - before
        trace.stop()
        recorded.append(time.process_time() - began)
        stats = trace.stats()
        if trace._operators.reason or stats["events"] + stats["events_dropped"] < 2 * count:
            sys.exit("operator_counts.py: operators are not recorded")
        found["held"] = stats["bytes_held"]
        if kind == "stream":
            found["file"] = os.path.getsize(path)
            os.unlink(path)
        trace.close()
    print(json.dumps({"kind": kind, "operators": count, "threads": threads, "bare": min(bare), "recorded": min(recorded),
                      **found}))


main()
