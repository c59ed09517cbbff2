"""What recording memory costs: kpytrace.memory, tracemalloc with 25 frames, and memray where this Python has
it, on programs that do little but allocate, 30 calls deep.

    PYTHONPATH=BUILD/package python bench/memory.py [ROUNDS]

Each run is a process of its own; they alternate, and the best of all rounds counts. The table has the time
that recording adds, in ms, and how often kpytrace's goes into the other's.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

DEPTH = 30
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


def exact(_):
    import kpytrace
    return kpytrace.memory()


def sampled(_):
    import kpytrace
    return kpytrace.memory(sample_bytes="512kB")


CONTESTANTS = {"bare": lambda _: Bare(), "tracemalloc": lambda _: Tracemalloc(), "memray": memray,
               "exact": exact, "sampled": sampled}


def deep(program, depth):
    """The program's time, so many calls deep."""
    if depth:
        return deep(program, depth - 1)
    begin = time.perf_counter()
    result = program()
    took = time.perf_counter() - begin
    del result
    return took


def run_one(contestant, program):
    with tempfile.TemporaryDirectory() as folder:
        try:
            recorder = CONTESTANTS[contestant](folder)
        except ImportError:
            return
        deep(PROGRAMS[program], DEPTH)
        with recorder:
            print(deep(PROGRAMS[program], DEPTH))


def main(rounds):
    best = {}
    for _ in range(rounds):
        for program in PROGRAMS:
            for contestant in CONTESTANTS:
                out = subprocess.run([sys.executable, __file__, "--one", contestant, program], check=True,
                                     stdout=subprocess.PIPE, text=True).stdout
                if out:
                    key = contestant, program
                    best[key] = min(best.get(key, float("inf")), float(out))
    print(f"{'':14}" + "".join(f"{program:>30}" for program in PROGRAMS))
    for contestant in CONTESTANTS:
        cells = []
        for program in PROGRAMS:
            bare = best["bare", program]
            if (contestant, program) not in best:
                cells.append("not installed")
            elif contestant == "bare":
                cells.append(f"{bare * 1e3:.1f} ms")
            else:
                added = best[contestant, program] - bare
                ours = best["exact", program] - bare
                cells.append(f"+{added * 1e3:.1f} ms, {added / ours:.2f} x exact")
        print(f"{contestant:14}" + "".join(f"{cell:>30}" for cell in cells))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run_one(*sys.argv[2:])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
