"""Files with many tracks, or many calls: what writing other formats, pages and tables of them takes follows the tracks
that are open at one time, and a few hundred bytes for each that is in the file. Calls take no memory."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "fixtures"))

from short_tracks import HAS_GREENLET, greenlets, threads
from support import BACKEND, Case, FREE_THREADED
from work import work

import kpytrace

# Runs the command line, and prints the largest memory of the process.
COMMAND = """
import runpy, sys
try:
    runpy.run_module("kpytrace", run_name="__main__", alter_sys=True)
except SystemExit as end:
    if end.code:
        raise
with open("/proc/self/status") as lines:  # ru_maxrss would be that of this program's parent, if that is larger
    print(next(line.split()[1] for line in lines if line.startswith("VmHWM")), file=sys.stderr)
"""

KEEPS_FREED = "ASAN_OPTIONS" in os.environ  # AddressSanitizer does
TRACKS = 20_000 if HAS_GREENLET and not FREE_THREADED and not KEEPS_FREED else 3_000
make_tracks = greenlets if TRACKS == 20_000 else threads
PYTHON_BYTES = 48 << 20  # the process alone, and the part of the file that is resident
# A cursor for each track at once took 28 kB of each.
EACH_BYTES = 400 if TRACKS == 20_000 else 2000
CALLS = 40_000_000 if os.environ.get("KPYTRACE_TEST_LONG", "0") != "0" else 4_000_000
PYARROW_BYTES = 64 << 20  # that table loads
HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class ManyTracks(Case):
    def record(self):
        path = self.folder / "many.kpt"
        with kpytrace.trace(path):
            make_tracks(TRACKS)
        return path

    def run_command(self, *words, most=PYTHON_BYTES + EACH_BYTES * TRACKS):
        reply = subprocess.run([sys.executable, "-c", COMMAND, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        peak = int(reply.stderr.split()[-1]) << 10
        if not KEEPS_FREED:
            self.assertLess(peak, most, words)
        return reply.stdout

    def test_what_commands_take(self):
        path = self.record()
        for suffix in ("pftrace", "html", "collapsed", "speedscope.json", "json", "kpt"):
            with self.subTest(suffix):
                self.run_command("convert", path, self.folder / f"out.{suffix}")
        self.run_command("report", "-q", "-o", self.folder / "report.html", path)
        self.run_command("diff", path, path)
        self.assertIn(f"{TRACKS:,}", self.run_command("top", path))
        self.assertEqual(len(self.run_command("top", "--threads", "-n", "10", path).splitlines()), 11)
        text = self.run_command("info", "-n", "7", path)
        lines = text[text.index("threads:\n"):].splitlines()
        self.assertEqual(len(lines), 9)
        names = int(lines[-1].split("  ")[-1].split(" ")[0].replace(",", "")) + 7
        self.assertIn("more threads (all: -n 0)", lines[-1])
        text = self.run_command("info", "-n", "0", path)
        lines = text[text.index("threads:\n"):].splitlines()
        self.assertEqual(len(lines), 1 + names)
        self.assertGreater(names, TRACKS)
        if HAS_PYARROW:
            self.run_command("table", "-q", "-o", self.folder / "out.parquet", path,
                             most=PYARROW_BYTES + PYTHON_BYTES + EACH_BYTES * TRACKS)
        events = self.read_trace(self.folder / "out.json")["traceEvents"]
        calls = [e for e in events if e["ph"] == "X" and e["name"].endswith(": leaf")]
        self.assertEqual(len({e["tid"] for e in calls}), TRACKS)
        self.assertEqual(len(calls), TRACKS)

    def test_calls_take_none(self):
        """Half of them are in a span, which other writers than that of .kpt look for."""
        path = self.folder / "calls.kpt"
        with kpytrace.trace(path):
            work(CALLS // 2)
            with kpytrace.span("half"):
                work(CALLS // 2)
        for suffix in ("pftrace", "html", "collapsed", "speedscope.json", "json", "kpt"):
            with self.subTest(suffix):
                out = self.folder / f"out.{suffix}"
                out.symlink_to("/dev/null")
                self.run_command("convert", path, out, most=PYTHON_BYTES)
        self.run_command("report", "-q", "-o", self.folder / "report.html", path, most=PYTHON_BYTES)
        self.run_command("merge", "-q", "-o", self.folder / "out.pftrace", path, path, most=PYTHON_BYTES)
        self.run_command("info", path, most=PYTHON_BYTES)
        self.run_command("top", path, most=PYTHON_BYTES)
        self.run_command("diff", path, path, most=PYTHON_BYTES)


if __name__ == "__main__":
    unittest.main()
