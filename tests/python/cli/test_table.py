"""kpytrace table: 256 generated ranks as Parquet, and the queries of docs/ranks.md, run with DuckDB. Needs the
environment that `make readers` makes in build/tables."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from rank_files import make_rank
from support import Case, run_python

ROOT = pathlib.Path(__file__).resolve().parents[3]
TABLES = ROOT / "build" / "tables" / "bin" / "python"
OPERATORS = ROOT / "tests" / "python" / "files" / "golden" / "operators.kpt"
STEPS = 4
PROGRAM = """
import kpytrace, sys, time
def load():
    time.sleep(float(sys.argv[1]))
    for _ in range(20000): pass  # time of its own, by which it is among the first
def train():
    load()
    time.sleep(0.002)
for i in range(4):
    with kpytrace.span("step", i=i):
        train()
train()
"""
QUERY = """
import duckdb, json, sys
connection = duckdb.connect()
connection.execute(f"CREATE VIEW calls AS SELECT * FROM '{sys.argv[1]}'")
print(json.dumps([connection.execute(query).fetchall() for query in json.load(sys.stdin)]))
"""


@unittest.skipUnless(TABLES.exists(), "there is no pyarrow and no DuckDB: `make readers` fetches them")
class Tables(Case):
    def tables(self, *words, status=0, **options):
        """Runs `kpytrace table` with the Python that has pyarrow."""
        reply = subprocess.run([TABLES, *map(str, words)], text=True, timeout=200, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, cwd=self.folder, **options)
        self.assertEqual(reply.returncode, status, reply.stderr)
        return reply

    def ask(self, view, *queries):
        return json.loads(self.tables("-c", QUERY, view, input=json.dumps(queries)).stdout)

    def record(self, name, seconds):
        script = self.folder / "prog.py"
        script.write_text(PROGRAM)
        reply = run_python("-m", "kpytrace", "run", "-q", "-o", str(self.folder / name), str(script), str(seconds))
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return self.folder / name

    def ranks(self, count, slow):
        fast, late = self.record("fast.kpt", 0.001), self.record("late.kpt", 0.08)
        for rank in range(count):
            make_rank(late if rank == slow else fast, self.folder / f"r{rank}.kpt", rank, count)
        return [self.folder / f"r{rank}.kpt" for rank in range(count)]

    def test_256_ranks(self):
        paths = self.ranks(256, slow=77)
        reply = self.tables("-m", "kpytrace", "table", *paths, "-o", "calls.parquet")
        self.assertRegex(reply.stderr, r"^kpytrace: [\d,]+ rows of 256 files: calls\.parquet$")
        documented = (ROOT / "docs" / "ranks.md").read_text(encoding="utf-8")
        queries = re.findall(r"(?s)```sql\n(.*?)```", documented)
        self.assertEqual(len(queries), 3)
        slowest, functions, behind, columns, calls, hosts = self.ask(
            "calls.parquet", *queries, "SELECT column_name FROM (DESCRIBE calls)",
            "SELECT step, SUM(calls), COUNT(DISTINCT rank) FROM calls WHERE function = 'load' GROUP BY step ORDER BY step",
            "SELECT COUNT(DISTINCT host), COUNT(DISTINCT pid), MAX(local_rank), MIN(world_size) FROM calls")
        self.assertEqual([row[:2] for row in slowest], [[step, 77] for step in range(STEPS)])
        self.assertTrue(all(row[3] > 50 for row in slowest), slowest)
        worst = {row[0]: row for row in functions}
        self.assertEqual(worst["load"][2], 256 * (STEPS + 1))
        self.assertIn(77, [row[4] for row in functions])
        self.assertEqual({row[1] for row in behind if row[0] == "load" or "sleep" in row[0]}, {77}, behind)
        self.assertEqual(sorted(map(tuple, calls), key=str),
                         sorted([(step, 256, 256) for step in range(STEPS)] + [(None, 256, 256)], key=str))
        self.assertEqual(hosts, [[32, 256, 7, 256]])
        names = [row[0] for row in columns]
        for name in names:
            self.assertIn(f"`{name}`", documented)

    def test_a_folder_and_other_steps(self):
        paths = self.ranks(3, slow=1)
        self.tables("-m", "kpytrace", "table", "-q", *paths, "-o", "calls/", "--step", "st*")
        found = self.ask("calls/*.parquet", "SELECT rank, COUNT(DISTINCT step) FROM calls GROUP BY rank ORDER BY rank")
        self.assertEqual(found, [[[0, STEPS], [1, STEPS], [2, STEPS]]])
        reply = self.tables("-m", "kpytrace", "table", *paths, "-o", "none.parquet", "--step", "lunch")
        self.assertEqual(reply.stderr.count("has no span or annotation 'lunch': its rows have no step"), len(paths))
        self.assertEqual(self.ask("none.parquet", "SELECT COUNT(step), SUM(calls) > 0 FROM calls"), [[[0, True]]])

    def test_files_of_the_same_name(self):
        fast = self.record("fast.kpt", 0.001)
        for rank, name in enumerate(("a/r", "b/r", "c/r-2", "d/r")):
            (self.folder / name).parent.mkdir()
            make_rank(fast, self.folder / f"{name}.kpt", rank, 4)
        self.tables("-m", "kpytrace", "table", "-q", *self.folder.glob("*/*.kpt"), "-o", "calls/")
        self.assertEqual(sorted(path.name for path in (self.folder / "calls").iterdir()),
                         ["r-2-2.parquet", "r-2.parquet", "r-3.parquet", "r.parquet"])
        ranks, first = self.ask("calls/*.parquet", "SELECT DISTINCT rank FROM calls ORDER BY rank",
                                "SELECT DISTINCT rank FROM 'calls/r-2.parquet'")
        self.assertEqual((ranks, first), ([[0], [1], [2], [3]], [[1]]))

    def test_files_that_are_not_whole(self):
        content = self.record("whole.kpt", 0.001).read_bytes()
        cut, damaged = self.folder / "cut.kpt", self.folder / "damaged.kpt"
        cut.write_bytes(content[:-500])
        middle = len(content) // 2
        damaged.write_bytes(content[:middle] + bytes(64) + content[middle + 64:])
        for words in ([], ["--calls"]):
            table = ["-m", "kpytrace", "table", *words, "-o", "x.parquet"]
            lines = self.tables(*table, cut, "whole.kpt").stderr.splitlines()
            self.assertEqual([line for line in lines[:-1] if "is cut off" in line], lines[:-1])
            self.assertEqual(len(lines), 2)
            (self.folder / "x.parquet").unlink()
            self.assertIn("damaged.kpt: it is damaged at byte", self.tables(*table, damaged, status=1).stderr)
            self.assertFalse((self.folder / "x.parquet").exists())
            self.assertIn("damaged.kpt is damaged", self.tables(*table, "--recover", damaged).stderr)
            self.assertTrue((self.folder / "x.parquet").exists())
            self.assertEqual(self.tables(*table, "--recover", "-q", damaged).stderr, "")

    def test_operators(self):
        """By thread, step and operator, and by the function that called it. Steps are annotations of torch's."""
        table = ["-m", "kpytrace", "table", "-q", OPERATORS]
        self.tables(*table, "--ops", "-o", "ops.parquet")
        self.tables(*table, "--ops", "--callers", "--step", "step *", "-o", "callers.parquet")
        documented = (ROOT / "docs" / "ranks.md").read_text(encoding="utf-8")
        found, = self.ask("ops.parquet", "SELECT name, kind, SUM(calls)::INT, SUM(own_ns) > 0, SUM(gpu_total_ns)::INT "
                          "FROM calls GROUP BY name, kind ORDER BY name")
        rows = {row[0]: row[1:] for row in found}
        self.assertEqual(rows["MulBackward0"], ["operator", 3, True, 0])
        self.assertEqual(rows["step 1"], ["annotation", 1, True, 0])
        callers, steps, names = self.ask(
            "callers.parquet", "SELECT step, caller, is_backward, thread, calls FROM calls WHERE name IN "
            "('aten::mul', 'MulBackward0') ORDER BY step, is_backward",
            "SELECT DISTINCT step, step_ns > 0 FROM calls WHERE name LIKE 'step %' ORDER BY step",
            "SELECT column_name FROM (DESCRIBE calls)")
        self.assertEqual(steps, [[0, True], [1, True], [2, True]])
        self.assertEqual([row[:3] for row in callers if not row[2]],
                         [[step, "/program.py(3): forward", False] for step in range(3)])
        backward = [row for row in callers if row[2]]
        self.assertEqual((sum(row[4] for row in backward), {row[1] for row in backward}), (6, {"/program.py(3): forward"}))
        self.assertEqual({row[3] for row in callers}, {"MainThread"})
        for name, in names:
            self.assertIn(f"`{name}`", documented)

    def test_operators_among_the_calls(self):
        """Each operator and annotation is a row of its kind. The own time of functions is without operators."""
        table = ["-m", "kpytrace", "table", "-q", OPERATORS]
        self.tables(*table, "--calls", "-o", "calls.parquet")
        self.tables(*table, "-o", "sums.parquet")
        kinds, ranges, inside = self.ask(
            "calls.parquet", "SELECT kind, function, COUNT(*) FROM calls WHERE function IN ('forward', 'aten::mul', "
            "'step 1') GROUP BY ALL ORDER BY ALL",
            "SELECT function, id, duration_ns > 0, parent_id > 0 FROM calls WHERE kind = 'annotation' AND function LIKE "
            "'step %' ORDER BY function",
            "SELECT (SELECT SUM(duration_ns) FROM calls c WHERE c.parent_id = p.id AND kind != 'annotation')::BIGINT, "
            "duration_ns FROM calls p WHERE function = 'forward' ORDER BY start_ns")
        self.assertEqual(kinds, [["annotation", "step 1", 1], ["function", "forward", 3], ["operator", "aten::mul", 6]])
        self.assertEqual(ranges, [[f"step {i}", 0, True, True] for i in range(3)])
        own, all_ = self.ask("sums.parquet", "SELECT kind, SUM(calls)::INT, SUM(own_ns)::BIGINT FROM calls WHERE "
                             "function = 'forward' GROUP BY kind", "SELECT DISTINCT kind FROM calls ORDER BY kind")
        self.assertEqual(own, [["function", 3, sum(whole - part for part, whole in inside)]])
        self.assertEqual(all_, [["function"], ["operator"]])

    def test_mistakes(self):
        for words, text in ((["--ops", "--calls"], "choose one"), (["--callers"], "--callers needs --ops")):
            reply = self.tables("-m", "kpytrace", "table", OPERATORS, "-o", "x.parquet", *words, status=2)
            self.assertIn(text, reply.stderr)

    def test_every_call(self):
        path = self.record("a.kpt", 0.001)
        self.tables("-m", "kpytrace", "table", "-q", path, "-o", "sums.parquet")
        self.tables("-m", "kpytrace", "table", "-q", "--calls", path, "-o", "calls.parquet")
        wanted, = self.ask("sums.parquet", "SELECT function, file, line, thread, step, calls, total_ns FROM calls "
                           "WHERE file LIKE '%prog.py' ORDER BY ALL")
        found, parents, rows = self.ask(
            "calls.parquet", "SELECT function, file, line, thread, step, COUNT(*), SUM(duration_ns)::BIGINT FROM calls "
            "WHERE file LIKE '%prog.py' GROUP BY ALL ORDER BY ALL",
            "SELECT p.function, COUNT(*) FROM calls c JOIN calls p ON c.parent_id = p.id WHERE c.function = 'load' "
            "AND c.depth = p.depth + 1 AND c.start_ns >= p.start_ns GROUP BY ALL", "SELECT COUNT(*) FROM calls")
        self.assertEqual(found, wanted)
        self.assertEqual(parents, [["train", STEPS + 1]])
        self.assertGreater(rows[0][0], 20)


class Missing(Case):
    def test_without_pyarrow(self):
        reply = run_python("-m", "kpytrace", "run", "-q", "-o", "a.kpt", "-c", "pass", cwd=self.folder)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        (self.folder / "pyarrow.py").write_text("raise ImportError('none here')")
        reply = run_python("-m", "kpytrace", "table", "a.kpt", "-o", "a.parquet", cwd=self.folder)
        self.assertEqual(reply.returncode, 1)
        self.assertIn("pip install pyarrow", reply.stderr)
        self.assertEqual(run_python("-m", "kpytrace", "table", cwd=self.folder).returncode, 2)


if __name__ == "__main__":
    unittest.main()
