"""Every operator has the callers that it has with torch's own tracer: in the exported file, and in torch's event
tree. Calls that are cut at an annotation continue after it."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import fetched

CHAINS = str(pathlib.Path(__file__).with_name("chains.py"))
KINDS = ("stock", "full", "all", "fast", "native")


def chains(python, kind, program):
    """Returns the output of chains.py. Its folder is not in sys.path, since a module of the tests may have the name
    of one that a library imports."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "chains.json")
        reply = subprocess.run([python, "-P", "-W", "ignore", CHAINS, kind, program, output], capture_output=True,
                               text=True, timeout=600, cwd=folder, env={**os.environ, "KINETO_LOG_LEVEL": "99"})
        if reply.returncode != 0:
            raise AssertionError(f"{kind}: exit status {reply.returncode}\n{reply.stdout}\n{reply.stderr}")
        with open(output) as file:
            return json.load(file)


class Chains(unittest.TestCase):
    maxDiff = 4000

    def compare(self, program, least, python=sys.executable):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = dict(zip(KINDS, pool.map(lambda kind: chains(python, kind, program), KINDS)))
        operators = sum(len(trace["file"]) for trace in found["stock"])
        self.assertGreater(operators, least)
        for kind in KINDS[1:]:
            self.assertEqual(len(found[kind]), len(found["stock"]))
            for theirs, own in zip(found["stock"], found[kind]):
                for where in own:
                    with self.subTest(mode=kind, where=where):
                        self.assertEqual([row[0] for row in own[where]], [row[0] for row in theirs[where]])
                        for row, wanted in zip(own[where], theirs[where]):
                            self.assertEqual(row, wanted)

    def test_steps_and_annotations_in_callees(self):
        self.compare("steps", 100)

    def test_lightning(self):
        """Lightning's profiler steps inside the optimizer's closure."""
        self.compare("lightning", 500,
                     fetched.python_with("lightning", "Lightning", *fetched.LIGHTNING, torch=True))

    def test_transformers(self):
        self.compare("trainer", 300,
                     fetched.python_with("transformers", "transformers", *fetched.TRANSFORMERS, torch=True))


if __name__ == "__main__":
    unittest.main()
