"""Programs in trouble, recorded with torch's operators: what raises, and what ends or disturbs the program. A callback of
its own counts the operators; the file has all of them, or says how many are missing."""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
import support
import torch
from kpytrace.torch import _compile, _environment

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = """
import light, ctypes, os, signal, sys, threading, time
import torch
torch.set_num_threads(1)
counter = ctypes.CDLL(os.environ["COUNTER"])
counter.counter_end.restype = ctypes.c_uint64
counter.counter_begin()
def fails(function):
    try:
        function()
    except Exception as error:
        return type(error).__name__
"""
RAISES = """
class Backward(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2
    @staticmethod
    def backward(context, gradient):
        raise ValueError
class Forward(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        raise KeyError
from torch.utils._python_dispatch import TorchDispatchMode
class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "cos" in str(function):
            raise IndexError
        return function(*args, **(kwargs or {}))
def hook(gradient):
    raise OSError
def hooked():
    y = x * 3
    y.register_hook(hook)
    y.exp().sum().backward()
def dispatched():
    with Mode():
        torch.ones(2).add(1).cos()
def ranged():
    with torch.profiler.record_function("outer"), torch.profiler.record_function("inner"):
        torch.ones(2) + torch.ones(3)
for _ in range(20):
    x = torch.ones(3, requires_grad=True)
    print([fails(function) for function in (
        lambda: Backward.apply(x.mul(2)).sum().backward(), lambda: Forward.apply(x), hooked, dispatched, ranged,
        lambda: torch.ones(2) @ torch.ones(3), lambda: torch.linalg.cholesky(-torch.eye(3)))])
"""
ENDS = """
def spin():
    y = torch.ones(8)
    while True:
        y.add(1)
for _ in range(2):
    threading.Thread(target=spin, daemon=True).start()
torch.profiler.record_function("open").__enter__()
for number in range(200):
    torch.ones(2).mul(number)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(30)
"""
FULL = """
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
for _ in range(60000):
    torch.ones(2)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""
INTERPRETERS = """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
def other():
    number = interpreters.create()
    interpreters.run_string(number, "for _ in range(100): len('x')")
    interpreters.destroy(number)
for _ in range(3):
    thread = threading.Thread(target=other)
    thread.start()
    for number in range(50):
        torch.ones(2).mul(number)
    thread.join()
    other()
"""


class Trouble(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.counter = os.path.join(cls.folder, "counter.so")
        subprocess.run(_compile.command(torch, _environment.find_compiler(), os.path.join(HERE, "operator_counter.cc"),
                                        cls.counter), check=True)

    def run_program(self, text, name, *options, status=0, **variables):
        """Returns the output's path, what the program printed, and how many operators it began."""
        program, out = (os.path.join(self.folder, file) for file in ("program.py", name))
        with open(program, "w", encoding="utf-8") as file:
            file.write(HEAD + textwrap.dedent(text) + 'print("began", counter.counter_end())\n')
        reply = support.python("-m", "kpytrace", "run", "--torch", "--include", program, *options, "-o", out, program,
                               COUNTER=self.counter, **variables)
        self.assertEqual(reply.returncode, status, reply.stderr)
        began = re.search(r"^began (\d+)$", reply.stdout, re.M)
        return out, reply, int(began[1]) if began else None

    def calls(self, path):
        """Returns how often each operator and annotation was called, by `top --ops`."""
        reply = support.python("-m", "kpytrace", "top", "--ops", "--json", "-n", "0", path)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return collections.Counter({row["name"]: row["calls"] for row in json.loads(reply.stdout)})

    def test_exceptions_of_python_and_of_operators(self):
        """Whatever raises, each operator has its end, and they nest."""
        for name, options in ("out.kpt", ()), ("ring.kpt", ("--ring", "100MB")):
            with self.subTest(name):
                path, reply, began = self.run_program(RAISES, name, *options, KPYTRACE_TEST_LONG="1")  # all of torch
                self.assertIn("['ValueError', 'KeyError', 'OSError', 'IndexError', 'RuntimeError', 'RuntimeError', "
                              "'_LinAlgError']", reply.stdout)
                self.assertEqual(sum(self.calls(path).values()), began)
        out = os.path.join(self.folder, "out.json")
        reply = support.python("-m", "kpytrace", "convert", "-q", path, out)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        with open(out, encoding="utf-8") as file:
            trace = json.load(file)
        self.assertEqual(trace["otherData"]["events repaired"], 0)
        wrong = [e for e in trace["traceEvents"] if e["ph"] == "X" and
                 {"recovered", "clamped"} & set(e["args"]) and e["cat"] != "python_function"]
        self.assertEqual(wrong, [])

    def test_sigterm_while_threads_are_in_operators(self):
        for name, options in (("term.kpt", ()), ("term.json", ()), ("term_ring.kpt", ("--ring", "10s"))):
            with self.subTest(name):
                path, _, _ = self.run_program(ENDS, name, *options, status=-15)
                if name.endswith(".json"):
                    with open(path, encoding="utf-8") as file:
                        found = collections.Counter(e["name"] for e in json.load(file)["traceEvents"] if e["ph"] == "X")
                else:
                    found = self.calls(path)
                self.assertEqual((found["aten::mul"], found["open"]), (200, 1))
                self.assertGreater(found["aten::add"], 0)

    def test_a_stream_whose_disk_is_full(self):
        """What does not fit is counted, and the file is whole up to there."""
        path, reply, began = self.run_program(FULL, "full.kpt")
        lost = re.search(r"could not be written: .*; (\d+) events were lost, the rest of the file is whole", reply.stderr)
        self.assertTrue(lost, reply.stderr)
        kept = self.calls(path)["aten::ones"]
        self.assertGreater(kept, 1000)
        self.assertGreaterEqual(sum(self.calls(path).values()) * 2 + int(lost[1]), 2 * began)

    def test_other_interpreters(self):
        path, _, began = self.run_program(INTERPRETERS, "other.kpt")
        found = self.calls(path)
        self.assertEqual((found["aten::mul"], sum(found.values())), (150, began))


if __name__ == "__main__":
    unittest.main()
