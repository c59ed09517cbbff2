"""Programs that know nothing of kpytrace, recorded with torch's operators: kpytrace run --torch, KPYTRACE."""

import collections
import json
import os
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
import support

TRAIN = """
def train():
    import torch  # while the trace runs
    model = torch.nn.Linear(4, 2)
    for _ in range(3):
        with torch.profiler.record_function("step"):
            model(torch.ones(2, 4)).sum().backward()
"""


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, text):
        with open(self.path("program.py"), "w") as file:
            file.write(TRAIN + textwrap.dedent(text))
        return self.path("program.py")

    def run_program(self, text, *options, status=0, **variables):
        # Without the calls of torch's own import, of which there are a million.
        reply = support.python("-m", "kpytrace", "run", "--include", self.path(""), *options, self.write(text),
                               **variables)
        self.assertEqual(reply.returncode, status, reply.stderr)
        return reply

    def names(self, path):
        with open(path) as file:
            return collections.Counter(e["name"] for e in json.load(file)["traceEvents"] if e["ph"] == "X")

    def top(self, path, *options):
        reply = support.python("-m", "kpytrace", "top", "--ops", "--json", "-n", "0", *options, path)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return {(row["name"], row["caller"]): row for row in json.loads(reply.stdout)}

    def test_run_and_top(self):
        out = self.path("out.kpt")
        self.run_program("train()", "--torch", "-o", out)
        rows = self.top(out)
        self.assertEqual(rows["aten::addmm", ""]["calls"], 3)
        self.assertEqual(rows["step", ""]["calls"], 3)
        self.assertEqual(rows["step", ""]["kind"], "annotation")
        self.assertLess(rows["aten::linear", ""]["own_ns"], rows["aten::linear", ""]["total_ns"])
        callers = {name: caller for name, caller in self.top(out, "--callers")}
        self.assertRegex(callers["AddmmBackward0"], r"^backward of .*program.py\(\d+\): train$")
        self.assertRegex(callers["aten::addmm"], r"^.*program.py\(\d+\): train$")
        text = support.python("-m", "kpytrace", "top", "--ops", "--callers", out).stdout
        self.assertIn("annotation step", text)
        for form in ("json", "pftrace", "html", "speedscope.json", "collapsed"):
            reply = support.python("-m", "kpytrace", "convert", out, self.path(f"out.{form}"))
            self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertEqual(self.names(self.path("out.json"))["aten::addmm"], 3)

    def test_the_variable(self):
        out = self.path("out.json")
        self.run_program("train()", "-o", out, KPYTRACE_RUN_TORCH="1")
        self.assertEqual(self.names(out)["aten::addmm"], 3)

    def test_what_does_not_use_torch(self):
        out = self.path("out.json")
        reply = self.run_program("print(sorted([2, 1]))", "--torch", "-o", out)
        self.assertEqual(reply.stdout, "[1, 2]\n")
        self.assertIn("<built-in function sorted>", self.names(out))
        reply = support.python("-m", "kpytrace", "run", "-q", "--torch", "-o", self.path("out.kpt"), self.path("program.py"))
        self.assertEqual((reply.returncode, reply.stderr), (0, ""))
        reply = support.python("-m", "kpytrace", "top", "--ops", self.path("out.kpt"))
        self.assertEqual(reply.stdout, "the recording has no operators: record with --torch\n")

    def test_without_a_compiler_the_calls_are_recorded(self):
        out = self.path("out.json")
        reply = self.run_program("train()", "--torch", "-o", out, KPYTRACE_TORCH_CACHE=self.folder, PATH=self.folder,
                                 CXX=None)
        self.assertEqual(reply.stderr.count("kpytrace: torch's operators are not recorded: "), 1, reply.stderr)
        self.assertIn("compiler", reply.stderr)
        names = self.names(out)
        self.assertEqual(names["aten::addmm"], 0)
        self.assertEqual(sum(count for name, count in names.items() if name.endswith(": train")), 1)

    def test_workers_of_a_loader(self):
        """They are forked while the trace runs, and while another thread is in operators."""
        out = self.path("out.json")
        self.run_program("""
            import threading, torch
            class Data(torch.utils.data.Dataset):
                def __len__(self): return 4
                def __getitem__(self, i): return torch.ones(2).mul(i)
            ended = threading.Event()
            def spin():
                while not ended.is_set(): torch.ones(8).add(1)
            thread = threading.Thread(target=spin)
            thread.start()
            try:
                train()
                loader = torch.utils.data.DataLoader(Data(), num_workers=2, multiprocessing_context="fork")
                assert sum(float(x.sum()) for x in loader) == 12
            finally:
                ended.set()
                thread.join()
            """, "--torch", "--children", "-o", out)
        names = self.names(out)
        self.assertEqual(names["aten::addmm"], 3)
        self.assertGreater(names["aten::add"], 0)
        self.assertEqual(names["aten::mul"], 4)  # in the workers

    def test_a_ring(self):
        out = self.path("ring.json")
        self.run_program("""
            import torch
            for i in range(20000):
                with torch.profiler.record_function(f"step {i}"):
                    torch.ones(2)
            train()
            """, "--torch", "--ring", "256kB", "-o", out)
        names = self.names(out)
        self.assertEqual(names["aten::addmm"], 3)
        self.assertNotIn("step 10", names)


if __name__ == "__main__":
    unittest.main()
