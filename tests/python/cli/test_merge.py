"""kpytrace merge, and outputs that are named by rank."""

import collections
import gzip
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from rank_files import check_memory_of_merging, make_rank
from support import Case, FREE_THREADED, READERS, read_perfetto, run_python

from kpytrace._files import clock_align as _align
from kpytrace._files import merge as _merge
from kpytrace._files.kpt_header import File
from kpytrace._processes import process_info as _process

PROGRAM = """
import kpytrace, time
def work(n):
    return sum(range(n))
for i in range({steps}):
    with kpytrace.span("step", i=i):
        work(100)
        time.sleep({pause})
    kpytrace.mark("barrier", flow=7)
span = kpytrace.span("loose").begin()
def end():
    span.end()
end()
"""


class Merge(Case):
    def record(self, name="a.kpt", steps=5, pause=0.0, env=None):
        script = self.folder / "prog.py"
        script.write_text(PROGRAM.format(steps=steps, pause=pause))
        reply = run_python("-m", "kpytrace", "run", "-q", "-o", str(self.folder / name), str(script), env=env or {},
                           cwd=self.folder)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return self.folder / name

    def merge(self, *words, status=0):
        reply = run_python("-m", "kpytrace", "merge", *map(str, words), cwd=self.folder)
        self.assertEqual(reply.returncode, status, reply.stderr)
        return reply

    def ranks(self, count, **options):
        source = self.record(**options)
        paths = [self.folder / f"r{rank}.kpt" for rank in range(count)]
        for rank, path in enumerate(paths):
            make_rank(source, path, rank, count)
        return paths

    def test_a_full_device_is_reported(self):
        """For any file. Before the fix, the message named a recording that can't be read."""
        small, large = self.record("small.kpt"), self.record("large.kpt", steps=2000)
        for paths in ([large], [small, large], [small, small]):
            reply = self.merge(*paths, "-o", "/dev/full", status=1)
            self.assertEqual(reply.stderr.splitlines()[-1], "kpytrace: /dev/full: No space left on device")

    def test_ranks_by_name_and_in_order(self):
        paths = self.ranks(3)
        reply = self.merge(*reversed(paths), "-o", self.path)
        self.assertRegex(reply.stderr, r"^kpytrace: [\d,]+ calls of 3 processes in .* s: .*trace\.json$")
        events = self.read_trace()["traceEvents"]
        names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
        self.assertEqual(names, ["rank 0", "rank 1", "rank 2"])
        by_pid = collections.Counter(e["pid"] for e in events if e["ph"] == "X" and e["name"].endswith(": work"))
        self.assertEqual(by_pid, {1000: 5, 1001: 5, 1002: 5})
        for phase in "stf":  # no arrow leads from one process to another
            ids = collections.defaultdict(set)
            for event in events:
                if event["ph"] == phase:
                    ids[event["id"]].add(event["pid"])
            self.assertEqual([len(pids) for pids in ids.values()], [1, 1, 1])
        loose = [(e["pid"], e["id"]) for e in events if e["ph"] == "b"]
        self.assertEqual(len({number for _, number in loose}), 3, loose)
        indices = [e["args"]["Ev Idx"] for e in events if e["ph"] == "X" and "Ev Idx" in e["args"]]
        self.assertEqual(indices, list(range(len(indices))))

    def test_a_file_that_is_cut_off_is_reported(self):
        whole, cut = self.ranks(2)
        cut.write_bytes(cut.read_bytes()[:-500])
        lines = self.merge(whole, cut, "-o", self.path).stderr.splitlines()
        self.assertRegex(lines[0], r"^kpytrace: .*r1\.kpt is cut off: its program was killed")
        self.assertRegex(lines[1], "calls of 2 processes")
        self.assertEqual(self.merge("-q", whole, cut, "-o", self.path).stderr, "")

    def test_each_part_is_as_it_is_alone(self):
        paths = self.ranks(2)
        self.merge(*paths, "-o", self.path)
        alone = self.folder / "alone.json"
        run_python("-m", "kpytrace", "convert", "-q", str(paths[1]), str(alone))

        def shape(path, pid):
            data = self.read_trace(path)
            return [(e["name"], e["ts"] + data["baseTimeNanoseconds"] / 1000, e["dur"]) for e in data["traceEvents"]
                    if e["ph"] == "X" and e["pid"] == pid]

        self.assertEqual(shape(self.path, 1001), shape(alone, 1001))
        other = self.read_trace()["otherData"]
        self.assertEqual(other["calls"], 2 * self.read_trace(alone)["otherData"]["calls"])
        self.assertEqual(other["events"], 2 * self.read_trace(alone)["otherData"]["events"])

    def test_processes_that_have_the_same_number(self):
        source = self.record()
        paths = [self.folder / f"h{i}.kpt" for i in range(3)]
        for i, path in enumerate(paths):
            make_rank(source, path, i, 3, pid=77, host=f"node{i}-")
        self.merge(*paths, "-o", self.path)
        events = self.read_trace()["traceEvents"]
        self.assertEqual({e["pid"] for e in events}, {77, 10000077, 20000077})

    def test_compressed(self):
        self.merge(*self.ranks(2), "-o", self.folder / "x.json.gz")
        data = json.loads(gzip.decompress((self.folder / "x.json.gz").read_bytes()))
        self.assertEqual(sum(e["name"] == "process_name" for e in data["traceEvents"]), 2)

    @unittest.skipUnless(os.path.exists(READERS), "there is no reader of Perfetto's traces")
    def test_perfetto(self):
        path = self.folder / "x.pftrace"
        self.merge(*self.ranks(3), "-o", path)
        found = read_perfetto(path)
        self.assertEqual(sum(call[1].endswith(": work") for call in found["calls"]), 15)
        self.assertEqual(sum(call[1] == "step" for call in found["calls"]), 15)
        self.assertGreaterEqual(sum(call[1] == "loose" for call in found["calls"]), 3)
        self.assertEqual(len(found["marks"]), 15)
        self.assertEqual(found["process"], "rank 2")

    def test_clocks_by_marks(self):
        """The second program runs later, like one with another clock. Its marks are moved onto those of the first."""
        paths = [self.record(f"{name}.kpt", steps=8, pause=0.02) for name in "ab"]
        reply = self.merge(*paths, "--align", "marks", "-o", self.path)
        self.assertRegex(reply.stdout, r"(?m)^ *0\.0 µs +0\.000 ppm +8 +0\.0 µs .*a\.kpt$")
        marks = collections.defaultdict(list)
        for event in self.read_trace()["traceEvents"]:
            if event["ph"] == "i":
                marks[event["pid"]].append(event["ts"])
        one, other = marks.values()
        apart = sorted(abs(a - b) for a, b in zip(one, other))
        self.assertLess(apart[4], 50_000)  # microseconds, on a machine that is busy; the wall clocks are a second apart
        self.merge(*paths, "--align", "marks", "--mark", "step", "-q", "-o", self.path)
        self.assertIn("no mark and no span 'lunch'", self.merge(*paths, "--align", "marks", "--mark", "lunch", "-o",
                                                                self.path, status=1).stderr)

    def test_a_file_that_was_cut_off_and_one_that_is_damaged(self):
        good, cut, bad = self.ranks(3)
        cut.write_bytes(cut.read_bytes()[:-30])
        data = bytearray(bad.read_bytes())
        data[len(data) // 2] ^= 255
        bad.write_bytes(data)
        self.assertIn("damaged", self.merge(good, cut, bad, "-o", self.path, status=1).stderr)
        self.assertFalse(self.path.exists())
        self.merge(good, cut, bad, "--recover", "-o", self.path)
        self.assertEqual(sum(e["name"] == "process_name" for e in self.read_trace()["traceEvents"]), 3)

    def test_mistakes(self):
        path = self.record()
        for words, text in (([], "; see --help"), ([path], "; see --help"),
                            ([path, "-o", "x.kpt"], "holds one process"), ([path, "-o", "x.collapsed"], "one process"),
                            ([path, "-o", "x.json", "--align", "stars"], "must be wall or marks"),
                            ([self.folder / "prog.py", "-o", "x.json"], "not a .kpt file"),
                            (["none.kpt", "-o", "x.json"], "No such file")):
            reply = run_python("-m", "kpytrace", "merge", *map(str, words), cwd=self.folder)
            self.assertIn(reply.returncode, (1, 2))
            self.assertIn(text, reply.stderr)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.kpt", "prog.py"])

    def test_many_files_take_the_memory_of_one(self):
        """Merging 256 files needs no more memory than merging 32, except for their paths."""
        check_memory_of_merging(self, self.ranks(256, steps=300), 32)


class Clocks(unittest.TestCase):
    """Generated marks: a clock has an offset of 3 s and a drift of 20 ppm; some marks are late."""

    def test_an_offset_and_a_drift(self):
        reference = [1_700_000_000 * 10**9 + i * 10**9 for i in range(60)]
        times = [round(t - 3e9 - (t - reference[0]) * 20e-6) for t in reference]
        for i in range(0, 60, 7):
            times[i] += 5_000_000  # late
        clock, scatter = _align.fit(times, reference)
        self.assertAlmostEqual(clock.drift, 20e-6, delta=1e-7)
        self.assertLess(scatter, 1000)
        moved = times[31] + clock.offset + (times[31] - clock.anchor) * clock.drift
        self.assertLess(abs(moved - reference[31]), 20_000)

    def test_few_marks_give_an_offset(self):
        for count in (1, 2):
            clock, _ = _align.fit([100 * i for i in range(count)], [100 * i + 7 for i in range(count)])
            self.assertEqual((clock.offset, clock.drift), (7, 0.0))

    def test_scatter_is_no_drift(self):
        reference = [i * 10**9 for i in range(20)]
        times = [t - (0 if i % 2 else 40_000) for i, t in enumerate(reference)]
        self.assertEqual(_align.fit(times, reference)[0].drift, 0.0)


class Ranks(Case):
    def test_outputs_have_their_rank(self):
        host = os.uname().nodename
        for given, made in (("x.kpt", "x.rank3.kpt"), ("x.%r.kpt", "x.3.kpt"), ("%%x-%h.kpt", f"%x-{host}.rank3.kpt"),
                            ("x.json.gz", "x.rank3.json.gz")):
            reply = run_python("-m", "kpytrace", "run", "-q", "-o", given, "-c", "pass", cwd=self.folder,
                               env={"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"})
            self.assertEqual(reply.returncode, 0, reply.stderr)
            self.assertTrue((self.folder / made).exists(), (made, list(self.folder.iterdir())))
        info = File(str(self.folder / "x.rank3.kpt")).info
        self.assertEqual((info["rank"], info["local_rank"], info["world_size"]), ("3", "1", "4"))
        self.assertEqual(info["host"], host)

    def test_a_rank_without_a_name_for_its_output(self):
        code = "from kpytrace import _startup; _startup.start(); import os; print(os.getpid())"
        reply = run_python("-c", code, cwd=self.folder, env={"KPYTRACE": "1", "RANK": "2"})
        self.assertEqual([path.name for path in self.folder.iterdir()],
                         [f"kpytrace.rank2.{reply.stdout.strip()}.kpt"], reply.stderr)

    def test_the_process_in_a_name(self):
        reply = run_python("-m", "kpytrace", "run", "-q", "-o", "x.%p.json", "-c", "import os; print(os.getpid())",
                           cwd=self.folder)
        self.assertTrue((self.folder / f"x.{reply.stdout.strip()}.json").exists(), reply.stderr)

    def test_only_what_was_asked_for_is_filled_in(self):
        """A % in the folder's name is kept. (Memory is not recorded on free-threaded Python.)"""
        (self.folder / "s.py").write_text("pass")
        memory = [] if FREE_THREADED else ["--memory", "m.%p.pickle"]
        for folder in ("100%rel", "50%pct", "%%", "a%", "%h%r%%p"):
            place = self.folder / folder
            place.mkdir()
            for environment, name in (({}, "x.json"), ({"RANK": "3"}, "x.rank3.json")):
                for output in ("x.json", "../" + folder.replace("%", "%%") + "/x.json"):
                    with self.subTest(folder, output=output, name=name):
                        reply = run_python("-m", "kpytrace", "run", "-q", "-o", output, *memory, "../s.py",
                                           cwd=place, env=environment)
                        self.assertEqual((reply.returncode, reply.stderr), (0, ""))
                        *snapshots, trace = sorted(place.iterdir())
                        self.assertEqual(len(snapshots), len(memory) // 2)
                        for snapshot in snapshots:
                            self.assertRegex(snapshot.name, r"^m\.\d+\.pickle$")
                            snapshot.unlink()
                        self.assertEqual(trace.name, name)
                        trace.unlink()

    def test_a_missing_rank_is_reported(self):
        for words in (["-o", "x%r.json"], ["--memory", "x%r.json"]):
            reply = run_python("-m", "kpytrace", "run", *words, "-c", "pass", cwd=self.folder)
            self.assertRegex(reply.stderr, r"^kpytrace: x%r\.json contains %r, and this program has no rank: .*\n$")
            self.assertEqual((reply.returncode, list(self.folder.iterdir())), (0, []))
            self.assertEqual(run_python("-m", "kpytrace", "run", "-q", *words, "-c", "pass", cwd=self.folder).stderr, "")

    def test_a_launcher_of_ranks_is_not_recorded(self):
        """A launcher keeps the variable for its ranks."""
        (self.folder / "torchrun").write_text(
            "import os, subprocess, sys\nfor rank in '01':\n"
            "    subprocess.run([sys.executable, '-c', 'pass'], env={**os.environ, 'RANK': rank}, check=True)\n")
        for output in ("y.kpt", "y-%r.kpt"):
            reply = run_python("-W", "ignore", "-m", "kpytrace", "run", "-o", output, "torchrun", cwd=self.folder)
            self.assertEqual(reply.returncode, 0, reply.stderr)
            self.assertNotIn("has no rank", reply.stderr)
        self.assertEqual(sorted(p.name for p in self.folder.glob("y*")),
                         ["y-0.kpt", "y-1.kpt", "y.rank0.kpt", "y.rank1.kpt"])

    def test_commands_in_short(self):
        for command, short in (("/usr/bin/python3.12 -X dev a/worker.py --x", "python worker.py"), ("", "python"),
                               ("python -m http.server 80", "python -m http.server"), ("python", "python"),
                               ("python3 -c pass", "python -c")):
            self.assertEqual(_process.short_command(command), short)
        self.assertEqual(_merge._distinct(5, {5, 10_000_005}), 20_000_005)


if __name__ == "__main__":
    unittest.main()
