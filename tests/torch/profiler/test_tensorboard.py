"""TensorBoard's plugin for PyTorch reads what tensorboard_trace_handler wrote: the same operators, modules and
steps with torch's own tracer and with ours. Only in `make test-all`, since it is fetched for it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import fetched
import support

CYCLES = str(pathlib.Path(__file__).with_name("cycles.py"))
KINDS = ("stock", "all", "full", "fast", "native")
NEEDS = ("torch-tb-profiler==0.4.3", "tensorboard", "setuptools")

# Each cycle as the views have it. Loading takes processes, which import this.
LOAD = """
import json, sys

def modules(stats):
    return [[each.name, each.id, each.occurences, each.operators, modules(each.children)]
            for each in stats or ()]

def names(node):
    yield node["name"]
    for child in node["children"]:
        yield from names(child)

if __name__ == "__main__":
    from torch_tb_profiler import io
    from torch_tb_profiler.profiler import RunLoader
    run = RunLoader("run", sys.argv[1], io.Cache()).load()
    with open(sys.argv[2], "w") as file:
        json.dump([{"views": [view.display_name for view in profile.views],
                    "operators": sorted([row["name"], row["calls"]]
                                        for row in profile.operation_table_by_name["data"]),
                    "steps": [row[0] for row in profile.overview["steps"]["rows"]],
                    "modules": modules(profile.module_stats),
                    "tree": sorted(name for name in names(profile.get_operator_tree())
                                   if "aten::" in name or "nn.Module" in name)}
                   for _, profile in sorted(run.profiles.items())], file)
"""


class TensorBoard(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        python = fetched.python_with("tensorboard", "TensorBoard", *NEEDS)
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)

        def to(*names):
            return os.path.join(temporary.name, *names)
        with open(to("load.py"), "w") as file:
            file.write(LOAD)
        for kinds in (KINDS[:1], KINDS[1:]):
            reply = support.python(CYCLES, temporary.name, *kinds)
            if reply.returncode != 0:
                raise AssertionError(f"{kinds}: exit status {reply.returncode}\n{reply.stderr}")
        cls.runs = {}
        for kind in KINDS:
            for way in ("plain", "packed"):
                reply = subprocess.run([python, "-W", "ignore", to("load.py"), to(kind, way),
                                        to("out.json")], capture_output=True, text=True,
                                       timeout=120, env=support.environment(PYTHONPATH=""))
                if reply.returncode != 0:
                    raise AssertionError(f"{kind}, {way}: {reply.stderr}")
                with open(to("out.json")) as file:
                    cls.runs[kind, way] = json.load(file)

    def test_views(self):
        for (kind, way), run in self.runs.items():
            with self.subTest(mode=kind, way=way):
                self.assertEqual(len(run), 3)
                self.assertEqual(run, self.runs["stock", way])

    def test_what_they_show(self):
        for cycle in self.runs["fast", "packed"]:
            self.assertEqual(cycle["views"], ["Overview", "Operator", "Trace", "Module"])
            self.assertIn(["aten::addmm", 4], cycle["operators"])
            [net] = cycle["modules"]
            self.assertEqual((net[0], net[2]), ("Net_0", 2))
            self.assertEqual([child[0] for child in net[4]], ["Linear_0", "Linear_1"])
            self.assertEqual(len(cycle["steps"]), 2)


if __name__ == "__main__":
    unittest.main()
