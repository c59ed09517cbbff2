#!/usr/bin/env python3
"""Measures the cost of tracebacks, kpytrace's against torch's CapturedTraceback, in the Python that runs
this; figures as JSON to stdout.

usage: tracebacks.py times [ROUNDS]       seconds, the best of rounds in turns
       tracebacks.py memory TOOL one|different   bytes of each of 100,000 live tracebacks, of one stack or of
                                                 different ones

TOOL is "kpytrace"; "torch", with its own unwinder; or "inside", torch's with kpytrace's frames.
"""
import functools
import gc
import json
import os
import sys
import time

import torch
from torch._C._profiler import gather_traceback, symbolize_tracebacks

import kpytrace.torch
from kpytrace import traceback as ours

DEPTHS = (5, 50, 200)
TIP_DEPTHS = (5, 50, 200, 1000)
MANY = 100_000
GATHERS = 2_000
RELEASED = 10_000
STALL_ROUNDS = 5
clock = time.perf_counter


class Kpytrace:
    name = "kpytrace"
    gather, symbolize = ours.gather, ours.symbolize

    @staticmethod
    def prepare():
        pass


class Torch:
    name = "torch"
    symbolize = symbolize_tracebacks
    gather = staticmethod(functools.partial(gather_traceback, True, False, False))  # adds no frame

    @staticmethod
    def prepare():
        kpytrace.torch.uninstall()


class Inside(Torch):
    name = "inside"

    @staticmethod
    def prepare():
        kpytrace.torch.install()
        if kpytrace.torch.tracebacks():
            raise RuntimeError(kpytrace.torch.tracebacks())


CONTESTANTS = (Kpytrace, Torch, Inside)


def at_depth(depth, function, *args):
    """Calls FUNCTION with DEPTH frames around it, without those of this function and main."""
    return function(*args) if depth <= 1 else at_depth(depth - 1, function, *args)


# --- gathering -------------------------------------------------------------------------------------

def gather_often(gather):
    """Seconds a call, the result thrown away."""
    began = clock()
    for _ in range(GATHERS):
        gather()
    return (clock() - began) / GATHERS


def odd_tip(gather):
    return gather()


def even_tip(gather):
    return gather()


def gather_at_tips(gather):
    """Two functions in turns on top of a stack that stays."""
    began = clock()
    for _ in range(GATHERS // 2):
        odd_tip(gather)
        even_tip(gather)
    return (clock() - began) / GATHERS


# --- many tracebacks -------------------------------------------------------------------------------

def left(n, bits, gather):
    return _down(n, bits, gather)


def right(n, bits, gather):
    return _down(n, bits, gather)


def _down(n, bits, gather):
    if n <= 0:
        return gather()
    return (left if bits & 1 else right)(n - 1, bits >> 1, gather)


def different_stacks(count, depth, gather):
    """Each step is two frames. The innermost frames differ, one for each bit of the number."""
    return [_down(depth // 2 - 1, number, gather) for number in range(count)]


def shared_stacks(gather):
    """Gathers 100,000 tracebacks, 1 to 100 deep, on a few lines."""
    found = []

    def down(n):
        found.append(gather())
        if n:
            down(n - 1)
    for _ in range(MANY // 100):
        down(99)
    return found


def symbolize_seconds(who):
    found = shared_stacks(who.gather)
    gc.collect()
    gc.disable()
    began = clock()
    read = who.symbolize(found)
    seconds = clock() - began
    gc.enable()
    assert len(read) == MANY and read[50][0]["line"]
    return seconds


def stall_seconds(who):
    """Measures how long the release of 10,000 different deep tracebacks takes, and the longest gather after
    that."""
    freeing = longest = 0.0
    for _ in range(STALL_ROUNDS):
        found = different_stacks(RELEASED, 200, who.gather)
        gc.collect()
        gc.disable()
        began = clock()
        del found
        freeing = max(freeing, clock() - began)
        for _ in range(3):
            began = clock()
            who.gather()
            longest = max(longest, clock() - began)
        gc.enable()
    return freeing, longest


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(who, shape):
    who.prepare()
    who.symbolize([who.gather()])
    gc.collect()
    before = resident_bytes()
    if shape == "one":
        found = [at_depth(50, who.gather) for _ in range(MANY)]
    else:
        found = different_stacks(MANY, 50, who.gather)
    return (resident_bytes() - before) / len(found)


# --- all measurements ------------------------------------------------------------------------------

def take_turns(rounds):
    figures = {who.name: {} for who in CONTESTANTS}

    def note(who, name, seconds, better=min):
        known = figures[who.name]
        known[name] = better(known.get(name, seconds), seconds)
    for _ in range(rounds):
        for who in CONTESTANTS:
            who.prepare()
            ours.free_dead()  # so that the previous contestant's garbage does not count
            for depth in DEPTHS:
                note(who, f"gather, depth {depth}", at_depth(depth, gather_often, who.gather))
            for depth in TIP_DEPTHS:
                note(who, f"another tip, depth {depth}", at_depth(depth, gather_at_tips, who.gather))
            note(who, "symbolize 100,000", symbolize_seconds(who))
            freeing, longest = stall_seconds(who)
            note(who, "free 10,000, depth 200", freeing)
            note(who, "longest gather after that", longest, max)
    return figures


def main():
    what, *rest = sys.argv[1:] or ["times"]
    sys.setrecursionlimit(5000)
    torch.set_num_threads(1)
    if what == "memory":
        figures = memory(next(who for who in CONTESTANTS if who.name == rest[0]), rest[1])
    else:
        figures = take_turns(int((rest or ["5"])[0]))
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main()
