"""Runs dead_code.py under each Python, and prints the cost of a code object that dies at each call."""
import os

from standalone_table import Figures
from tracing_table import ROOT, heading, peer, pythons, row, run_script

MAX_OVER_DEPTH_1 = 1.5
MAX_OVER_VIZTRACER = 4  # viztracer keeps all code objects alive, so it has no dead ones


def dead_code(build):
    results, figures = {}, Figures()
    for tag, python in pythons():
        folders = [build / "package", peer(tag, python, "viztracer")]
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, folders)))
        result = run_script(tag, [python, ROOT / "bench/measure/dead_code.py", build], environment)
        if result:
            results[tag] = result
    print("An eval of a new source (µs of processor time that tracing adds), by the depth of the stack\n")
    heading("Python", "tracer", "alone", "depth 1", "1,000", "3,000")
    for tag, result in results.items():
        for name, added in result["added_us"].items():
            row(tag, name, f"{result['bare_us']:.1f}", *(f"{us:.2f}" for us in added.values()))
        ours, *deeper = result["added_us"]["kpytrace"].values()
        ratio = max(deeper) / ours
        figures.add(f"kpytrace on {tag}, deep over depth 1", ratio, "×", f"≤ {MAX_OVER_DEPTH_1}",
                    ratio <= MAX_OVER_DEPTH_1)
        theirs = result["added_us"].get("viztracer")
        if theirs:
            ratio = deeper[-1] / theirs["3000"]
            figures.add(f"kpytrace on {tag}, over viztracer at depth 3,000", ratio, "×",
                        f"≤ {MAX_OVER_VIZTRACER}", ratio <= MAX_OVER_VIZTRACER)
    print()
    figures.print()
    return {"results": results, "figures": figures.rows}
