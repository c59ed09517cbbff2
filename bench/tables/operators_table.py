"""Runs operators.py under a Python that has torch, and prints what recording operators costs."""
import sys

from standalone_table import Figures
from tracing_table import ROOT, heading, row, run_with_torch

ROWS = {"calls": "Python calls", "floor": "and a pair of callbacks that does nothing", "operators": "and operators",
        "shapes": "and shapes", "ring": "Python calls and operators, in a ring", "stock_plain": "torch.profiler",
        "stock_shapes": "torch.profiler, record_shapes", "stock_stack": "torch.profiler, with_stack"}
ADDED, WHOLE, STOP, BYTES, RING, SHAPES = 0.06, 1.25, 1 / 100, 1 / 25, 0.02, 0.3


KINDS = ("recording", "stream", "ring")
COUNTS, THREADS = (100_000, 1_000_000, 10_000_000), (2, 8, 64)
GROWTH = 1.25  # of the cost of an operator, from the fewest to the most


def counts(build, python, figures):
    """What an operator costs as their number and that of the threads grow."""
    path = str(build / "bench" / "counts.kpt")
    rows = [(kind, count, threads) for kind in KINDS
            for count, threads in [(c, 1) for c in COUNTS] + [(COUNTS[1], t) for t in THREADS]]
    print("Operators of TorchScript, without Python calls; processor time with stop, in ns an operator\n")
    heading("", "operators", "threads", "bare", "added", "memory, MB", "bytes an operator")
    results = []
    for kind, count, threads in rows:
        rounds = 5 if count < COUNTS[2] else 2
        found = run_with_torch(build, python, "operator_counts.py", kind, str(count), str(threads), str(rounds), path)
        if not found:
            return results
        results.append(found)
        found["added_ns"] = (found["recorded"] - found["bare"]) / count * 1e9
        held = found.get("file", found["held"])
        row(kind, f"{count:,}", str(threads), f"{found['bare'] / count * 1e9:.0f}", f"{found['added_ns']:.0f}",
            f"{found['held'] / 1e6:.1f}", "" if kind == "ring" and count == COUNTS[2] else f"{held / count:.1f}")
    print()
    for kind in KINDS:
        by_count = {r["operators"]: r["added_ns"] for r in results if r["kind"] == kind and r["threads"] == 1}
        by_threads = {r["threads"]: r["added_ns"] for r in results if r["kind"] == kind and r["operators"] == COUNTS[1]}
        for what, cost, most in (("100 times as many operators", by_count, COUNTS[2]), ("64 threads", by_threads, 64)):
            growth = cost[most] / cost[min(cost)]
            figures.add(f"{kind}: an operator of {what}", growth, "× one of the fewest", f"≤ {GROWTH}", growth <= GROWTH)
    return results


def operators(build):
    folder = build / "bench"
    results, scaling = {}, []
    figures = Figures()
    for python in sorted((ROOT / "build/torch").glob("3.12/bin/python")):
        print(f"operators: {python} …", file=sys.stderr, flush=True)
        found = run_with_torch(build, python, "operators.py", folder, "20")
        if found:
            results[python.parent.parent.name] = found
            scaling = counts(build, python, figures)
    for tag, f in results.items():
        print(f"A host-bound training step, Python {tag}: {f['bare'] * 1e3:.2f} ms\n")
        heading("", "of the bare step", "stop, ms a step")
        for name, title in ROWS.items():
            stop = f.get(f"{name} stop")
            row(title, f"{f[name] / f['bare']:.3f}", "" if stop is None else f"{stop * 1e3:.2f}")
        print()
        above = (f["operators"] - f["floor"]) / f["bare"]
        figures.add("operators above the floor", above, "of the bare step", f"≤ {ADDED}", above <= ADDED)
        whole = f["operators"] / f["bare"]
        figures.add("calls and operators", whole, "× bare", f"≤ {WHOLE}", whole <= WHOLE)
        ring = (f["ring"] - f["operators"]) / f["bare"]
        figures.add("the ring above that", ring, "of the bare step", f"≤ {RING}", ring <= RING)
        shapes = (f["shapes"] - f["operators"]) / (f["stock_shapes"] - f["stock_plain"])
        figures.add("shapes, of what torch's add", shapes, "", f"≤ {SHAPES}", shapes <= SHAPES)
        stop = f["operators stop"] / f["stock_stack stop"]
        figures.add("stop, of torch's with_stack", stop, "", "≤ 1/100", stop <= STOP)
        size = f["kpt bytes"] / f["stock_stack bytes"]
        figures.add(".kpt, of torch's file", size, "", "≤ 1/25", size <= BYTES)
    figures.print()
    return {"programs": results, "counts": scaling, "figures": figures.rows}
