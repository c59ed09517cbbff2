#!/usr/bin/env python3
"""Measures the cost of a code object that dies at each call, in the Python that runs this; figures as JSON
to stdout.

usage: PYTHONPATH=BUILD_DIR/package dead_code.py BUILD_DIR [--rounds N]

A loop of eval of new sources, as in templates and lambdify, at the bottom of a stack, alone and under
each tracer in turn, for several rounds; the best of each counts. Times are processor time of the thread.
The difference to the bare loop is what tracing adds to one eval.
"""
import argparse
import gc
import json
import sys
import time

import contestants

DEPTHS = (1, 1000, 3000)
EVALS = 200


def at_depth(levels, work):
    return at_depth(levels - 1, work) if levels > 1 else work()


def evals():
    """The processor's ns of one eval."""
    begin = time.thread_time_ns()
    for n in range(EVALS):
        eval(f"{n} + {n}")
    return (time.thread_time_ns() - begin) / EVALS


def timed(contestant):
    """After one round that is not timed: the first use of a code object and the start of recording have
    one-time costs."""
    contestant.start()
    try:
        evals()
        return evals()
    finally:
        contestant.stop()


def entered(build):
    """Returns the contestants that this Python has, and their versions."""
    found = {}
    for kind in (contestants.Bare, contestants.Kpytrace, contestants.VizTracer):
        try:
            found[kind.name] = kind(build)
        except contestants.Missing as missing:
            print(f"{kind.name}: {missing}", file=sys.stderr)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    sys.setrecursionlimit(max(DEPTHS) + 500)
    found, best = entered(given.build), {}
    gc.disable()
    for _ in range(given.rounds):
        for depth in DEPTHS:
            for name, contestant in found.items():
                ns = at_depth(depth, lambda: timed(contestant))
                best[name, depth] = min(best.get((name, depth), ns), ns)
    added = {name: {depth: (best[name, depth] - best["bare", depth]) / 1000 for depth in DEPTHS}
             for name in found if name != "bare"}
    json.dump({"python": sys.version.split()[0], "bare_us": best["bare", 1] / 1000, "added_us": added,
               "versions": {n: c.version for n, c in found.items() if hasattr(c, "version")}},
              sys.stdout)


if __name__ == "__main__":
    main()
