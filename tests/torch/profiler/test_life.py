"""Profilers that begin and end in every way: no crash, no deadlock."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

CYCLES = """
import json, threading, torch, traced
counts = []

def marker():
    torch.ones(1)

def cycle():
    found = traced.calls(traced.run(marker))
    counts.append(sum(row["name"].endswith(": marker") for row in found))
for n in range(30):
    if n % 8 == 0:
        cycle()
    else:
        thread = threading.Thread(target=cycle)
        thread.start()
        thread.join()
print(json.dumps(counts))
"""

# Threads take turns quickly: else most of the time is spent waiting for the GIL, and on what is recorded then.
BUSY = """
import sys, threading, torch, traced
sys.setswitchinterval(0.0005)
stop = []

def busy():
    while not stop:
        for n in range(2000):  # few calls: what is done to each of them is not what takes time here
            n * n
        abs(n)
threads = [threading.Thread(target=busy) for _ in range(4)]
for thread in threads:
    thread.start()
counts = [len({row["tid"] for row in traced.calls(traced.run(lambda: torch.ones(1)))})
          for _ in range(5)]
stop.append(1)
for thread in threads:
    thread.join()
print(min(counts))
"""

# T39: the child of a fork is not traced, and may be.
FORK = """
import json, os, sys, torch, traced

def marker():
    torch.ones(1)

def child():
    inside = sys.getprofile() is None
    return inside

read, write = os.pipe()
with traced.profile(with_stack=True, activities=traced.CPU) as prof:
    marker()
    pid = os.fork()
    if pid == 0:
        os.write(write, str(int(child())).encode())
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    marker()
found = traced.calls(prof)
print(json.dumps([status, os.read(read, 1).decode(),
                  sum(row["name"].endswith(": marker") for row in found)]))
"""

EXIT = """
import torch, traced
prof = traced.profile(with_stack=True, activities=traced.CPU)
prof.__enter__()
torch.ones(1)
print(1)
"""

# T44, and a profile function of the user's within (T38).
NEIGHBOURS = """
import cProfile, json, torch, traced

def marker():
    torch.ones(1)
other = cProfile.Profile()
other.enable()
prof = traced.run(marker)
other.disable()
seen = any(function[2] == "marker" for function in other.getstats() and
           [(0, 0, getattr(row.code, "co_name", "")) for row in other.getstats()])
print(json.dumps([seen, sum(row["name"].endswith(": marker") for row in traced.calls(prof))]))
"""

AUTOGRAD_THREADS = """
import json, threading, torch, traced

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

def train():
    x = torch.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
prof = traced.run(train)
print(json.dumps(sum(row["name"].endswith(": backward") for row in traced.calls(prof)) > 0))
"""

LOADER = """
import torch, traced
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, n):
        return torch.tensor(float(n))

def work():
    return sum(batch.sum().item() for batch in DataLoader(Numbers(), batch_size=2, num_workers=2))
print(traced.run(work).result)
"""

# T41: the inner one works, and so do later ones; torch crashes when the outer is exported.
NESTED = """
import torch, traced

def marker():
    torch.ones(1)

def say(what, prof=None):
    found = prof and sum(row["name"].endswith(": marker") for row in traced.calls(prof))
    print(what, found, flush=True)
with traced.profile(with_stack=True, activities=traced.CPU) as outer:
    marker()
    with traced.profile(with_stack=True, activities=traced.CPU) as inner:
        marker()
    say("inner", inner)
    marker()
say("outer has ended")
say("later", traced.run(marker))
say("outer", outer)
"""

# T41: two threads, each with a profiler of its own. Both take every step together, and report it.
PARALLEL = """
import sys, threading, torch, traced
together = threading.Barrier(2, timeout=30)

def say(what):
    sys.stdout.write(what + "\\n")
    sys.stdout.flush()

def work():
    prof = traced.profile(with_stack={stack}, activities=traced.CPU)
    together.wait()
    prof.start()
    say("started")
    together.wait()
    torch.ones(1)
    together.wait()
    prof.stop()
    say("stopped")
    together.wait()
    traced.calls(prof)
    say("exported")
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


class Life(unittest.TestCase):
    def test_cycles_from_threads_in_turn(self):
        self.assertEqual(support.program(CYCLES, "full", forked=True).value, [1] * 30)

    def test_start_beside_busy_threads(self):
        self.assertEqual(support.program(BUSY, "all").value, 5)

    def test_T39_fork(self):
        self.assertEqual(support.program(FORK, "full").value, [0, "1", 2])

    def test_exit_while_profiling(self):
        for mode in ("all", "full"):
            self.assertEqual(support.program(EXIT, mode).value, 1)

    @unittest.skipUnless(sys.version_info >= (3, 12), "one profiler at a time before sys.monitoring")
    def test_T44_beside_cprofile(self):
        seen, found = support.program(NEIGHBOURS, "all", forked=True).value
        self.assertTrue(seen)
        self.assertEqual(found, 1)

    def test_T41_nested_profilers(self):
        """Ours allows at least as much as torch alone. In torch 2.11 the end of the outer profiler raises."""
        theirs = support.attempt(NESTED, forked=True)
        is_old = support.torch_version() < (2, 13)
        self.assertEqual(theirs.stdout.splitlines()[:3], ["inner 1", "outer has ended None", "later 1"][:1 if is_old else 3])
        self.assertEqual("Can't disable Kineto profiler when it's not running" in theirs.stderr, is_old, theirs.stderr)
        for mode in ("all", "fast"):
            own = support.attempt(NESTED, mode, forked=True)
            self.assertEqual(own.stdout.splitlines()[:3], theirs.stdout.splitlines()[:3])
            self.assertEqual("Can't disable Kineto profiler when it's not running" in own.stderr, is_old, own.stderr)
            self.assertIn(own.returncode, (0, theirs.returncode))

    @unittest.skipIf(support.torch_version() < (2, 13), "torch 2.11 by itself raises in the second start, aborts, or hangs")
    def test_T41_parallel_profilers(self):
        """torch itself crashes, also without Python stacks: it has one session at a time, and the second
        cancels the first. With ours both begin, and no thread hangs."""
        crashes = {support.attempt(PARALLEL.format(stack=False), forked=True).returncode for _ in range(2)}
        self.assertLessEqual(max(crashes), 0, "ends well, or by a signal")
        for mode in ("all", "fast"):
            own = support.attempt(PARALLEL.format(stack=True), mode, forked=True)
            self.assertEqual(own.stdout.splitlines()[:2], ["started"] * 2, own.stderr)
            self.assertLessEqual(own.returncode, 0, own.stderr)

    def test_autograd_functions(self):
        self.assertTrue(support.program(AUTOGRAD_THREADS, "all", forked=True).value)

    def test_data_loader_workers(self):
        self.assertEqual(support.program(LOADER, "full", forked=True).value, 28.0)


if __name__ == "__main__":
    unittest.main()
