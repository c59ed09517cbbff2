"""Runs native.py under a Python that has torch, and prints kpytrace.torch.profile beside torch.profiler.profile."""
import sys

from standalone_table import Figures
from tracing_table import ROOT, heading, row, run_with_torch

# What is measured, its title, and the share of torch's that is wanted.
SHARES = (("stop", "stop", 1 / 30), ("json", "export, .json", 1 / 6), ("json bytes", ".json, bytes", 1.1),
          ("json.gz", "export, .json.gz", 1 / 8), ("json.gz bytes", ".json.gz, bytes", 1.3),
          ("held", "memory held", 1 / 10), ("table", "key_averages().table()", 1 / 50), ("events", "events()", 1 / 3))
ADDED = 0.30


def native(build):
    results = {}
    for python in sorted((ROOT / "build/torch").glob("3.12/bin/python")):
        print(f"native: {python} …", file=sys.stderr, flush=True)
        found = run_with_torch(build, python, "native.py", build / "bench", "4")
        if found:
            results[python.parent.parent.name] = found
    figures = Figures()
    for tag, f in results.items():
        print(f"Profiles of a host-bound training step, Python {tag}: {f['bare'] * 1e3:.2f} ms a step, "
              f"{f['steps']:.0f} steps\n")
        heading("", *(f"{kind}, {options}" for options in ("plain", "stack", "shapes") for kind in ("stock", "native")))
        columns = [f"{kind} {options}" for options in ("plain", "stack", "shapes") for kind in ("stock", "native")]
        row("the step, of the bare one", *(f"{f[f'{c} run'] / f['bare']:.3f}" for c in columns))
        for name, title, _ in SHARES:
            unit = 1e6 if name == "held" or name.endswith("bytes") else 1e-3
            suffix = " MB" if unit == 1e6 else " ms"
            row(title, *(f"{f[f'{c} {name}'] / unit:.2f}{suffix}" for c in columns))
        print()
        added = (f["native stack run"] - f["bare"]) / (f["stock stack run"] - f["bare"])
        figures.add("with_stack: added time, of torch's", added, "", f"≤ {ADDED}", added <= ADDED)
        for name, title, wanted in SHARES:
            share = f[f"native stack {name}"] / f[f"stock stack {name}"]
            figures.add(f"{title}, of torch's", share, "", f"≤ {wanted:.3g}", share <= wanted)
    figures.print()
    return {"programs": results, "figures": figures.rows}
