"""Runs execution_trace.py, and prints what torch's observer and kpytrace's add to a training step."""
import os
import sys
import tempfile

from standalone_table import Figures
from tracing_table import ROOT, run_with_torch

MAX_TIME = 0.1  # of torch's, recording and unregistering together


def execution_trace(build):
    """Prints the cost of recording a training step's operators, against torch's own observer."""
    pythons = {tag: ROOT / f"build/torch/{tag}/bin/python" for tag in ("3.11", "3.12")}
    found = {tag: _on(build, tag, python) for tag, python in pythons.items() if python.exists()}
    if not found:
        print("Execution traces: skipped, because torch is not installed; run `make torch`")
    return found


def _on(build, tag, python):
    """Measures under one Python. 3.11 identifies code objects in another way than later versions."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        results = run_with_torch(build, python, "execution_trace.py", folder)
    if results is None:
        sys.exit(1)
    none = results.pop("none")
    figures = Figures()
    for clock, title in (("", "of processor time, of all threads"), (" by the clock", "by the clock")):
        print(f"Execution traces of a training step, Python {tag} (µs {title}, per node, added to a step without an observer)\n")
        print("| | recording | unregistering | both | bytes a node |")
        print("|---|---|---|---|---|")
        both = {}
        for kind, r in results.items():
            recording, ending = r["recording" + clock] - none["recording" + clock], r["unregistering" + clock]
            both[kind] = recording + ending
            parts = [f"{seconds / r['nodes'] * 1e6:.2f}" for seconds in (recording, ending, both[kind])]
            print("|", kind, "|", " | ".join(parts), f"| {r['bytes'] / r['nodes']:.0f} |")
        print()
        for kind in both:
            if kind != "torch":
                share = both[kind] / both["torch"]
                figures.add(f"{kind}: both{clock}, over torch's", share, "×", f"≤ {MAX_TIME}",
                            share <= MAX_TIME)
    for kind, r in results.items():
        if kind != "torch":
            size = r["bytes"] / results["torch"]["bytes"]
            figures.add(f"{kind}: the file, over torch's", size, "×", "≤ 1", size <= 1)
    figures.print()
    return {"results": results, "none": none, "figures": figures.rows}
