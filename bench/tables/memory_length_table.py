"""Runs memory_length.py, and prints the peak memory of recordings by their length, their stacks and their live blocks."""
import json
import os
import pathlib
import subprocess
import tempfile

from standalone_table import Figures
from tracing_table import ROOT, heading, pythons, row

LENGTHS = (100_000, 1_000_000, 10_000_000, 100_000_000)
KINDS = {"streamed, `.kpt`": ("memory.kpt",), "streamed, `.html`": ("memory.html",),
         "aggregated, `.html`": ("aggregated.html", "aggregate")}
GROWTH = {"blocks": 2_000_000, "stacks": 200_000}
MAX_MB, MAX_GROWTH_MB, MAX_BYTES_A_BLOCK = 100, 10, 40


def measure(python, environment, folder, what, count, file=(), rounds=1):
    """Returns the figures of the run with the least peak, and the bytes of its file."""
    path = [str(folder / file[0]), *file[1:]] if file else []
    words = [python, ROOT / "bench/measure/memory_length.py", what, str(count), *path]
    runs = [json.loads(subprocess.check_output(words, env=environment)) for _ in range(rounds)]
    found = min(runs, key=lambda run: run["peak_kb"])
    return {**found, "file_bytes": os.path.getsize(path[0]) if path else 0}


def above(recorded, bare, key="peak_kb"):
    """Returns megabytes above the program alone."""
    return (recorded[key] - bare[key]) * 1.024 / 1e3


def by_length(run, figures):
    print("\nPeak memory above the program (MB; of the recording, and with its stop), and bytes of the file\n")
    heading("allocations", *(f"{kind}: {what}" for kind in KINDS for what in ("running", "with stop", "file, MB")))
    results = {}
    for count in LENGTHS:
        bare = run("allocations", count, rounds=3)
        found = {kind: run("allocations", count, file) for kind, file in KINDS.items()}
        cells = [text for kind in KINDS for text in (
            f"{above(found[kind], bare, 'running_kb'):.1f}", f"{above(found[kind], bare):.1f}",
            f"{found[kind]['file_bytes'] / 1e6:.2f}")]
        row(f"{count:,}", *cells)
        results[count] = {"bare": bare, **found}
    for kind in KINDS:
        peaks = [above(results[count][kind], results[count]["bare"]) for count in LENGTHS]
        figures.add(f"{kind}: most memory", max(peaks), "MB", f"≤ {MAX_MB}", max(peaks) <= MAX_MB)
        growth = peaks[-1] - peaks[-2]
        figures.add(f"{kind}: growth over the last ninety million", growth, "MB", f"≤ {MAX_GROWTH_MB}", growth <= MAX_GROWTH_MB)
    return results


def by_item(run, figures):
    print("\nWhat grows with live blocks and with distinct stacks: bytes for each, of the recording and with its stop\n")
    heading("", *(f"{kind}: {what}" for kind in KINDS for what in ("running", "with stop")))
    results = {}
    for what, count in GROWTH.items():
        costs = {}
        for kind, file in KINDS.items():
            few, many = ((run(what, n), run(what, n, file)) for n in (count // 10, count))
            costs[kind] = {key: (above(many[1], many[0], key) - above(few[1], few[0], key)) * 1e6 / (count - count // 10)
                           for key in ("running_kb", "peak_kb")}
        row(f"{count:,} {what}", *(f"{costs[kind][key]:.0f}" for kind in KINDS for key in ("running_kb", "peak_kb")))
        results[what] = costs
    for kind in KINDS:
        cost = results["blocks"][kind]["peak_kb"]
        figures.add(f"{kind}: a live block", cost, "bytes", f"≤ {MAX_BYTES_A_BLOCK}", cost <= MAX_BYTES_A_BLOCK)
    return results


def memory_length(build):
    """Prints what recordings of memory take, against their length."""
    python = [path for tag, path in pythons() if not tag.endswith("t")][-1]  # free-threaded ones record no memory
    environment = dict(os.environ, PYTHONPATH=str(build / "package"))
    figures = Figures()
    with tempfile.TemporaryDirectory() as name:
        def run(*arguments, **options):
            return measure(python, environment, pathlib.Path(name), *arguments, **options)

        results = {"lengths": by_length(run, figures), "growth": by_item(run, figures)}
    print()
    figures.print()
    return {**results, "figures": figures.rows}
