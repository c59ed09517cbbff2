#!/usr/bin/env python3
"""Measures the cost of tracing while it runs, in the Python that runs this; figures as JSON to stdout.

usage: tracing.py BUILD_DIR [--rounds N] [--only CONTESTANT,...] [--programs NAME,...]

Contestants take turns for several rounds of several slices. The best slice of each counts, since other
load on the machine only makes a slice slower. Times are processor time of the thread. All costs are ns
per call, minus those of the bare program.
"""
import argparse
import contextlib
import json
import os
import pathlib
import sys
import threading
import time

import contestants
import programs

CALLS = programs.FIB_CALLS  # per slice, which takes 2 to 8 ms
SLICES = 12  # per round; viztracer's buffer holds a million calls


def timed(contestant, program):
    """ns a call of PROGRAM under CONTESTANT: the best slice of a round."""
    clock, best = time.thread_time_ns, float("inf")
    contestant.start()
    try:
        program(CALLS)  # excludes one-time costs (instrumenting, naming)
        for _ in range(getattr(contestant, "slices", SLICES)):
            begin = clock()
            program(CALLS)
            best = min(best, clock() - begin)
    finally:
        contestant.stop()
    return best / CALLS


def race(entrants, name, rounds):
    """The best of each entrant's rounds, less the first one's, which is bare."""
    best = {}
    # Each entrant has its own copy, so that one tracer's changes to a code object do not slow another
    # tracer.
    copies = {entrant: programs.make(name) for entrant in entrants}
    for _ in range(rounds):
        for entrant in entrants:
            ns = timed(entrant, copies[entrant])
            best[entrant] = min(best.get(entrant, ns), ns)
    bare = best[entrants[0]]
    return {e.name: best[e] if e is entrants[0] else best[e] - bare for e in entrants}


def calls_only(build):
    """The empty hook for CALL alone, if this Python has it."""
    class CallsOnly(contestants.Empty):
        name = "an empty CALL hook"

        def start(self):
            super().start()
            sys.monitoring.set_events(self.module.TOOL, sys.monitoring.events.CALL)

    return [CallsOnly(build)] if hasattr(sys, "monitoring") else []


def excluded(build, names, rounds):
    """The cost of code that filters leave out, and of one that was traced before a stop."""
    def variant(title, exclude, flags=0):
        entrant = contestants.Kpytrace(build)
        entrant.name, entrant.exclude, entrant.flags = title, exclude, flags
        return entrant

    class Stopped(contestants.Kpytrace):
        name = "after a stop"

        def start(self):
            super().start()
            super().stop()

        def stop(self):
            pass

    no_c_calls = contestants.NO_C_CALLS
    entrants = [contestants.Bare(build), *calls_only(build),
                variant("callee and caller excluded", (programs.CALLEE, programs.CALLER)),
                variant("callee excluded", (programs.CALLEE,)),
                variant("callee excluded, no C calls", (programs.CALLEE,), no_c_calls),
                Stopped(build)]
    return {name: race(entrants, name, rounds) for name in names}


def memory(build):
    """Bytes held after a million calls."""
    calls = 1_000_000
    entrant, program = contestants.Kpytrace(build), programs.make("py_call")
    entrant.start()
    program(calls)
    stats = entrant.tracer.stats()
    entrant.stop()
    return {"calls": calls, "events": stats["events"], "bytes": stats["bytes_held"],
            "bytes_per_call": stats["bytes_held"] / calls}


def slices_of_threads(count, slices):
    """Returns the seconds of the best slice of COUNT threads, each of which calls its own functions."""
    barrier, best = threading.Barrier(count), [float("inf")] * count

    def body(number):
        program = programs.make("py_call")
        program(CALLS)
        for _ in range(slices):
            barrier.wait()
            begin = time.perf_counter()
            program(4 * CALLS)
            barrier.wait()
            best[number] = min(best[number], time.perf_counter() - begin)

    threads = [threading.Thread(target=body, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return min(best)


def scaling(build, rounds):
    """Returns how much more two threads do than one in the same time (needs two idle processors)."""
    entrants = [contestants.Bare(build), contestants.Limit(build), contestants.Kpytrace(build)]
    best = {}
    for _ in range(rounds):
        for entrant in entrants:
            for count in (1, 2):
                entrant.start()
                seconds = slices_of_threads(count, SLICES)
                entrant.stop()
                key = entrant.name, count
                best[key] = min(best.get(key, seconds), seconds)
    return {e.name: 2 * best[e.name, 1] / best[e.name, 2] for e in entrants}


def field(build, wanted):
    """The contestants that are here, and why the others are not."""
    here, missing = [], {}
    for kind in contestants.ALL:
        if wanted and kind.name not in wanted and kind is not contestants.Bare:
            continue
        try:
            here.append(kind(build))
        except contestants.Missing as why:
            missing[kind.name] = str(why)
    return here, missing


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--programs", default=",".join(programs.CALLERS))
    args = parser.parse_args()
    with contextlib.suppress(OSError):  # if permitted, so that other load disturbs less
        os.nice(-15)
    entrants, missing = field(args.build, [n for n in args.only.split(",") if n])
    figures = {"python": sys.version.split()[0], "tag": contestants.tag(), "missing": missing,
               "versions": {e.name: e.version for e in entrants if hasattr(e, "version")},
               "cost_ns": {n: race(entrants, n, args.rounds) for n in args.programs.split(",")}}
    if not args.only:
        figures["excluded_ns"] = excluded(args.build, ("py_call", "c_call"), args.rounds)
        figures["memory"] = memory(args.build)
        if contestants.tag().endswith("t"):
            figures["two_threads"] = scaling(args.build, args.rounds)
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main()
