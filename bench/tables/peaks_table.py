"""Prints the peak memory of each command that reads a .kpt file, by the number of tracks and by the number of calls in it."""
import contextlib
import os
import pathlib
import subprocess
import tempfile

from standalone_table import Figures
from tracing_table import ROOT, heading, pythons, row

TRACKS = (1_000, 10_000, 70_000, 600_000, 1_000_000)
CALLS = (1_000_000, 10_000_000, 100_000_000)
FORMATS = ("pftrace", "html", "collapsed", "speedscope.json", "json", "kpt")
BOUND_TRACKS, MAX_MB = (70_000, 600_000), 150
MOST_GROWTH_MB = 20  # from the fewest calls to the most


def peak_mb(environment, *words):
    """Returns the peak memory of the command, as the system counts it."""
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return usage.ru_maxrss / 1e3 * 1.024


def commands(path, folder):
    """Returns the words of each command by its name. What is large goes to /dev/null, by a link with the format's name."""
    found = {}
    for suffix in FORMATS:
        out = folder / f"out.{suffix}"
        with contextlib.suppress(FileExistsError):
            out.symlink_to("/dev/null")
        found[f"`convert` to `.{suffix}`"] = ["convert", path, out]
    found["`report`"] = ["report", "-q", "-o", folder / "report.html", path]
    found["`top`"] = ["top", path]
    found["`explain`"] = ["explain", path]
    found["`top --threads`"] = ["top", "--threads", path]
    found["`info`"] = ["info", path]
    found["`diff`"] = ["diff", path, path]
    found["`merge` of two into `.pftrace`"] = ["merge", "-q", "-o", folder / "out.pftrace", path, path]
    if table_python().exists():
        found["`table`"] = ["table", "-q", "-o", folder / "out.parquet", path]
    return found


def table_python():
    """Returns the Python that has pyarrow."""
    return ROOT / "build/tables/bin/python"


def peaks_of(build, kind, counts):
    """Yields, by number, the peak memory in MB of each command."""
    tag, python = pythons()[-1]
    environment = dict(os.environ, PYTHONPATH=str(build / "package"),
                       KPT_GREENLETS=str(ROOT / "build/greenlets" / tag))
    for count in counts:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            path = folder / "many.kpt"
            subprocess.check_call([python, ROOT / "bench/measure/tracks.py", f"make-{kind}", str(count), path],
                                  env=environment)
            yield count, {name: peak_mb(environment, table_python() if words[0] == "table" else python, "-m", "kpytrace",
                                        *words) for name, words in commands(path, folder).items()}


def peaks(build):
    results, figures = {}, Figures()
    for kind, counts in (("tracks", TRACKS), ("calls", CALLS)):
        found = dict(peaks_of(build, kind, counts))
        results[kind] = found
        print(f"\nPeak memory of commands (MB), by the number of {kind} in the file\n")
        heading(kind, *(f"{count:,}" for count in counts))
        for name in found[counts[0]]:
            row(name, *(f"{found[count][name]:.0f}" for count in counts))
    for name in results["tracks"][TRACKS[0]]:
        for count in BOUND_TRACKS:
            mb = results["tracks"][count][name]
            figures.add(f"{name}, {count:,} tracks", mb, "MB", f"≤ {MAX_MB}", mb <= MAX_MB)
        grown = results["calls"][CALLS[-1]][name] - results["calls"][CALLS[0]][name]
        figures.add(f"{name}, more for {CALLS[-1]:,} calls than for {CALLS[0]:,}", grown, "MB", f"≤ {MOST_GROWTH_MB}",
                    grown <= MOST_GROWTH_MB)
    print()
    figures.print()
    return {"peaks": results, "figures": figures.rows}
