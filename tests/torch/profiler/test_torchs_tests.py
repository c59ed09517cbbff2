"""torch's own tests of its profiler: what passes on stock passes in the mode "native", but for what docs/torch.md names.
They are not in torch's package: KPYTRACE_TORCHS_TESTS names the folder test/profiler of torch's sources, of the release
that is installed. Only in `make test-all`."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import fetched

FOLDER = os.environ.get("KPYTRACE_TORCHS_TESTS", "")
if not FOLDER:
    print("skipped: KPYTRACE_TORCHS_TESTS names no folder with torch's tests")
    raise SystemExit(77)
RUNNER = str(pathlib.Path(__file__).with_name("torchs_tests.py"))
# What needs the event tree, and what counts calls that are in parts.
NAMED = re.compile(r"""
    TestTorchTidyProfiler\. | TestProfilerTree\. |
    TestExperimentalUtils\.test_(profiler_\w*pattern | utils_compute_) |
    TestProfiler\.test_(source_multithreaded_ | cpu_annotation_overlap)""", re.VERBOSE)
FILES = ("execution_trace", "kineto", "memory_profiler", "profiler", "profiler_tree", "python_tracer", "record_function",
         "torch_tidy")


def outcomes(python, kind, file):
    """Returns {test: outcome} of a file."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "outcomes.json")
        reply = subprocess.run([python, "-W", "ignore", RUNNER, kind, file, output], capture_output=True, text=True,
                               timeout=1000, cwd=folder, env={**os.environ, "KINETO_LOG_LEVEL": "99"})
        if reply.returncode != 0:
            raise AssertionError(f"{kind} {file}: exit status {reply.returncode}\n{reply.stderr[-4000:]}")
        with open(output) as found:
            return json.load(found)


class TorchsTests(unittest.TestCase):
    def test_native(self):
        python = fetched.python_with("torchs_tests", "expecttest", "expecttest", "psutil", torch=True)
        passed = 0
        for name in FILES:
            file = os.path.join(FOLDER, f"test_{name}.py")
            if not os.path.exists(file):
                continue
            stock, own = (outcomes(python, kind, file) for kind in ("stock", "native"))
            passed += list(own.values()).count("passed")
            for test, outcome in stock.items():
                if outcome == "passed" and not NAMED.match(test):
                    with self.subTest(test):
                        self.assertEqual(own.get(test), "passed")
        self.assertGreater(passed, 100)


if __name__ == "__main__":
    unittest.main()
