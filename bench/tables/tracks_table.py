"""Runs tracks.py, and prints what tracks that have ended cost a recording."""
import json
import os
import pathlib
import subprocess
import tempfile

from standalone_table import Figures
from tracing_table import ROOT, heading, pythons, row

ENDED = {"threads": 10_000, "greenlets": 20_000, "tasks": 60_000, "counters": 100_000}
MAX_BYTES_EACH = 32
def ended(build, tag, python):
    """Yields the results of each kind."""
    environment = dict(os.environ, PYTHONPATH=str(build / "package"),
                       KPT_GREENLETS=str(ROOT / "build/greenlets" / tag))
    with tempfile.TemporaryDirectory() as folder:
        for kind, count in ENDED.items():
            for mode, name in (("stream", "a.kpt"), ("ring", "a.json")):
                output = subprocess.check_output([python, ROOT / "bench/measure/tracks.py", kind, mode, str(count),
                                                  pathlib.Path(folder, name)], env=environment)
                yield json.loads(output)


def tracks(build):
    results, figures = [], Figures()
    tag, python = pythons()[-1]
    print(f"Tracks that have ended, Python {tag}\n")
    heading("kind", "recording", "ended", "bytes each", "process, MB", "flush, ms")
    for r in ended(build, tag, python):
        results.append(r)
        flush = f"{r['flush_ms']:.3f}" if "flush_ms" in r else ""
        row(r["kind"], r["mode"], f"{r['ended']:,}", f"{r['bytes_each']:.1f}", f"{r['bytes'] / 1e6:.1f}", flush)
        figures.add(f"bytes kept for each of the ended {r['kind']}, {r['mode']}", r["bytes_each"], "bytes", "≤ 32",
                    r["bytes_each"] <= MAX_BYTES_EACH)
    print()
    figures.print()
    return {"ended": results, "figures": figures.rows}
