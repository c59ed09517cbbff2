"""kpytrace diff finds functions that became slower, and ignores noise. Files of this and other commands appear when
they are complete; if one can't be written, the older file stays."""

import contextlib
import io
import json
import os
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import Case, limit_file_size, run_python

from kpytrace._cli import diff, diff_page
from kpytrace._files import diff_statistics as _compare
from kpytrace._files.atomic_file import whole, write_text

PROGRAM = """
import sys, time
def steady(): time.sleep(0.001)
def changed(seconds): time.sleep(0.0); return wait(seconds)
def wait(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end: pass
def before_only(): pass
def after_only(): pass
slow = sys.argv[1] == "after"
for i in range(5):
    steady()
    changed(0.1 if slow else 0.02)  # a wait ends late by what the machine is busy with: a few ms
(after_only if slow else before_only)()
"""

# A file of more than so many bytes can't be written.
LIMITED = limit_file_size(100) + "\n" \
          "import sys; from kpytrace._cli.commands import main; sys.exit(main(sys.argv[1:]))"
TABLES = {"schema": "kpytrace.memory.1", "sample_bytes": 0, "entries": 1, "entries_dropped": 0,
          "frees_of_earlier_blocks": 0, "peak_time_ns": 1, "end_time_ns": 2, "devices": ["python raw"],
          "symbols": [["f" * 200, "a.py", 3]], "nodes": [[0, 0]], "rows": [[0, 1, 8, 1, 8, 1, 8, 1]]}


def row(name, line, calls, own, total):
    return (f"a.py({line}): {name}".encode(), name.encode(), b"a.py", line, b"", calls, own, total, 0, 0)


class Diff(Case):
    def record(self, kind, count):
        script = self.folder / "prog.py"
        script.write_text(PROGRAM)
        paths = []
        for i in range(count):
            paths.append(str(self.folder / f"{kind}{i}.kpt"))
            reply = run_python("-m", "kpytrace", "run", "-q", "--no-c-calls", "-o", paths[-1], str(script), kind)
            self.assertEqual(reply.returncode, 0, reply.stderr)
        return paths

    def diff(self, *words, status=0):
        reply = run_python("-m", "kpytrace", "diff", *words, cwd=self.folder)
        self.assertEqual(reply.returncode, status, reply.stderr)
        return reply

    def test_two_files(self):
        paths = self.record("before", 1) + self.record("after", 1)
        lines = self.diff(*paths).stdout.splitlines()
        self.assertTrue(lines[2].endswith("prog.py: wait"), lines[:5])
        text = self.diff("-n", "0", *paths).stdout
        self.assertRegex(text, r"gone .*prog\.py: before_only")
        self.assertRegex(text, r"new .*prog\.py: after_only")
        self.diff("--fail-over", "10%", *paths, status=1)
        self.diff("--fail-over", "10%", paths[0], paths[0])
        same = json.loads(self.diff("--json", paths[0], paths[0]).stdout)
        self.assertTrue(same)
        self.assertFalse(any(change["difference"] for change in same))

    def test_several_runs(self):
        before, after = self.record("before", 4), self.record("after", 4)
        sides = ["--before", *before, "--after", *after]
        changes = {change["name"].rpartition(": ")[2]: change for change in json.loads(self.diff("--json", *sides).stdout)
                   if "prog.py" in change["name"]}
        wait = changes["wait"]
        self.assertGreater(wait["difference"], 5 * 0.07 * 1e9)
        self.assertLess(wait["p"], 0.05)
        self.assertIn("± (95 %)", self.diff(*sides).stdout)
        page = self.folder / "page.html"
        self.diff("--html", str(page), *sides)
        text = page.read_text(encoding="utf-8")
        self.assertIn("prog.py: wait", text)
        self.assertNotRegex(text, "https?:")  # it needs nothing from elsewhere

    def test_a_file_whose_name_looks_like_a_place(self):
        """Its functions are matched after lines have moved."""
        rows = [[(b"a(3): b.py(%d): f" % line, b"f", b"a(3): b.py", line, b"", 1, 5, 5, 0, 5)] for line in (7, 9)]
        change, = _compare.compare([_compare.run_of(rows[0])], [_compare.run_of(rows[1])])
        self.assertEqual((change.name, change.calls_before, change.calls_after), ("a(3): b.py: f", 1, 1))

    def test_mistakes(self):
        for words, text in (([], "; see --help"), (["a.kpt"], "; see --help"),
                            (["--before", "a.kpt"], "; see --help"),
                            (["--before", "a", "--json", "--after", "b"], "put options before"),
                            (["--fail-over", "much", "a", "b"], "must be a percentage")):
            self.assertIn(text, self.diff(*words, status=2).stderr)
        self.diff("none.kpt", "none.kpt", status=1)


def operator(name, calls, own, gpu=0, is_range=0):
    return (name.encode(), is_range, 0, b"", calls, own, own, own, gpu, gpu)


class Operators(Case):
    GOLDEN = str(pathlib.Path(__file__).parents[1] / "files" / "golden" / "operators.kpt")

    def diff(self, *words, status=0):
        reply = run_python("-m", "kpytrace", "diff", "-q", "--ops", *map(str, words), cwd=self.folder)
        self.assertEqual(reply.returncode, status, reply.stderr)
        return reply

    def test_files(self):
        same = json.loads(self.diff("--json", self.GOLDEN, self.GOLDEN).stdout)
        rows = {change["name"]: change for change in same}
        self.assertEqual(rows["aten::mul"]["calls_after"], 6)
        self.assertEqual(rows["annotation step 1"]["calls_before"], 1)
        self.assertGreater(rows["aten::mul"]["own_before"], 0)
        self.assertEqual(rows["aten::mul"]["gpu_own_after"], 0)
        self.assertFalse([name for name in rows if "forward" in name or "main" in name], "functions are not compared")
        self.assertFalse(any(change["difference"] for change in same))
        text = self.diff(self.GOLDEN, self.GOLDEN).stdout
        self.assertRegex(text.splitlines()[1], "calls before +after +operator$")
        self.diff("--fail-over", "1%", self.GOLDEN, self.GOLDEN)

    def test_a_file_without_operators(self):
        calls = pathlib.Path(self.GOLDEN).with_name("calls.kpt")
        self.assertRegex(self.diff("-n", "0", self.GOLDEN, calls).stdout, r"gone .* aten::mul\n")
        reply = self.diff("--fail-over", "1%", calls, self.GOLDEN, status=1)
        self.assertEqual(reply.stderr, "kpytrace: the operators became slower by more than 1%\n")
        reply = run_python("-m", "kpytrace", "diff", "--ops", str(calls), str(calls))
        self.assertIn("the recordings have no operators: record with --torch", reply.stderr)

    def test_a_page(self):
        self.diff("--html", "page.html", self.GOLDEN, self.GOLDEN)
        text = (self.folder / "page.html").read_text(encoding="utf-8")
        self.assertIn("<td>aten::mul\n", text)
        self.assertIn("<th>operator<", text)

    def test_steps_are_added_up(self):
        run = _compare.run_of_operators([operator(f"ProfilerStep#{i}", 1, 10, 5, 1) for i in range(3)] +
                                        [operator("op#3", 1, 1)])
        self.assertEqual(run, {("annotation ProfilerStep#*", 0): (3, 30, 30, 15, 15), ("op#3", 0): (1, 1, 1, 0, 0)})

    def test_gpu_times(self):
        runs = [[_compare.run_of_operators([operator("aten::mm", 4, 100, gpu + i)]) for i in range(3)]
                for gpu in (1_000_000, 3_000_000)]
        changes = _compare.compare(*runs, _compare.OperatorChange)
        change, = (change.as_dict() for change in changes)
        self.assertEqual((change["gpu_own_before"], change["gpu_total_after"]), (1_000_001, 3_000_001))
        self.assertEqual((change["p"], change["is_sure"]), (1.0, False))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            diff._print(changes, None, (3, 3), "operator")
        self.assertRegex(out.getvalue(), r"GPU before +after")
        self.assertRegex(out.getvalue(), r" 1\.000 +3\.000 .*aten::mm")
        self.assertIn("<th>GPU after", diff_page.page(changes, ["a"], ["b"], "operator", True))


class Statistics(unittest.TestCase):
    def test_students_table(self):
        """Values as books print them."""
        for freedom, t in ((1, 12.706), (4, 2.776), (10, 2.228), (30, 2.042), (120, 1.980)):
            self.assertAlmostEqual(_compare.t_bound(freedom), t, places=3)
            self.assertAlmostEqual(_compare.t_p_value(t, freedom), 0.05, places=4)
        self.assertEqual(_compare.t_p_value(0.0, 5), 1.0)

    def test_welch(self):
        """Both variances are 2.5, so the error is 1, t is 2, and there are 8 degrees of freedom."""
        margin, p = _compare.welch([1, 2, 3, 4, 5], [3, 4, 5, 6, 7])
        self.assertAlmostEqual(margin, 2.306, places=3)
        self.assertAlmostEqual(p, 0.0805, places=4)
        self.assertIsNone(_compare.welch([1], [1, 2]))
        self.assertEqual(_compare.welch([1, 1], [1, 1]), (0.0, 1.0))
        self.assertEqual(_compare.welch([1, 1], [2, 2]), (0.0, 2 / 6))
        self.assertEqual(_compare.welch([1] * 5, [2] * 5), (0.0, 2 / 252))

    def test_what_agrees_to_the_tick_of_a_coarse_clock_is_not_sure(self):
        """Short functions of the same program, by a clock of 40 ns: their runs have no variance by chance."""
        chance = random.Random(1)
        wrong = 0
        for _ in range(20):
            runs = [{(f"a.py: f{i}", 0): (1, 40 * chance.randint(2, 4), 0) for i in range(100)} for _ in range(4)]
            wrong += any(change.is_sure for change in _compare.compare(runs[:2], runs[2:]))
        self.assertEqual(wrong, 0)

    def test_noise_is_not_sure(self):
        dice = random.Random(7)
        runs = [_compare.run_of(row(f"f{i}", i, 10, int(dice.gauss(1e6, 5e4)), 0) for i in range(300))
                for _ in range(10)]
        changes = _compare.compare(runs[:5], runs[5:])
        self.assertEqual([change.name for change in changes if change.is_sure], [])
        self.assertTrue(any(change.p < 0.05 for change in changes))  # which is why

    def test_one_among_noise_is_found(self):
        dice = random.Random(7)
        runs = [_compare.run_of(row(f"f{i}", i, 10, int(dice.gauss(1e6, 5e4) * (2 if i == 17 and late else 1)), 0)
                                for i in range(300)) for late in [False] * 5 + [True] * 5]
        changes = _compare.compare(runs[:5], runs[5:])
        self.assertEqual([change.name for change in changes if change.is_sure], ["a.py: f17"])
        self.assertEqual(changes[0].name, "a.py: f17")

    def test_functions_that_moved(self):
        before = _compare.run_of([row("f", 3, 1, 10, 10), row("f", 9, 1, 20, 20), row("g", 12, 1, 5, 5)])
        after = _compare.run_of([row("f", 4, 1, 10, 10), row("f", 11, 1, 20, 20), row("g", 20, 1, 5, 5)])
        changes = _compare.compare([before], [after])
        self.assertEqual({change.name: change.difference for change in changes}, {"a.py: f": 0, "a.py: f #2": 0, "a.py: g": 0})


class Whole(Case):
    def test_it_takes_the_place_at_the_end(self):
        write_text(self.path, "old")
        with whole(self.path) as name:
            with open(name, "w", encoding="utf-8") as file:
                file.write("new")
            self.assertEqual(self.path.read_text(), "old")
        self.assertEqual(self.path.read_text(), "new")
        self.assertEqual(list(self.folder.iterdir()), [self.path])

    def test_a_failure_changes_nothing(self):
        write_text(self.path, "old")
        for text in ("", "half"):
            with self.assertRaises(KeyError), whole(self.path) as name:
                if text:
                    write_text(name, text)
                raise KeyError
        self.assertEqual(self.path.read_text(), "old")
        self.assertEqual(list(self.folder.iterdir()), [self.path])

    def test_links_and_devices_are_written_themselves(self):
        link = self.folder / "link"
        link.symlink_to(self.path)
        write_text(link, "text")
        self.assertEqual((link.is_symlink(), self.path.read_text()), (True, "text"))
        with whole("/dev/null") as name:
            self.assertEqual(name, "/dev/null")


class Written(Case):
    def setUp(self):
        super().setUp()
        self.kpt = os.fsencode(self.folder / "a") + b"\xff.kpt"
        reply = run_python("-m", "kpytrace", "run", "-q", "-o", self.kpt, "-c", "pass")
        self.assertEqual(reply.returncode, 0, reply.stderr)
        (self.folder / "m.tables.json").write_text(json.dumps(TABLES))

    def test_pages_and_stacks(self):
        target = self.folder / "out"
        for words in (["diff", "--html", "out", self.kpt, self.kpt], ["memory", "--folded", "out", "m.tables.json"]):
            with self.subTest(words[0]):
                target.write_text("old")
                reply = run_python("-c", LIMITED, *words, cwd=self.folder)
                self.assertEqual((reply.returncode, len(reply.stderr.splitlines())), (1, 1), reply.stderr)
                self.assertEqual((target.read_text(), len(list(self.folder.iterdir()))), ("old", 3))
                reply = run_python("-m", "kpytrace", *words, cwd=self.folder)
                self.assertEqual(reply.returncode, 0, reply.stderr)
                self.assertGreater(len(target.read_text(encoding="utf-8")), 200)
        words[2] = "/dev/stdout"
        self.assertEqual(run_python("-m", "kpytrace", *words, cwd=self.folder).stdout, target.read_text())


if __name__ == "__main__":
    unittest.main()
