"""Runs tasks.py under each Python, and prints what the tracks of asyncio's tasks add to the cost of tracing."""
import json
import os
import subprocess

from standalone_table import Figures
from tracing_table import ROOT, heading, pythons, row

MAX = 0.15


def tasks(build):
    results, figures = {}, Figures()
    environment = dict(os.environ, PYTHONPATH=str(build / "package"))
    for tag, python in pythons():
        output = subprocess.check_output([python, ROOT / "bench/measure/tasks.py"], env=environment)
        results[tag] = json.loads(output)["programs"]
    print("Await-heavy programs (ms of processor time), and the share of tracing's cost that tasks add\n")
    heading("Python", "program", "alone", "traced", "with tasks", "calls", "added")
    for tag, programs in results.items():
        for name, r in programs.items():
            row(tag, name, f"{r['bare_ms']:.2f}", f"{r['calls_ms']:.2f}", f"{r['tasks_ms']:.2f}",
                f"{r['calls']:,}", f"{r['added']:.1%}")
        total = sum(r["tasks_ms"] - r["calls_ms"] for r in programs.values())
        share = total / sum(r["calls_ms"] - r["bare_ms"] for r in programs.values())
        figures.add(f"tasks on {tag}, all programs together", 100 * share, "%", "≤ 15", share <= MAX)
    print()
    figures.print()
    return {"programs": results, "figures": figures.rows}
