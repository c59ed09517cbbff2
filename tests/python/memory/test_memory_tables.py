"""Tables of what was allocated: the numbers are those that the snapshot of the same recording has, and that
tracemalloc has; what the commands and variables make of them."""

import collections
import contextlib
import io
import json
import os
import pathlib
import sys
import tracemalloc
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from snapshots import Snapshot
from support import BACKEND, FREE_THREADED, Case, MemoryCase, READERS, TAG, line_of, read_perfetto, run_python

import kpytrace
from kpytrace._cli import commands
from kpytrace._files.memory_tables import Tables

WHY_SKIPPED = f"there is no backend for CPython {TAG} beside the plugin, or none that records memory"
HERE = __file__


def leak(count=1000):
    return [bytes(1000) for _ in range(count)]


def peak_and_leak():
    large = [bytearray(100000) for _ in range(50)]
    del large
    return leak()


def outer(depth):
    return [leak(10), outer(depth - 1)] if depth else []


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, WHY_SKIPPED)
class OfARecording(MemoryCase):
    def record_both(self, work, *arguments, **options):
        """Returns the tables and the snapshot of one recording."""
        m = kpytrace.memory(**options).start()
        kept = work(*arguments)
        m.stop()
        m.export(self.path)
        return m.tables(), Snapshot(self.path), kept

    def test_they_are_the_snapshots(self):
        tables, snapshot, kept = self.record_both(peak_and_leak)
        alive = collections.Counter()
        for block in snapshot.blocks:
            frame = block["frames"][0] if block["frames"] else {"name": "(no Python)", "filename": "", "line": 0}
            alive[frame["name"], frame["filename"], frame["line"]] += block["size"]
        rows = {(row.name, row.file, row.line): row.bytes for row in tables.rows() if row.blocks}
        rows = {key: size for key, size in rows.items() if size}
        self.assertEqual(rows, {key: size for key, size in alive.items() if size})
        self.assertEqual(tables.total()[0], snapshot.bytes)
        self.assertEqual(tables.total("peak")[0], snapshot.own["peak_bytes"])
        self.assertEqual(tables.total("all")[1],
                         sum(entry["action"] == "alloc" for entry in snapshot.entries))
        self.assertEqual(tables.entries, len(snapshot.entries))
        self.assertEqual(tables.devices, snapshot.own["devices"])
        del kept

    def test_peak_and_leak(self):
        tables, _, kept = self.record_both(peak_and_leak)
        top = tables.rows("peak")[0]
        self.assertEqual((top.line, top.file), (line_of(peak_and_leak, 1), HERE))
        self.assertGreaterEqual(top.bytes, 5000000)
        left = tables.rows("end")[0]
        self.assertEqual((left.line, left.file), (line_of(leak, 1), HERE))
        self.assertEqual(left.blocks // 1000, len(kept) // 1000)
        self.assertFalse([row for row in tables.rows("end") if row.line == top.line and row.bytes])
        caller = next(row for row in tables.rows("end", "function") if row.name == "peak_and_leak")
        self.assertEqual(caller.bytes, 0)
        self.assertGreaterEqual(caller.total_bytes, 1000000)
        self.assertLess(tables.peak_time_ns, tables.end_time_ns)

    def test_recursion_counts_once(self):
        tables, _, kept = self.record_both(outer, 20)
        rows = {row.name: row for row in tables.rows("end", "function")}
        self.assertEqual(rows["outer"].total_bytes,
                         rows["outer"].bytes + sum(row.bytes for name, row in rows.items() if "leak" in name
                                                   or name == "<listcomp>"))
        del kept

    def test_by_file_and_device(self):
        tables, _, kept = self.record_both(leak)
        for by in ("line", "function", "file", "device", "module", "category"):
            for at in ("peak", "end", "all"):
                rows = tables.rows(at, by)
                self.assertEqual(sum(row.bytes for row in rows), tables.total(at)[0])
        one = tables.rows("end", "file", "python object")
        self.assertEqual(sum(row.bytes for row in one), tables.total("end", "python object")[0])
        for wrong in ({"at": "now"}, {"by": "month"}, {"device": "swimming pool"}):
            with self.assertRaisesRegex(ValueError, "must be one of"):
                tables.rows(**wrong)
        del kept

    def test_a_difference(self):
        with kpytrace.memory() as m:
            first = leak()
            before = m.tables()
            second = leak(2000)
            after = m.tables()
        changed = after.diff(before)
        self.assertEqual((changed[0].line, changed[0].file), (line_of(leak, 1), HERE))
        self.assertEqual(changed[0].blocks // 10, 200)
        self.assertLess(sum(row.bytes for row in changed[1:]), changed[0].bytes / 10)
        self.assertEqual(after.diff(after), [])
        back = before.diff(after)
        self.assertEqual(sum(row.bytes for row in back), -sum(row.bytes for row in changed))
        del first, second

    def test_growth_is_tracemallocs(self):
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        with kpytrace.memory() as m:
            first = tracemalloc.take_snapshot()
            kept = leak(3000)
            second = tracemalloc.take_snapshot()
        line = line_of(leak, 1)
        theirs = sum(s.size_diff for s in second.compare_to(first, "lineno")
                     if s.traceback[0].filename == HERE and s.traceback[0].lineno == line)
        ours = sum(row.bytes for row in m.tables().rows() if row.file == HERE and row.line == line)
        self.assertEqual(ours, theirs)
        del kept

    def test_samples_are_weighed(self):
        tables, _, kept = self.record_both(leak, 20000, sample_bytes=5000)
        self.assertEqual(tables.sample_bytes, 5000)
        row = next(row for row in tables.rows() if row.file == HERE)
        self.assertAlmostEqual(row.bytes / sum(map(sys.getsizeof, kept)), 1, delta=0.1)
        self.assertAlmostEqual(row.blocks / len(kept), 1, delta=0.1)

    def test_the_peak_of_samples(self):
        """The peak is at the time with the most bytes, for any size of blocks, and not at the largest sample."""
        def small_then_large():
            chain = None
            for _ in range(100000):
                chain = (chain, None)
            while chain:
                chain = chain[0]
            return bytes(1000000)
        tables, _, _ = self.record_both(small_then_large, sample_bytes=10000)
        self.assertAlmostEqual(tables.total("peak")[0] / (100000 * sys.getsizeof((None, None))), 1, delta=0.3)

    def test_a_flame_graph(self):
        tables, _, kept = self.record_both(peak_and_leak)
        lines = tables.folded("peak").splitlines()
        self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), tables.total("peak")[0])
        self.assertTrue(any(";peak_and_leak" in line and line.rpartition(";")[2].startswith("peak_and_leak")
                            for line in lines), lines)
        del kept

    def test_nothing_is_left_in_the_folder(self):
        os.environ["TMPDIR"] = str(self.folder)
        self.addCleanup(os.environ.pop, "TMPDIR")
        self.record_both(leak)
        self.assertEqual([path.name for path in self.folder.iterdir()], [self.path.name])

    @unittest.skipUnless(os.path.exists(READERS), "no readers: run `make readers`")
    def test_perfetto(self):
        path = self.folder / "memory.pftrace"
        with kpytrace.memory(path) as m:
            kept = peak_and_leak()
            m.export(self.path)
        read = read_perfetto(path)
        entries = Snapshot(self.path).entries
        marks = [mark for mark in read["marks"] if mark[1] == "[memory]"]
        self.assertGreaterEqual(len(marks), len(entries))
        self.assertEqual(len(read["values"]), len(marks))
        self.assertEqual({name for name, _, _ in read["values"]},
                         {"python raw", "python mem", "python object"} & {m[3]["Device"] for m in marks})
        live = collections.Counter()
        for (_, _, ns, notes), (pool, at, value) in zip(marks, read["values"]):
            self.assertEqual((ns, notes["Device"]), (at, pool))
            live[pool] = value
            self.assertEqual(notes["Total Allocated"], sum(live.values()))
        self.assertEqual([ns for _, _, ns, _ in marks], sorted(ns for _, _, ns, _ in marks))
        sizes = collections.Counter(notes["Bytes"] for _, _, _, notes in marks)
        self.assertGreaterEqual(sizes[sys.getsizeof(kept[0])], len(kept))
        self.assertEqual(list(read["threads"]), [str(os.getpid())])


class OfAFile(Case):
    def tables(self, name, **content):
        """Returns the tables of a recording of this code."""
        path = self.folder / f"{name}.tables.json"
        numbers = dict.fromkeys(Tables.__annotations__, 0)
        path.write_text(json.dumps({"schema": "kpytrace.memory.1", **numbers, **content}))
        return Tables(path)

    def test_a_device_that_came_between(self):
        """Devices of tensors appear in the middle of a recording."""
        before = self.tables("a", devices=["python raw"], symbols=[], nodes=[], rows=[])
        after = self.tables("b", devices=["python raw", "cpu"], symbols=[], nodes=[], rows=[[1, 0, *[7, 1] * 3]])
        self.assertEqual([row.bytes for row in after.diff(before, device="cpu")], [7])
        self.assertEqual([row.bytes for row in before.diff(after, device="cpu")], [-7])
        self.assertEqual(after.diff(before, device="python raw"), [])
        with self.assertRaisesRegex(ValueError, "device must be one of python raw, cpu, not 'gpu'"):
            after.diff(before, device="gpu")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            commands.main(["memory", "--device", "cpu", *(str(self.folder / f"{name}.tables.json") for name in "ab")])
        self.assertIn("Changed, end: 7 B in 1 blocks", said.getvalue())

    def test_deep_stacks(self):
        """The total of a function, and the time to compute it, do not grow with its recursion."""
        depth = 50000
        deep = self.tables("deep", devices=["python raw"], symbols=[["f", "a.py", 3], ["g", "a.py", 4]],
                           nodes=[[i, i % 2] for i in range(depth)], rows=[[0, i, *[1] * 6] for i in range(depth + 1)])
        rows = [(row.name, row.blocks, row.total_blocks) for row in deep.rows(by="function")]
        self.assertEqual(rows, [("f", depth // 2, depth), ("g", depth // 2, depth - 1), ("(no Python)", 1, 1)])


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, WHY_SKIPPED)
class Commands(Case):
    PROGRAM = "kept = [bytes(1000) for _ in range(1000)]\ndef f(): return bytearray(3000000)\nf()\n"

    def setUp(self):
        super().setUp()
        self.script = self.folder / "the program.py"
        self.script.write_text(self.PROGRAM)

    def kpytrace(self, *words, **options):
        return run_python("-m", "kpytrace", *map(str, words), cwd=self.folder, **options)

    def test_run_and_look(self):
        done = self.kpytrace("run", "--memory", "a.tables.json", self.script)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("a.tables.json", done.stderr)
        self.assertEqual([p.name for p in self.folder.iterdir() if p != self.script], ["a.tables.json"])
        said = self.kpytrace("memory", "a.tables.json").stdout
        peak, end = said.split("At the end")
        self.assertIn(f"f  {self.script}:2", peak.splitlines()[2])
        self.assertIn(f"{self.script}:1", end.splitlines()[2])
        said = self.kpytrace("memory", "a.tables.json", "--by", "device", "--at", "all", "-n", "2").stdout
        self.assertIn("python object", said)
        self.assertIn("1 more row", said)
        self.assertEqual(self.kpytrace("memory", "a.tables.json", "--folded", "f.txt").returncode, 0)
        self.assertIn(f"f ({self.script}:2) 300", (self.folder / "f.txt").read_text())
        self.script.write_text(self.PROGRAM.replace("1000)]", "3000)]"))
        self.kpytrace("run", "--memory", "b.tables.json", "-q", self.script)
        said = self.kpytrace("memory", "a.tables.json", "b.tables.json").stdout.splitlines()
        self.assertIn(f"{self.script}:1", said[2])
        self.assertIn("2,000", said[2])

    def test_names_that_stdout_has_no_bytes_for(self):
        script = self.script.rename(self.folder / "programm\u00e9.py")
        self.kpytrace("run", "--memory", "a.tables.json", "-q", script)
        done = self.kpytrace("memory", "a.tables.json", env={"PYTHONIOENCODING": "ascii"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("programm\\xe9.py:2", done.stdout)

    def test_beside_a_trace_and_sampled(self):
        done = self.kpytrace("run", "--memory", "a.pickle", "--memory-sample", "10kB", "-o", "calls.json",
                             self.script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(Snapshot(self.folder / "a.pickle").own["sample_bytes"], 10000)
        self.assertIn("traceEvents", json.loads((self.folder / "calls.json").read_text()))

    def test_the_variable(self):
        done = run_python("-m", "kpytrace", "run", "--memory", "a.json", "-c", "import os; os._exit(3)",
                          cwd=self.folder)
        self.assertEqual(done.returncode, 3)
        self.assertTrue((self.folder / "a.json").exists())
        done = run_python("-c", "from kpytrace import _startup; _startup.start(); x = bytes(5000)",
                          cwd=self.folder, env={"KPYTRACE_MEMORY": "b.tables.json sample_bytes=1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(Tables(self.folder / "b.tables.json").total("all")[0], 5000)
        done = run_python("-c", "from kpytrace import _startup; _startup.start(); print(1)",
                          cwd=self.folder, env={"KPYTRACE_MEMORY": "1 depth=3"})
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"))
        self.assertIn("unknown option 'depth'", done.stderr)

    def test_invalid_arguments(self):
        (self.folder / "x.json").write_text("{}")
        for words, text in (
                (["run", "--memory", "a.txt", self.script], "the path of a memory recording must end in"),
                (["run", "--memory-sample", "5", self.script], "need --memory FILE"),
                (["run", "--memory", "a.json", "--gc", self.script], "--gc is about calls"),
                (["run", "--memory", "a.json", "--memory-sample", "much", self.script], "sample_bytes"),
                (["run", "--memory", "a.json", "-o", "./a.json", self.script], "to one file"),
                (["memory"], "--help"),
                (["memory", "x.json", "--at", "noon"], "--at must be one of"),
                (["memory", "x.json", "-n", "few"], "--count must be a number")):
            done = self.kpytrace(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(text, done.stderr)
        for words, text in ((["memory", "x.json"], "has no tables"), (["memory", "none.json"], "No such file")):
            done = self.kpytrace(*words)
            self.assertEqual((done.returncode, done.stdout), (1, ""), words)
            self.assertIn(text, done.stderr)

    def test_what_is_damaged(self):
        """A damaged file causes one line that names it, and no page. The last file is correct."""
        good = {"schema": "kpytrace.memory.1", "sample_bytes": 0, "entries": 1, "entries_dropped": 0,
                "frees_of_earlier_blocks": 0, "peak_time_ns": 1, "end_time_ns": 2, "devices": ["python raw"],
                "symbols": [["f", "a.py", 3]], "nodes": [[0, 0]], "rows": [[0, 1, 8, 1, 8, 1, 8, 1]]}
        path = self.folder / "x.tables.json"
        for change, text in (
                *(({name: None}, "NoneType|None") for name in list(good)[1:]),
                ({"devices": [1]}, "1 is not of type str"), ({"symbols": [["f", "a.py"]]}, "unpack"),
                ({"nodes": [[1, 0]]}, "index 1 is out of range"), ({"nodes": [[0, -1]]}, "index -1 is out of range"),
                ({"rows": [[1, *good["rows"][0][1:]]]}, "index 1 is out of range"),
                ({"rows": [[0, 2, 8, 1, 8, 1, 8, 1]]}, "index 2 is out of range"),
                ({"rows": [[0, 1, 8, 1]]}, "a row"), ({"rows": [[0, 1, 8, 1, 8, 1, 8, "1"]]}, "a row"),
                ({"rows": [[0, 1, 8, 1, 8, 1, -8, 1]]}, "a row"), ({"rows": [[0, 1, 8, 1, 8, 1, 2**64, 1]]}, "a row"),
                ({"rows": [0]}, "a row|unpack"), (None, "'devices' is missing"), ("cut", "Expecting"), ({}, "")):
            data = {**good, **(change if isinstance(change, dict) else {})}
            if change is None:
                del data["devices"]
            path.write_text(json.dumps(data)[:-5 if change == "cut" else None])
            for words in (["memory", path], ["report", path, "-o", self.folder / "x.html"]):
                with self.subTest(words[0], change=change):
                    err = io.StringIO()
                    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
                        status = commands.main(list(map(str, words)))
                    self.assertEqual(status, 1 if text else 0, err.getvalue())
                    if text:
                        self.assertRegex(err.getvalue(), rf"\Akpytrace: {path} is damaged: .*({text}).*\n\Z")
                        self.assertEqual(list(self.folder.glob("*.html")), [])


if __name__ == "__main__":
    unittest.main()
