"""Other programs under the profiler: several processes, compiled functions."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from shutil import which

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support
from nesting import crossing_in
from test_export import python_calls, read

MODES = ("all", "full", "fast")


def names_of(trace, *categories):
    return collections.Counter(event["name"] for event in trace["traceEvents"]
                               if event.get("cat") in categories)


class Ranks(unittest.TestCase):
    """DistributedDataParallel on gloo, two processes."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        command = [sys.executable, "-W", "ignore", str(pathlib.Path(__file__).with_name("ranks.py")),
                   cls.folder]
        variables = support.environment(GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
        ranks = [subprocess.Popen([*command, str(rank)], env=variables, text=True,
                                  stderr=subprocess.PIPE) for rank in range(2)]
        try:
            errors = [rank.communicate(timeout=120)[1] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        if [rank.returncode for rank in ranks] != [0, 0]:
            raise AssertionError("\n".join(errors))

    def each(self):
        for rank in range(2):
            theirs = self.read("stock", rank, "json")
            for mode in MODES:
                with self.subTest(mode=mode, rank=rank):
                    yield theirs, self.read(mode, rank, "json")

    def read(self, kind, rank, end):
        return read(os.path.join(self.folder, f"{kind}.{rank}.{end}"))

    def test_the_same_operators(self):
        for theirs, own in self.each():
            found = names_of(own, "cpu_op", "user_annotation")
            self.assertEqual(found, names_of(theirs, "cpu_op", "user_annotation"))
            self.assertEqual((found["gloo:all_reduce"], found["AddmmBackward0"]), (3, 6))
            self.assertEqual(own["distributedInfo"], theirs["distributedInfo"])

    def test_calls_forward_and_backward(self):
        """Those of a thread of gloo's too, which torch's own tracer has only where it needs no thread (T25);
        on 3.11 ours can't."""
        for theirs, own in self.each():
            for trace in (theirs, own):
                names = collections.Counter(call["name"].rpartition(": ")[2]
                                            for call in python_calls(trace))
                self.assertEqual([names[name] for name in ("train", "backward", "average", "Net_0",
                                                           "DistributedDataParallel_0")],
                                 [3, 6, 3, 3, 3])
            if sys.version_info >= (3, 12):
                self.assertEqual(names["received"], 3)

    def test_nothing_crosses_an_annotation(self):
        for _, own in self.each():
            self.assertEqual(crossing_in(own), [])

    def test_the_same_weights(self):
        weights = [self.read(kind, rank, "weights") for kind in ("stock", *MODES)
                   for rank in range(2)]
        self.assertEqual(weights, weights[:1] * 8)


class Compiled(unittest.TestCase):
    """torch.compile, without a C++ compiler, and in long runs with one."""
    backends = ["eager+", "aot_eager"]

    @classmethod
    def setUpClass(cls):
        if os.environ.get("KPYTRACE_TEST_LONG"):
            cls.backends = [*cls.backends, *(["inductor"] if which("g++") else [])]
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "out.json")
            reply = support.python(str(pathlib.Path(__file__).with_name("compiled.py")), output, *cls.backends,
                                   timeout=500, TORCHINDUCTOR_CACHE_DIR=folder)
            if reply.returncode != 0:
                raise AssertionError(f"exit status {reply.returncode}\n{reply.stderr}")
            with open(output) as file:
                cls.found = json.load(file)

    def each(self, what):
        """Yields stock's and our results, of each backend and mode. Stock's trace may be invalid JSON."""
        for backend in self.backends:
            for mode in MODES:
                own = self.found[backend][mode].get(what)
                if own:
                    yield (backend, mode, what), self.found[backend]["stock"].get(what, own), own

    def test_runs(self):
        for which_one, theirs, own in self.each("run"):
            with self.subTest(which_one):
                self.assertEqual({**own, "crossings": []}, {**theirs, "crossings": []})
                self.assertEqual(own["own"][-2:], ["caller", "wave"])
                self.assertFalse(own["dynamo"])
                self.assertIn("Torch-Compiled Region: 0/0", own["operators"])

    def test_compilations(self):
        """The calls of a compilation differ between runs, also with one tracer."""
        for which_one, theirs, own in self.each("compilation"):
            with self.subTest(which_one):
                self.assertAlmostEqual(own["calls"] / theirs["calls"], 1, delta=0.1)
                self.assertGreater(own["calls"], 10_000)
                self.assertEqual(own["operators"], theirs["operators"])
                self.assertEqual(own["own"][-2:], ["caller", "wave"])
                self.assertTrue(own["dynamo"])

    def test_nothing_crosses_a_span_of_the_compiler(self):
        for what in ("run", "compilation"):
            for which_one, _, own in self.each(what):
                with self.subTest(which_one):
                    self.assertEqual(own["crossings"], [])

    def test_results(self):
        for what in ("run", "compilation"):
            for which_one, theirs, own in self.each(what):
                with self.subTest(which_one):
                    self.assertEqual(own["result"], theirs["result"])
                    for values, plain in zip(own["result"], self.found["plain"]):
                        for value, expected in zip(values, plain):
                            self.assertAlmostEqual(value, expected, places=5)


if __name__ == "__main__":
    unittest.main()
