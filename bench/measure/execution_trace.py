#!/usr/bin/env python3
"""Measures the cost of an execution trace: torch's observer and kpytrace's on a small eager training step,
in turns, in the Python that runs this; figures as JSON to stdout.

usage: execution_trace.py FOLDER [STEPS [ROUNDS]]     FOLDER is best on a memory-backed file system

Times are processor time of all threads, and wall time. The least of all rounds counts, since other load
on the machine only adds.
"""
import functools
import gc
import json
import os
import sys
import time

import torch
from kpytrace.torch import ExecutionTraceObserver
from torch_host import Step

KINDS = {"none": None,
         "torch": torch.profiler.ExecutionTraceObserver,
         "kpytrace": ExecutionTraceObserver,
         "kpytrace without stacks": functools.partial(ExecutionTraceObserver, python_stacks=False)}


def now():
    return time.process_time(), time.perf_counter()


def took(what, began, ended):
    return {what: ended[0] - began[0], what + " by the clock": ended[1] - began[1]}


def measure(make, step, steps, path):
    """Returns the seconds of recording and of its end, as from took(), the bytes of the file, and the
    number of its nodes."""
    observer = make().register_callback(path) if make else None
    gc.collect()
    began = now()
    if observer:
        observer.start()
    step(steps)
    if observer:
        observer.stop()
    recorded = now()
    if not observer:
        return took("recording", began, recorded)
    observer.unregister_callback()
    ended = now()
    with open(path) as file:
        nodes = file.read().count('"ctrl_deps"')
    return {**took("recording", began, recorded), **took("unregistering", recorded, ended),
            "bytes": os.path.getsize(path), "nodes": nodes}


def main():
    folder, steps, rounds = sys.argv[1], *(int(text) for text in [*sys.argv[2:], 30, 7][:2])
    torch.set_num_threads(1)
    step = Step()
    path = os.path.join(folder, "trace.json")
    figures = {}
    for turn in range(rounds + 1):
        for kind, make in KINDS.items():
            figure = measure(make, step, steps, path)
            if turn:  # the first one warms up
                figures.setdefault(kind, []).append(figure)
    print(json.dumps({kind: {name: min(figure[name] for figure in all_of) for name in all_of[0]}
                      for kind, all_of in figures.items()}))


main()
