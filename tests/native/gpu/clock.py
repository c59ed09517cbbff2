"""Calls of CUDA, played on the stand-ins, lie inside the Python calls that made them. The least capacity before, and
behind, one is printed: the clock of GPU activities is off from the trace's by no more than that.

usage: clock.py LIBCUPTI LIBCUDA
"""

import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "fixtures" / "cupti"))

import played

CALLS = 3000


def record(path, cupti, cuda, gpu):
    import kpytrace

    launch = played.launcher(cupti, cuda, "played")
    trace = kpytrace.start(path, gpu=gpu, all_callables=True)
    for number in range(CALLS):
        launch()
        if number % 1000 == 0:
            time.sleep(0.5)  # clocks drift apart in time, not in calls
    summary = trace.stop()
    assert summary.kernels == CALLS, (summary.kernels, summary.no_gpu)


def check(cupti, cuda, gpu):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        record(path, cupti, cuda, gpu)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    around = sorted((e["ts"], e["ts"] + e["dur"]) for e in events
                    if e.get("cat") == "python_function" and "CFunctionType" in e["name"])
    inside = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("cat") == "cuda_driver")
    assert len(around) == len(inside) == CALLS, (len(around), len(inside))
    before = min(api[0] - python[0] for python, api in zip(around, inside))
    behind = min(python[1] - api[1] for python, api in zip(around, inside))
    print(f"gpu={gpu!r}: least room: {before:.3f} µs before a call, {behind:.3f} µs behind")
    assert before >= 0 and behind >= 0, (before, behind)


for choice in True, "calls":  # a callback's times, and CUPTI's
    check(*sys.argv[1:], choice)
