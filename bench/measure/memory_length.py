"""Measures the memory that a recording of memory takes: by its length, its distinct stacks, or the blocks that are alive.

usage: memory_length.py WHAT COUNT [PATH [aggregate]]      prints JSON: the peak of the process and of its program in kB, and
                                                            the seconds of processor time

WHAT: allocations (COUNT blocks, of which few are alive at a time), blocks (COUNT of them, all alive), or stacks (COUNT of
them, each with a block that is alive). PATH is the file of the recording; without it nothing is recorded.
"""
import contextlib
import json
import resource
import sys
import time

DATA = [{"name": f"n{i}", "values": list(range(i % 20)), "nested": {"a": [i, str(i)]}} for i in range(100)]
BLOCKS_A_DUMP = 3_180  # blocks that json.dumps allocates for DATA, on Python 3.13


def allocations(count):
    for _ in range(max(count // BLOCKS_A_DUMP, 1)):
        json.dumps(DATA)


def blocks(count):
    return [bytes(1) + b"x" for _ in range(count)]


def left(kept, number, depth):
    step(kept, number, depth)


def right(kept, number, depth):
    step(kept, number, depth)


def step(kept, number, depth):
    """Each bit of NUMBER is a call of left or right."""
    if depth:
        (right if number & 1 else left)(kept, number >> 1, depth - 1)
    else:
        kept.append(object())


def stacks(count):
    kept = []
    for number in range(count):
        step(kept, number, (count - 1).bit_length())
    return kept


def main(what, count, path=None, aggregate=""):
    recording = contextlib.nullcontext()
    if path:
        import kpytrace

        recording = kpytrace.memory(path, aggregate=bool(aggregate))
    with recording:
        kept = {"allocations": allocations, "blocks": blocks, "stacks": stacks}[what](int(count))
        before_stop = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"running_kb": before_stop, "peak_kb": after, "seconds": time.process_time()}))
    del kept


if __name__ == "__main__":
    main(*sys.argv[1:])
