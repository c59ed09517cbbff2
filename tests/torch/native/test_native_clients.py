"""Libraries that use torch's profiler get from a native profile what they get from torch's own: accelerate's
ProfileKwargs, Inductor's profiles and benchmarks of the modules that it compiles. Only in `make test-all`, since accelerate is fetched."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import fetched

CLIENTS = str(pathlib.Path(__file__).with_name("clients.py"))


def found(python, kind, program):
    """Returns the output of clients.py. Its folder is not in sys.path, since a module of the tests may have the name
    of one that a library imports."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "found.json")
        reply = subprocess.run([python, "-P", "-W", "ignore", CLIENTS, kind, program, output], capture_output=True,
                               text=True, timeout=600, cwd=folder,
                               env={**os.environ, "KINETO_LOG_LEVEL": "99", "TORCHINDUCTOR_CACHE_DIR": folder})
        if reply.returncode != 0:
            raise AssertionError(f"{kind}: exit status {reply.returncode}\n{reply.stdout}\n{reply.stderr}")
        if kind == "native" and "recorded by Kineto" in reply.stderr:
            raise AssertionError(reply.stderr)
        with open(output) as file:
            return json.load(file)


class Clients(unittest.TestCase):
    maxDiff = 4000

    def compare(self, python, program):
        own, theirs = (found(python, kind, program) for kind in ("native", "stock"))
        self.assertEqual(own, theirs)
        return own

    def transformers(self):
        return fetched.python_with("transformers", "transformers", *fetched.TRANSFORMERS, torch=True)

    def test_accelerate(self):
        own, cycles = self.compare(self.transformers(), "accelerate")
        self.assertEqual([len(own), len(cycles)], [4, 2])
        for cycle in cycles:
            self.assertIn(["aten::linear", 4], cycle)

    def test_inductor(self):
        """With the ranges that generated code marks only in a thread that is profiled."""
        table, [[events, _]], is_complete = self.compare(self.transformers(), "inductor")
        names = [name for name, _ in events]
        self.assertIn("cpu_op: Pregraph bytecode", names)
        self.assertTrue(any(name.startswith("user_annotation: ## Call CompiledFxGraph") for name in names))
        self.assertTrue(table and is_complete)


    def test_inductors_benchmarks(self):
        """A compiled module that runs and profiles itself, with the kernels' inputs, and the helpers around it."""
        table, lines, files, utilization, is_timed, averages, operators = self.compare(self.transformers(),
                                                                                       "inductor_benchmark")
        self.assertEqual([len(lines), len(files), utilization, is_timed], [1, 2, [0, 0], True])
        self.assertTrue(any("cpp_fused" in name for name, _ in table))
        self.assertTrue(averages and operators)


if __name__ == "__main__":
    unittest.main()
