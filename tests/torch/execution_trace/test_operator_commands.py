"""torch's operators in the commands that read several files: merge, diff and table, of two ranks of a program."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
import support

ROOT = pathlib.Path(__file__).resolve().parents[3]
READERS, TABLES = (ROOT / "build" / name / "bin" / "python" for name in ("readers", "tables"))
PERFETTO = ROOT / "tests" / "python" / "support" / "perfetto_calls.py"
# The second rank has more layers, and another function.
PROGRAM = """
import os
import torch
rank = int(os.environ["RANK"])
model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(rank + 1)))
def forward_of_0():
    return model(torch.ones(2, 4)).sum()
def forward_of_1():
    return model(torch.ones(2, 4)).sum()
for i in range(7, 10):
    with torch.profiler.record_function(f"ProfilerStep#{i}"):
        (forward_of_0, forward_of_1)[rank]().backward()
"""
QUERY = """
import duckdb, json, sys
print(json.dumps([duckdb.sql(query).fetchall() for query in json.load(sys.stdin)]))
"""


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        with open(cls.path("program.py"), "w") as file:
            file.write(PROGRAM)
        for rank in (0, 1):
            reply = support.python("-m", "kpytrace", "run", "-q", "--include", cls.path(""), "--torch", "-o",
                                   cls.path("out.kpt"), cls.path("program.py"), RANK=str(rank))
            assert reply.returncode == 0, reply.stderr
        cls.ranks = [cls.path(f"out.rank{rank}.kpt") for rank in (0, 1)]

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def command(self, *words):
        reply = support.python("-m", "kpytrace", *words)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return reply.stdout

    def merged(self, name):
        self.command("merge", "-q", *self.ranks, "-o", self.path(name))
        return self.path(name)

    def chrome_arrows(self, path):
        """Returns the process and the names of both operators of each arrow."""
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        at = {(e["pid"], e["tid"], e["ts"]): e for e in events if e["ph"] == "X" and e["cat"] == "cpu_op"}
        arrows = collections.defaultdict(dict)
        for e in events:
            if e.get("cat") == "fwdbwd":
                arrows[e["id"]][e["ph"]] = e["pid"], at[e["pid"], e["tid"], e["ts"]]
        return events, arrows.values()

    def test_ranks_are_merged_with_their_own_numbers(self):
        events, arrows = self.chrome_arrows(self.merged("all.json"))
        pids = {e["pid"]: e["args"]["labels"] for e in events if e["name"] == "process_labels"}
        self.assertEqual(len(pids), 2)
        counts = collections.Counter()
        for ends in arrows:
            (pid, forward), (other, node) = ends["s"], ends["f"]
            self.assertEqual(pid, other)
            self.assertEqual(forward["args"]["Sequence number"], node["args"]["Sequence number"])
            counts[pid, forward["name"], node["name"]] += 1
        wanted = {3, 6}  # of one layer and of two, in three steps
        self.assertEqual({counts[pid, "aten::addmm", "AddmmBackward0"] for pid in pids}, wanted)
        lines = collections.defaultdict(set)
        for e in events:
            if e["ph"] == "X" and "forward at" in e["args"]:
                lines[e["pid"]].add(e["args"]["forward at"].rpartition(": ")[2])
        self.assertEqual(list(lines.values()), [{"forward_of_0"}, {"forward_of_1"}])
        steps = collections.Counter(e["pid"] for e in events if e["name"].startswith("ProfilerStep#"))
        self.assertEqual(steps, dict.fromkeys(pids, 3))

    @unittest.skipUnless(READERS.exists(), "there are no readers")
    def test_flows_of_perfetto_are_the_arrows_of_chrome(self):
        _, arrows = self.chrome_arrows(self.merged("all.json"))
        wanted = collections.Counter((ends["s"][1]["name"], ends["f"][1]["name"]) for ends in arrows)
        reply = subprocess.run([READERS, PERFETTO, self.merged("all.pftrace")], stdout=subprocess.PIPE, check=True)
        slices = json.loads(reply.stdout)["slices"]
        flows = collections.defaultdict(list)
        for _, name, numbers, notes, *_ in slices:
            for number in numbers:
                flows[number].append(("Fwd thread id" in notes, name))
        self.assertEqual(collections.Counter(tuple(name for _, name in sorted(ends)) for ends in flows.values()), wanted)
        for kind, name, _, notes, *_ in slices:
            self.assertEqual(kind == "user_annotation", name.startswith("ProfilerStep#"), name)
            if name.endswith("AddmmBackward0"):  # the node, and the engine's operator around it
                self.assertRegex(notes["forward at"], r"program.py\(\d+\): forward_of_[01]$")

    def test_what_changed(self):
        rows = {row["name"]: row for row in json.loads(self.command("diff", "-q", "--ops", "--json", *self.ranks))}
        for name, calls in (("aten::addmm", (3, 6)), ("AddmmBackward0", (3, 6)), ("annotation ProfilerStep#*", (3, 3))):
            self.assertEqual((rows[name]["calls_before"], rows[name]["calls_after"]), calls, name)
        self.assertGreater(rows["aten::addmm"]["total_after"], 0)

    @unittest.skipUnless(TABLES.exists(), "there is no pyarrow and no DuckDB")
    def test_tables(self):
        def ask(query, *options):
            path = self.path("x.parquet")
            subprocess.run([TABLES, "-m", "kpytrace", "table", "-q", *options, *self.ranks, "-o", path], check=True)
            reply = subprocess.run([TABLES, "-c", QUERY], input=json.dumps([query.format(path)]), text=True, check=True,
                                   stdout=subprocess.PIPE)
            return json.loads(reply.stdout)[0]
        self.assertEqual(ask("SELECT rank, step, SUM(calls)::INT FROM '{}' WHERE name = 'aten::addmm' GROUP BY ALL "
                             "ORDER BY ALL", "--ops"),
                         [[rank, step, rank + 1] for rank in (0, 1) for step in (7, 8, 9)])
        found = ask("SELECT DISTINCT is_backward, rank, caller FROM '{}' WHERE name IN ('aten::addmm', "
                    "'AddmmBackward0') ORDER BY ALL", "--ops", "--callers")
        self.assertEqual([(is_backward, caller.rpartition(": ")[2]) for is_backward, _, caller in found],
                         [(is_backward, f"forward_of_{rank}") for is_backward in (False, True) for rank in (0, 1)])
        self.assertEqual(ask("SELECT rank, kind, COUNT(*) FROM '{}' WHERE function LIKE 'ProfilerStep%' OR function LIKE "
                             "'forward_of_%' GROUP BY ALL ORDER BY ALL", "--calls"),
                         [[rank, kind, 3] for rank in (0, 1) for kind in ("annotation", "function")])


if __name__ == "__main__":
    unittest.main()
