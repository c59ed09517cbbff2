"""Runs torch_host.py under each Python that has a torch, stock against kpytrace in turns, and prints the
results as tables."""
import os
import sys
import tempfile

from tracing_table import ROOT, heading, row, run_with_torch

KINDS = ("none", "stock", "fast", "full")
ROUNDS = int(os.environ.get("KPYTRACE_BENCH_ROUNDS", "5"))
GIL_CALLS = "10000000"
# The compared figures, and the maximum ratio of ours to stock's.
TARGETS = {"leaves": {"while tracing": None, "stop": 1 / 30, ".json": 1 / 8, "all three": 1 / 10,
                      "held": 1 / 40, ".json.gz": 1 / 3},
           "step": {"while tracing": None, "stop": None, ".json": None, "stop and .json": 0.45,
                    ".json.gz": 1 / 3, "held": None}}


def best(rounds):
    """Returns the least of each figure of a program over all rounds, since other load on the machine only
    adds."""
    return {name: min(r[name] for r in rounds) for name in rounds[0]}


def added(figures, kind):
    """Returns what KIND adds to a profiler without stacks, in seconds and bytes."""
    own, none = figures[kind], figures["none"]
    out = {name: own[name] - none[name] for name in ("stop", ".json", "held")}
    # not the difference: without stacks torch compresses as well, in its own way
    out[".json.gz"] = own[".json.gz"]
    out["while tracing"] = own["traced"] - none["traced"]
    out["stop and .json"] = out["stop"] + out[".json"]
    out["all three"] = out["while tracing"] + out["stop and .json"]
    return out


def measure(build, python, folder):
    """Returns {program: {kind: best figures}}, and the waits for the GIL."""
    rounds = {kind: [] for kind in KINDS}
    for number in range(ROUNDS):
        print(f"torch: {python}, round {number + 1} of {ROUNDS} …", file=sys.stderr, flush=True)
        for kind in KINDS:
            figures = run_with_torch(build, python, "torch_host.py", kind, folder)
            if figures is None:
                return None
            rounds[kind].append(figures)
    out = {program: {kind: best([r[program] for r in rounds[kind]]) for kind in KINDS}
           for program in TARGETS}
    gil = {kind: [run_with_torch(build, python, "torch_host.py", "--gil", kind, folder, GIL_CALLS) for _ in range(2)]
           for kind in ("none", "fast")}
    out["gil"] = {kind: best(found) for kind, found in gil.items() if all(found)}
    return out


def shown(name, value):
    return f"{value / 2**20:.1f} MiB" if name == "held" else f"{value * 1000:.1f} ms"


def print_program(results, program, title):
    print(f"\n{title}: cost of stacks, compared with a profiler without stacks\n")
    heading("Python", "", "stock", "fast", "full", "fast/stock", "full/stock", "wanted")
    for tag, result in results.items():
        costs = {kind: added(result[program], kind) for kind in KINDS[1:]}
        for name, target in TARGETS[program].items():
            stock = costs["stock"][name]
            row(tag, name, *(shown(name, costs[kind][name]) for kind in KINDS[1:]),
                *(f"{costs[kind][name] / stock:.3f}" for kind in KINDS[2:]),
                "" if target is None else f"{target:.3f}")


def print_gil(results):
    print("\nStop and export of 10 million calls: time that another thread waited for the GIL\n")
    heading("Python", "without stacks", "fast", "added", "longest wait, fast", "stop and export, fast")
    for tag, result in results.items():
        none, fast = result["gil"].get("none"), result["gil"].get("fast")
        if none and fast:
            row(tag, *(f"{ms * 1000:.1f} ms" for ms in (
                none["waited"], fast["waited"], fast["waited"] - none["waited"], fast["longest"],
                fast["seconds"])))


def torch(build):
    """Prints the cost of Python stacks in torch's profiler, stock and ours."""
    results = {}
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        os.environ["TMPDIR"] = folder  # torch writes the file that it compresses here
        for python in sorted((ROOT / "build/torch").glob("3.*/bin/python")):
            result = measure(build, python, folder)
            if result:
                results[python.parent.parent.name] = result
    if results:
        print_program(results, "leaves", "300,000 calls of a function that does nothing")
        print_program(results, "step", "30 eager training steps")
        print_gil(results)
    return results
