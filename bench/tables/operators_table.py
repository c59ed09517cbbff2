"""Runs operators.py under a Python that has torch, and prints what recording operators costs."""
import sys

from standalone_table import Figures
from tracing_table import ROOT, heading, row, run_with_torch

ROWS = {"calls": "Python calls", "floor": "and a pair of callbacks that does nothing", "operators": "and operators",
        "shapes": "and shapes", "ring": "Python calls and operators, in a ring", "stock_plain": "torch.profiler",
        "stock_shapes": "torch.profiler, record_shapes", "stock_stack": "torch.profiler, with_stack"}
ADDED, WHOLE, STOP, BYTES, RING, SHAPES = 0.06, 1.25, 1 / 100, 1 / 25, 0.02, 0.3


def operators(build):
    folder = build / "bench"
    results = {}
    for python in sorted((ROOT / "build/torch").glob("3.12/bin/python")):
        print(f"operators: {python} …", file=sys.stderr, flush=True)
        found = run_with_torch(build, python, "operators.py", folder, "20")
        if found:
            results[python.parent.parent.name] = found
    figures = Figures()
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
    return {"programs": results, "figures": figures.rows}
