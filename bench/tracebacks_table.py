"""Runs tracebacks.py under the Pythons that have a torch, and prints what it found as a table."""
import json
import os
import subprocess
import sys

from tracing_table import ROOT, heading, row

ROUNDS = os.environ.get("KPYTRACE_BENCH_ROUNDS", "5")
WHO = ("kpytrace", "torch", "inside")
# The most that ours may be of torch's.
TARGETS = {"gather, depth 5": 0.5, "gather, depth 50": 0.25, "gather, depth 200": 0.1,
           "symbolize 100,000": 0.2}


def run(build, python, *arguments):
    """Its figures; None, with a message, if it fails."""
    environment = dict(os.environ, PYTHONPATH=str(build / "package"), PYTHONDONTWRITEBYTECODE="1",
                       KINETO_LOG_LEVEL="99", KPYTRACE_TORCH_CACHE=str(build / "torch_cache"))
    result = subprocess.run([python, "-W", "ignore", ROOT / "bench/tracebacks.py", *arguments],
                            env=environment, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, check=False)
    if result.returncode:
        print(f"{python}: {(result.stderr.strip().splitlines() or ['?'])[-1]}", file=sys.stderr)
        return None
    return json.loads(result.stdout)


def shown(name, value):
    if name.startswith("bytes"):
        return f"{value:.0f} B"
    return f"{value * 1000:.2f} ms" if value > 0.0005 else f"{value * 1e9:.0f} ns"


def measure(build, python):
    """{who: {figure: value}}"""
    figures = run(build, python, "times", ROUNDS)
    for who in WHO if figures else ():
        for shape in ("one", "different"):
            held = run(build, python, "memory", who, shape)
            figures[who][f"bytes of each, {shape}, depth 50"] = held
    return figures


def tracebacks(build):
    """What a traceback costs, ours and torch's; and torch's with our frames inside."""
    results = {}
    for python in sorted((ROOT / "build/torch").glob("3.*/bin/python")):
        print(f"tracebacks: {python} …", file=sys.stderr, flush=True)
        figures = measure(build, python)
        if figures:
            results[python.parent.parent.name] = figures
    print("\nTracebacks, kpytrace's and torch's\n")
    heading("Python", "", *WHO, "kpytrace/torch", "inside/torch", "wanted")
    for tag, figures in results.items():
        for name, torch in figures["torch"].items():
            own, inside = figures["kpytrace"][name], figures["inside"][name]
            row(tag, name, *(shown(name, figures[who][name]) for who in WHO), f"{own / torch:.3f}",
                f"{inside / torch:.3f}", str(TARGETS.get(name, "")))
    return results
