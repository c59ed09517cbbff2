"""Programs in trouble, recorded with torch's operators: what raises, what compiles, and what ends or disturbs the program.
A callback of its own counts the operators; the file has all of them, or says how many are missing."""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
import support
import torch
from kpytrace.torch import _compile, _environment

LONG = bool(os.environ.get("KPYTRACE_TEST_LONG"))
HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 600  # a program that takes longer hangs; the machine may be busy
HEAD = """
import ctypes, os, signal, sys, threading, time
import torch
torch.set_num_threads(1)
counter = ctypes.CDLL(os.environ["COUNTER"])
counter.counter_begin_names()
def fails(function):
    try:
        function()
    except Exception as error:
        return type(error).__name__
"""
TAIL = """
counter.counter_end()
counter.counter_write_names(os.environ["COUNTS"].encode())
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
time.sleep(600)  # it has ended by then
"""
FULL = """
import glob, resource
def stream_bytes():
    for name in glob.glob("/proc/self/fd/*"):
        if os.path.realpath(name).endswith("full.kpt"):
            return os.stat(name).st_size
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (stream_bytes() + (1 << 18), resource.RLIM_INFINITY))
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
COMPILED = """
def function(x):
    return (x.sin() * 2 + x.cos()).square().sum()
compiled = torch.compile(function, backend=os.environ["BACKEND"])
for size in 3, 3, 5:
    compiled(torch.ones(size, requires_grad=True)).backward()
"""
SIGNALS = """
def work():
    y = torch.ones(8)
    while not ended.is_set():
        y.add(1)
def dump(path):
    for number in range(100):
        torch.ones(2).mul(number)
    os.kill(os.getpid(), signal.SIGUSR2)
    while not os.path.exists(path):
        time.sleep(0.01)
ended = threading.Event()
thread = threading.Thread(target=work)
thread.start()
opened = torch.profiler.record_function("open")
opened.__enter__()
try:
    dump(os.environ["FIRST"])
    opened.__exit__(None, None, None)
    dump(os.environ["SECOND"])
finally:
    ended.set()
    thread.join()
"""
# Each way to end, the status of its process, and the output in quick runs: to end torch takes most of a second.
ENDINGS = {"end": (0, "whole.json"), "exit": (3, "stream.kpt"), "raise": (1, "ring.kpt"), "stop": (4, "whole.json")}
# Forks a process for each file, as the import of torch takes longer than all the rest.
FORKS = """
import os, sys
import torch
torch.set_num_threads(1)
for path in sys.argv[1:]:
    child = os.fork()
    if not child:
        break
    print(os.path.basename(path), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
import kpytrace
kind, form = os.path.basename(path).split("_")
kpytrace.start(path, torch=True, **({"ring": "100MB"} if form.startswith("ring") else {}))
torch.profiler.record_function("open").__enter__()
for number in range(100):
    torch.ones(2).mul(number)
if kind == "exit":
    sys.exit(3)
if kind == "raise":
    raise ValueError
if kind == "stop":
    kpytrace.stop()
    os._exit(4)
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
        """Returns the output's path, what the program printed, and how often it began each operator."""
        program, out, counts = (os.path.join(self.folder, file) for file in ("program.py", name, name + ".counts"))
        with open(program, "w", encoding="utf-8") as file:
            file.write(HEAD + text + TAIL)
        reply = support.python("-m", "kpytrace", "run", "--torch", "--include", program, *options, "-o", out, program,
                               timeout=SECONDS, COUNTER=self.counter, COUNTS=counts, **variables)
        self.assertEqual(reply.returncode, status, reply.stderr)
        if status:
            return out, reply, None
        with open(counts, encoding="utf-8") as file:
            began = (line.rstrip("\n").split(" ", 1) for line in file)
            return out, reply, collections.Counter({name: int(count) for count, name in began})

    def path(self, name):
        return os.path.join(self.folder, name)

    def calls(self, path):
        """Returns how often each operator and annotation was called, by `top --ops`."""
        if path.endswith(".json"):
            with open(path, encoding="utf-8") as file:
                return collections.Counter(e["name"] for e in json.load(file)["traceEvents"]
                                           if e["ph"] == "X" and e["cat"] in ("cpu_op", "user_annotation"))
        reply = support.python("-m", "kpytrace", "top", "--ops", "--json", "-n", "0", path, timeout=SECONDS)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return collections.Counter({row["name"]: row["calls"] for row in json.loads(reply.stdout)})

    def test_exceptions_of_python_and_of_operators(self):
        """Whatever raises, each operator has its end, and they nest."""
        for name, options in ("out.kpt", ()), ("ring.kpt", ("--ring", "100MB")):
            with self.subTest(name):
                path, reply, began = self.run_program(RAISES, name, *options)
                self.assertIn("['ValueError', 'KeyError', 'OSError', 'IndexError', 'RuntimeError', 'RuntimeError', "
                              "'_LinAlgError']", reply.stdout)
                self.assertEqual(self.calls(path), began)
        out = os.path.join(self.folder, "out.json")
        reply = support.python("-m", "kpytrace", "convert", "-q", path, out, timeout=SECONDS)
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
        self.assertGreaterEqual(sum(self.calls(path).values()) * 2 + int(lost[1]), 2 * sum(began.values()))

    def test_other_interpreters(self):
        path, _, began = self.run_program(INTERPRETERS, "other.kpt")
        found = self.calls(path)
        self.assertEqual(found["aten::mul"], 150)
        self.assertEqual(found, began)

    def test_compiled_functions(self):
        """What the compiler does, and what it has made."""
        for backend in ("eager", "aot_eager", "inductor") if LONG else ("eager",):
            with self.subTest(backend):
                path, _, began = self.run_program(COMPILED, f"{backend}.kpt", BACKEND=backend)
                self.assertGreater(began["aten::sin"] + began["AotAutogradBackward"], 2)
                self.assertEqual(self.calls(path), began)

    def test_sigusr2_while_a_thread_is_in_operators(self):
        first, second = self.path("usr.1.kpt"), self.path("usr.2.kpt")
        path, _, began = self.run_program(SIGNALS, "usr.kpt", "--ring", "1GB", FIRST=first, SECOND=second)
        for dumped, count in (first, 100), (second, 200):
            found = self.calls(dumped)
            self.assertEqual((found["aten::mul"], found["open"]), (count, 1))
        self.assertEqual(self.calls(path), began)

    def test_endings(self):
        """The file has all operators, also one that is open, however the program ends."""
        forms = {form for _, form in ENDINGS.values()}
        names = {f"{kind}_{form}": status for kind, (status, quick) in ENDINGS.items()
                 for form in (forms if LONG else [quick])}
        reply = support.python("-c", FORKS, *map(self.path, names), timeout=SECONDS)
        self.assertEqual(dict(line.split() for line in reply.stdout.splitlines()),
                         {name: str(status) for name, status in names.items()}, reply.stderr)
        self.assertEqual(reply.stderr.count("ValueError"), 3 if LONG else 1)
        for name in *names, "raise_ring.1.kpt":
            with self.subTest(name):
                found = self.calls(self.path(name))
                self.assertEqual((found["open"], found["aten::mul"], found["aten::ones"]), (1, 100, 100))


if __name__ == "__main__":
    unittest.main()
