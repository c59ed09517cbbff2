#!/usr/bin/env python3
"""Runs a program under a tracer, from its start to its file, in the Python that runs this; figures as JSON
to stdout.

usage: standalone.py bare|kpytrace|viztracer CALLS FILE    run, save; the file stays
       standalone.py stream CALLS FILE.kpt                 run while it is written
       standalone.py gzip FILE.json LEVEL                  the time of Python's gzip for a file
"""
import gzip
import json
import pathlib
import shutil
import sys
import time

import programs


def run(calls):
    """Seconds of processor time for CALLS calls."""
    program = programs.make("fib")
    begin = time.process_time()
    program(calls)
    return time.process_time() - begin


def highest_kb():
    """The most memory that was resident so far."""
    lines = pathlib.Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def saved(save, path):
    begin, of_all = time.perf_counter(), time.process_time()
    save(path)
    return {"save_s": time.perf_counter() - begin, "save_cpu_s": time.process_time() - of_all,
            "bytes": pathlib.Path(path).stat().st_size}


def bare(calls, path):
    return {"run_s": run(calls)}


def kpytrace(calls, path):
    import kpytrace as tracer

    trace = tracer.start()
    figures = {"run_s": run(calls)}
    summary = trace.stop()
    figures.update(saved(trace.write, path), calls=summary.calls)
    figures["gzip"] = saved(trace.write, path + ".gz")
    return figures


def viztracer(calls, path):
    import viztracer as peer

    tracer = peer.VizTracer(tracer_entries=calls + calls // 4, verbose=0)
    tracer.start()
    figures = {"run_s": run(calls)}
    tracer.stop()
    figures.update(saved(tracer.save, path), version=peer.__version__)
    return figures


def stream(calls, path):
    import kpytrace as tracer

    before = highest_kb()
    trace = tracer.start(path)
    run_s = run(calls)
    summary = trace.stop()
    return {"run_s": run_s, "calls": summary.calls, "dropped": summary.dropped,
            "bytes": pathlib.Path(path).stat().st_size, "memory_kb": highest_kb() - before}


def compress(path, level):
    """Returns the seconds that Python's gzip takes for the file, which is in the page cache."""
    begin = time.perf_counter()
    with open(path, "rb") as source, gzip.open(path + ".python.gz", "wb", level) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return {"save_s": time.perf_counter() - begin}


def main():
    what, first, second = sys.argv[1:]
    if what == "gzip":
        figures = compress(first, int(second))
    else:
        ways = {"bare": bare, "kpytrace": kpytrace, "viztracer": viztracer, "stream": stream}
        figures = ways[what](int(first), second)
    json.dump(figures, sys.stdout)


main()
