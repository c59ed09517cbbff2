"""What the file of a recording says of each moment: tables at any time, temporary allocations, live bytes over time, pages."""

import base64
import gzip
import json
import pathlib
import re
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, FREE_THREADED, MemoryCase, TAG, run_python

import kpytrace
from kpytrace._files.memory_tables import Tables

PAUSE_S = .05


def make(count):
    return [bytes(1000) for _ in range(count)]


def churn():
    for i in range(3000):
        str(i) + "x"


def work(times):
    """Notes the time in the middle of each pause, with what is alive then."""
    def pause(blocks):
        time.sleep(PAUSE_S)
        times.append((time.time_ns(), blocks))
        time.sleep(PAUSE_S)

    pause(0)
    first = make(300)
    pause(300)
    second = make(2000)
    pause(2300)
    del second
    churn()
    pause(300)
    return first


def page_tables(path):
    """Returns the tables in a page."""
    packed = re.search(r'data-kind="memory" data-pack="gzip">([^<]*)<', path.read_text("utf-8")).group(1)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def kpytrace_command(*words, **options):
    return run_python("-m", "kpytrace", *map(str, words), **options)


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, f"memory is not recorded on CPython {TAG} here")
class OverTime(MemoryCase):
    def setUp(self):
        super().setUp()
        self.path, self.times = self.folder / "memory.kpt", []
        with kpytrace.memory(self.path) as self.m:
            self.kept = work(self.times)

    def made(self, tables, at):
        """Returns the number of blocks that make() has."""
        return sum(row.blocks for row in tables.rows(at, "function") if row.name.endswith(("make", "<listcomp>")))

    def test_tables_at_any_time(self):
        begin = self.m.tables().begin_time_ns
        for ns, blocks in self.times:
            tables = self.m.tables(at=(ns - begin) / 1e9)
            self.assertAlmostEqual(self.made(tables, "moment"), blocks, delta=5)
            self.assertEqual(tables.total("moment"), self.m.tables(f"{ns - begin}ns").total("moment"))
            done = kpytrace_command("memory", self.path, "--at", f"{ns - begin}ns", "--by", "function", "--folded",
                                    self.folder / "f.txt")
            self.assertEqual(done.returncode, 0, done.stderr)
            folded = (self.folder / "f.txt").read_text()
            self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in folded.splitlines()), tables.total("moment")[0])
        self.assertEqual(self.m.tables(at=0).total("moment"), (0, 0))
        with self.assertRaisesRegex(ValueError, "there is no moment 1000 s after the begin: the recording has 0"):
            self.m.tables(at=1000).total("moment")
        for wrong in (-1, "12", "soon", float("nan"), True):
            with self.assertRaisesRegex(ValueError, "at="):
                self.m.tables(at=wrong)
        with self.assertRaisesRegex(ValueError, "has no moment: make tables of a recording with"):
            self.m.tables().rows("moment")

    def test_commands_at_a_time(self):
        done = kpytrace_command("memory", self.path, "--at", "150ms", "--by", "function")
        self.assertIn("0.15 s after the begin: ", done.stdout)
        done = kpytrace_command("memory", self.path, "--at", "temporary", "--by", "function")
        self.assertRegex(done.stdout, r"\ATemporary, freed before their thread allocated 2 more: .*\n.*\n.* churn ")
        for words, text in ((("--at", "noon"), "--at must be one of peak, end, all, temporary, or a time such as 12.5s"),
                            (("--at", "12"), "--at must be one of"), (("--temporary-within", "x"), "--temporary-within must be"),
                            (("--temporary-within", "1001"), "must be between 0 and 1000")):
            done = kpytrace_command("memory", self.path, *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(text, done.stderr)
        self.m.export(self.folder / "a.tables.json")
        done = kpytrace_command("memory", self.folder / "a.tables.json", "--at", "1s")
        self.assertEqual(done.returncode, 2)
        self.assertIn("need the recording, FILE.kpt", done.stderr)

    def test_temporary_allocations(self):
        tables = self.m.tables()
        self.assertEqual(tables.temporary_within, 2)
        found = {row.name.rpartition(".")[2]: row.blocks for row in tables.rows("temporary", "function")}
        self.assertGreater(found["churn"], 2500)
        self.assertLess(found.get("make", 0) + found.get("<listcomp>", 0), 300, "they live long; lists that grow do not")
        fewer = self.m.tables(temporary_within=1).total("temporary")[1]
        self.assertLess(fewer, tables.total("temporary")[1])
        self.assertGreater(self.m.tables(temporary_within=1000).total("temporary")[1], tables.total("temporary")[1])
        with kpytrace.memory(sample_bytes=1000) as sampled:
            churn()
        with self.assertRaisesRegex(ValueError, "known only where every block is recorded"):
            sampled.tables().rows("temporary")
        with kpytrace.memory(max_entries=1000) as last:
            churn()
        self.assertGreater(last.tables().total("temporary")[1], 300)
        with self.assertRaisesRegex(ValueError, "record without max_entries"):
            last.tables(at=0)

    def test_bytes_over_time(self):
        tables = self.m.tables()
        series = tables.series()
        self.assertLessEqual(len(series), 1024)
        self.assertEqual(max(most for _, _, most in series), tables.total("peak")[0])
        self.assertEqual([at for at, _, _ in series], sorted(at for at, _, _ in series))
        for ns, blocks in self.times:
            level = next(last for at, last, _ in series if at > ns - tables.begin_time_ns)
            self.assertAlmostEqual(level, blocks * sys.getsizeof(bytes(1000)), delta=150_000)
        objects = tables.series("python object")
        self.assertLess(objects[-1][1], series[-1][1])
        self.assertEqual(tables.series("numpy"), [])
        done = kpytrace_command("memory", self.path, "--series", self.folder / "s.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        head, *lines = (self.folder / "s.csv").read_text().splitlines()
        self.assertEqual(head, "seconds,bytes,most_bytes")
        self.assertEqual([tuple(map(int, line.split(",")[1:])) for line in lines], [point[1:] for point in series])

    def test_a_page(self):
        self.m.export(self.folder / "a.html")
        done = kpytrace_command("report", self.path, "-o", self.folder / "b.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = kpytrace_command("convert", self.path, self.folder / "c.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        made = [page_tables(self.folder / name) for name in ("a.html", "b.html", "c.html")]
        self.assertEqual(made[0], made[1])
        self.assertEqual(made[0], made[2])
        self.assertGreater(len(made[0]["moments"]), 10)
        self.assertLessEqual(len(made[0]["moments"]), 256)
        with self.assertRaisesRegex(ValueError, "a page is made from a recording in a file"):
            kpytrace.memory(max_entries=10).export(self.folder / "d.html")
        with self.assertRaisesRegex(ValueError, "give one of the other suffixes"):
            kpytrace.memory(self.folder / "d.html", max_entries=10)

    def test_a_recording_writes_a_page(self):
        done = kpytrace_command("run", "--memory", self.folder / "run.html", "-c", "kept = bytes(100_000)")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        with kpytrace.memory(self.folder / "with.html"):
            kept = bytes(100_000)
        for name in ("run.html", "with.html"):
            tables = page_tables(self.folder / name)
            self.assertGreaterEqual(max(tables["series"]["most"][0]), 100_000)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["memory.kpt", "run.html", "with.html"])
        del kept

    def test_what_is_damaged(self):
        good = json.loads(self.m.tables(at=.1).text)
        path = self.folder / "x.tables.json"
        for name, values in (("temporary", ([0], [[0, 1]], [[len(good["rows"]), 1, 1]], [[0, -1, 1]], [[0, "1", 1]])),
                             ("moments", ([[0]], [[0, [0, 1]]], [["0", []]], [[0, [-1, 1, 1]]])),
                             ("series", ({}, {"step_ns": "1"}, {"step_ns": 1, "last": [], "most": []},
                                         {"step_ns": 1, "last": [[1]], "most": [[1]]})), ("begin_time_ns", (None,))):
            for value in values:
                with self.subTest(name, value=value):
                    path.write_text(json.dumps({**good, name: value}))
                    with self.assertRaisesRegex(ValueError, "x.tables.json is damaged"):
                        Tables(path).check()
        for name in ("temporary", "moments", "series", "begin_time_ns", "until_time_ns"):
            del good[name]
        path.write_text(json.dumps(good))  # as earlier versions wrote it
        self.assertGreater(Tables(path).check().total("all")[1], 2300)
        for use in (lambda: Tables(path).rows("temporary"), lambda: Tables(path).series()):
            self.assertRaises(ValueError, use)


if __name__ == "__main__":
    unittest.main()
