"""Runs tracebacks.py under the Pythons that have a torch, and prints the results as a table."""
import os
import sys

from tracing_table import ROOT, heading, row, run_with_torch

ROUNDS = os.environ.get("KPYTRACE_BENCH_ROUNDS", "5")
TOOLS = ("kpytrace", "torch", "inside")
# The most that ours may be of torch's.
TARGETS = {"gather, depth 5": 0.5, "gather, depth 50": 0.25, "gather, depth 200": 0.1,
           "symbolize 100,000": 0.2}


def shown(name, value):
    if name.startswith("bytes"):
        return f"{value:.0f} B"
    return f"{value * 1000:.2f} ms" if value > 0.0005 else f"{value * 1e9:.0f} ns"


def measure(build, python):
    """Returns {tool: {figure: value}}."""
    figures = run_with_torch(build, python, "tracebacks.py", "times", ROUNDS)
    for tool in TOOLS if figures else ():
        for shape in ("one", "different"):
            held = run_with_torch(build, python, "tracebacks.py", "memory", tool, shape)
            figures[tool][f"bytes of each, {shape}, depth 50"] = held
    return figures


def tracebacks(build):
    """Prints the cost of a traceback: ours, torch's, and torch's with our frames inside."""
    results = {}
    for python in sorted((ROOT / "build/torch").glob("3.*/bin/python")):
        print(f"tracebacks: {python} …", file=sys.stderr, flush=True)
        figures = measure(build, python)
        if figures:
            results[python.parent.parent.name] = figures
    print("\nTracebacks, kpytrace's and torch's\n")
    heading("Python", "", *TOOLS, "kpytrace/torch", "inside/torch", "wanted")
    for tag, figures in results.items():
        for name, torch in figures["torch"].items():
            own, inside = figures["kpytrace"][name], figures["inside"][name]
            row(tag, name, *(shown(name, figures[tool][name]) for tool in TOOLS), f"{own / torch:.3f}",
                f"{inside / torch:.3f}", str(TARGETS.get(name, "")))
    return results
