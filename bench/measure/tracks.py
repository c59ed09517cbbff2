#!/usr/bin/env python3
"""Measures what threads, greenlets, tasks and counters that have ended cost a recording, in the Python that runs this;
figures as JSON to stdout.

usage: PYTHONPATH=BUILD_DIR/package tracks.py KIND stream|ring COUNT OUTPUT
       PYTHONPATH=BUILD_DIR/package tracks.py make-tracks|make-calls COUNT OUTPUT

The second makes a stream with COUNT greenlets, one after the other, or with COUNT calls of one thread. The first runs COUNT of KIND, each with two calls,
five times over. The first two rounds are not counted: the memory has its size then. Bytes are private memory of the
process. The time of a flush is processor time of an otherwise idle program, the best of three half seconds. KPT_GREENLETS is the folder of greenlet, if the Python has none.
"""
import json
import pathlib
import sys
import time

import kpytrace

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures"))
from short_tracks import greenlets, own_bytes, tasks, threads  # noqa: E402

ROUNDS, IGNORED, FLUSHES = 5, 2, 50


def counters(count):
    for i in range(count):
        kpytrace.counter("i", i)


def flush_ms():
    best = 1e9
    for _ in range(3):
        begin = time.process_time()
        time.sleep(FLUSHES * 0.01)
        best = min(best, time.process_time() - begin)
    return 1e3 * best / FLUSHES


def leaf():
    pass


def calls(count):
    def step():
        leaf()
        leaf()
        leaf()

    for _ in range(count // 4):
        step()


def main():
    makers = {"make-tracks": greenlets, "make-calls": calls}
    if sys.argv[1] in makers:
        with kpytrace.trace(sys.argv[3]):
            makers[sys.argv[1]](int(sys.argv[2]))
        return
    kind, mode, count, output = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    run = {f.__name__: f for f in (threads, greenlets, tasks, counters)}[kind]
    options = {"ring": "1MB"} if mode == "ring" else {"flush_ns": "10ms"}
    with kpytrace.trace(output, **options):
        sizes = []
        for _ in range(ROUNDS):
            run(count)
            time.sleep(0.1)
            sizes.append(own_bytes())
        counted = (ROUNDS - IGNORED) * count
        result = {"kind": kind, "mode": mode, "ended": ROUNDS * count, "bytes": sizes[-1],
                  "bytes_each": (sizes[-1] - sizes[IGNORED - 1]) / counted}
        if mode == "stream":
            result["flush_ms"] = flush_ms()
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
