"""Measures the cost of recording memory: kpytrace.memory, tracemalloc with 25 frames, and memray if this
Python has it, on programs that do little but allocate, 30 calls deep; and the time of an export of a
million entries.

usage: memory.py ROUNDS        prints JSON: {program: {contestant: seconds, "processor": {contestant: seconds}}}, and
                               "export": {...}

Each run is its own process; they alternate, and the best of all rounds counts. "processor" is the processor time of all
threads of the process for all repeats, from the recorder's start to its end: with it goes what a recorder packs and writes
on other threads. Sampling adds less than
the difference between two processes, which depends on the addresses of their code and data. So "sampled"
is a ratio: the median over runs that alternate with bare ones in one process.
"""
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

DEPTH, REPEATS, PAIRS = 30, 5, 40
TEXT = json.dumps([{"name": f"n{i}", "values": list(range(i % 20)), "nested": {"a": [i, str(i)]}}
                   for i in range(3000)])


def loop():
    for _ in range(200000):
        bytes(100)


def kept():
    return [bytes(100) for _ in range(200000)]


def parsing():
    for _ in range(5):
        json.loads(TEXT)


PROGRAMS = {"loop": loop, "kept": kept, "JSON": parsing}


class Bare:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


class Tracemalloc:
    def __enter__(self):
        import tracemalloc
        tracemalloc.start(25)

    def __exit__(self, *_):
        pass


def memray(folder):
    import memray
    return memray.Tracker(os.path.join(folder, "memray.bin"), trace_python_allocators=True)


def exact(folder):
    import kpytrace
    return kpytrace.memory(os.path.join(folder, "memory.kpt"))


CONTESTANTS = {"bare": lambda _: Bare(), "tracemalloc": lambda _: Tracemalloc(), "memray": memray,
               "exact": exact}


def deep(program, depth, clock=time.perf_counter):
    """The program's time, so many calls deep."""
    if depth:
        return deep(program, depth - 1, clock)
    begin = clock()
    result = program()
    took = clock() - begin
    del result
    return took


def ratios(program):
    """The program's time on the processor while it is sampled over that just before, so many times."""
    import kpytrace
    sampled = kpytrace.memory(sample_bytes="512kB")

    def once():
        gc.collect()  # so that each begins alike
        return deep(PROGRAMS[program], DEPTH, time.thread_time)
    pairs = []
    once()
    for _ in range(PAIRS):
        bare = once()
        with sampled:
            pairs.append(once() / bare)
    return pairs


def run_one(contestant, program):
    with tempfile.TemporaryDirectory() as folder:
        try:
            recorder = CONTESTANTS[contestant](folder)
        except ImportError:
            return
        deep(PROGRAMS[program], DEPTH)
        begin = time.process_time()
        with recorder:
            best = min(deep(PROGRAMS[program], DEPTH) for _ in range(REPEATS))
        print(best, time.process_time() - begin)


def export():
    """Seconds and bytes an entry of a snapshot of more than a million."""
    import kpytrace
    m = kpytrace.memory()
    with m:
        kept = [bytes(100) for _ in range(600000)]
        del kept
    with tempfile.TemporaryDirectory() as folder:
        path, best = os.path.join(folder, "a.pickle"), float("inf")
        for _ in range(3):
            begin = time.perf_counter()
            m.export(path)
            best = min(best, time.perf_counter() - begin)
        entries = m.tables().entries
        return {"entries": entries, "seconds_a_million": best / entries * 1e6,
                "bytes_an_entry": os.path.getsize(path) / entries}


def in_a_process(*arguments):
    return subprocess.run([sys.executable, __file__, *arguments], check=True, stdout=subprocess.PIPE,
                          text=True).stdout


def main(rounds):
    best = {program: {"processor": {}} for program in PROGRAMS}
    sampled = {program: [] for program in PROGRAMS}
    for _ in range(rounds):
        for program in PROGRAMS:
            for contestant in CONTESTANTS:
                out = in_a_process("--one", contestant, program)
                for kind, seconds in zip((best[program], best[program]["processor"]), out.split()):
                    kind[contestant] = min(kind.get(contestant, float("inf")), float(seconds))
            sampled[program] += json.loads(in_a_process("--ratios", program))
    for program, pairs in sampled.items():
        best[program]["sampled"] = statistics.median(pairs)
    print(json.dumps({**best, "export": export()}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run_one(*sys.argv[2:])
    elif sys.argv[1:2] == ["--ratios"]:
        print(json.dumps(ratios(sys.argv[2])))
    else:
        main(int(sys.argv[1]))
