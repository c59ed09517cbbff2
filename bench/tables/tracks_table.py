"""Runs tracks.py, and prints what tracks that have ended cost a recording, and the peak memory of commands that read a
file with many."""
import json
import os
import pathlib
import subprocess
import tempfile

from standalone_table import Figures
from tracing_table import ROOT, heading, pythons, row

ENDED = {"threads": 10_000, "greenlets": 20_000, "tasks": 60_000, "counters": 100_000}
MAX_BYTES_EACH = 32
TRACKS = (1_000, 10_000, 70_000, 600_000)
FORMATS = ("pftrace", "html", "collapsed", "speedscope.json", "json", "kpt")
MAX_MB = 150


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


def peak_mb(python, environment, *words):
    """Returns the peak memory of the command, as the system counts it."""
    with subprocess.Popen([python, "-m", "kpytrace", *words], env=environment, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return usage.ru_maxrss / 1e3 * 1.024


def commands(path, folder):
    """Returns the words of each command by its name."""
    found = {f"convert to .{suffix}": ["convert", path, f"{folder}/out.{suffix}"] for suffix in FORMATS}
    found["report"] = ["report", "-q", "-o", f"{folder}/report.html", path]
    found["top"] = ["top", path]
    found["diff"] = ["diff", path, path]
    found["merge"] = ["merge", "-q", "-o", f"{folder}/merged.pftrace", path, path]
    return found


def peaks(build, tag, python):
    """Returns the peak memory in MB of each command, by the number of tracks."""
    environment = dict(os.environ, PYTHONPATH=str(build / "package"),
                       KPT_GREENLETS=str(ROOT / "build/greenlets" / tag))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in TRACKS:
            path = f"{folder}/tracks.kpt"
            subprocess.check_call([python, ROOT / "bench/measure/tracks.py", "make", str(count), path], env=environment)
            for name, words in commands(path, folder).items():
                found.setdefault(name, {})[count] = peak_mb(python, environment, *words)
    return found


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
    print("\nPeak memory of commands (MB), by the number of tracks in the file\n")
    heading("", *(f"{count:,}" for count in TRACKS))
    found = peaks(build, tag, python)
    for name, by_count in found.items():
        row(name, *(f"{mb:.0f}" for mb in by_count.values()))
        for count in TRACKS[2:]:
            figures.add(f"{name}, {count:,} tracks", by_count[count], "MB", f"≤ {MAX_MB}", by_count[count] <= MAX_MB)
    print()
    figures.print()
    return {"ended": results, "peaks": found, "figures": figures.rows}
