"""torch.profiler in mode "native" in bad weather: worker processes, threads that are born and die, exceptions, the end
of the interpreter, and profiles in profiles."""

import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

START = """
import atexit, json, os, signal, sys, tempfile, threading, time, torch, recorded
from torch.profiler import ProfilerActivity, profile, record_function, schedule
CPU = [ProfilerActivity.CPU]
ALL = {"activities": CPU, "with_stack": True, "profile_memory": True,
       "experimental_config": torch._C._profiler._ExperimentalConfig(profile_all_threads=True)}

def ones(prof):
    return {event.key: event.count for event in prof.key_averages()}.get("aten::ones", 0)

def events(prof):
    with tempfile.TemporaryDirectory() as folder:
        prof.export_chrome_trace(os.path.join(folder, "x.json"))
        with open(os.path.join(folder, "x.json")) as file:
            return json.load(file)["traceEvents"]

def in_file(prof, name="aten::ones"):
    return sum(event["name"] == name for event in events(prof))
"""

# Workers are forked while the profile runs, and profile themselves. One is killed.
LOADER = START + """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        with profile(**ALL) as own:
            torch.ones(1)
        return torch.tensor([index, ones(own), recorded.is_native(own), torch.autograd._profiler_enabled(), os.getpid()])

seen = []
with profile(**ALL) as prof:
    for _ in range(2):
        for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2):
            torch.ones(1)
            seen += batch.tolist()
    iterator = iter(torch.utils.data.DataLoader(Data(), num_workers=1))
    next(iterator)
    os.kill(iterator._workers[0].pid, signal.SIGKILL)
    try:
        for _ in iterator:
            pass
    except (RuntimeError, OSError, EOFError):  # by where the worker was
        killed = True
    del iterator
print(json.dumps([[row[:4] for row in seen], len({row[4] for row in seen}), killed, ones(prof), in_file(prof)]))
"""

# The profile begins and ends while threads are born, work and die.
THREADS = START + """
enough = threading.Event()

def work():
    with record_function("work"):
        torch.ones(1)

def bear():
    while not enough.is_set():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
bearers = [threading.Thread(target=bear) for _ in range(2)]
for bearer in bearers:
    bearer.start()
counts = []
for number in range(20):
    with profile(**ALL) as prof:
        time.sleep(0.01)
        torch.zeros(1)
    counts.append(ones(prof) == in_file(prof) and in_file(prof, "aten::zeros") == 1)
enough.set()
for bearer in bearers:
    bearer.join()
with profile(**ALL) as prof:
    for _ in range(300):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
print(json.dumps([counts.count(True), ones(prof), in_file(prof), in_file(prof, "work")]))
"""

EXCEPTIONS = START + """
def raises(number):
    with record_function("raises"):
        torch.ones(1)
        if number == 0:
            torch.ones(2) @ torch.ones(3)
        raises(number - 1)

class Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
    @staticmethod
    def backward(ctx, grad):
        raise KeyError("backward")

def generator():
    try:
        with record_function("generator"):
            yield torch.ones(1)
    finally:
        torch.ones(1)
seen = []
try:
    with profile(**ALL) as prof:
        try:
            raises(3)
        except RuntimeError:
            torch.ones(1)
        try:
            Backward.apply(torch.ones(1, requires_grad=True)).backward()
        except KeyError:
            torch.ones(1)
        left = generator()
        next(left)
        left.close()
        raise ZeroDivisionError
except ZeroDivisionError:
    seen.append("raised")
seen += [ones(prof), in_file(prof), in_file(prof, "raises"), in_file(prof, "generator")]
try:
    with profile(**ALL) as prof:
        sys.setrecursionlimit(300)

        def deep():
            torch.ones(1)
            deep()
        deep()
except RecursionError:
    sys.setrecursionlimit(1000)
with profile(**ALL) as later:
    torch.ones(1)
print(json.dumps([seen, ones(prof) == in_file(prof) > 100, ones(later), torch.autograd._profiler_enabled()]))
"""

# How a program ends while a profile runs, and what it prints then.
ENDS = {
    "returns": ("pass", 0),
    "exit": ("sys.exit(3)", 3),
    "_exit": ("os._exit(3)", 3),
    "raises": ("raise KeyError", 1),
    "in a thread": ("thread = threading.Thread(target=prof.start); thread.start(); thread.join()", 0),
    "in a generator": ("kept = generator(); next(kept)", 0),
    "with an exporter": ("atexit.register(export)", 0),
    "nested": ("other = profile(**ALL); other.start(); torch.ones(1)", 0),
    "forked": ("child = os.fork()\nif child: sys.exit(os.waitpid(child, 0)[1])", 0),
    "stopped": ("prof.stop(); kept = [prof.events(), prof.key_averages(), prof.profiler.kineto_results.events()]", 0),
}

END = START + """
import gc
gc.unfreeze()  # Python ends as without support/light
prof = profile(**ALL)

def generator():
    with profile(**ALL):
        yield torch.ones(1)

def export():
    prof.stop()
    assert ones(prof) == in_file(prof) == 1
    prof.export_chrome_trace(sys.argv[1])
if END != "in a thread":
    prof.start()
torch.ones(1)
exec(ENDS[END][0])
"""

NESTED = START + """
options = [ALL, {"activities": CPU}, {"activities": CPU, "record_shapes": True, "profile_memory": True},
           {"activities": CPU, "with_stack": True, "schedule": schedule(wait=0, warmup=1, active=1)}]

def nest(rest):
    if not rest:
        torch.ones(1)
        return []
    with profile(**rest[0]) as prof:
        torch.ones(1)
        found = nest(rest[1:])
        if prof.schedule and "schedule" in rest[0]:
            prof.step()
            torch.ones(1)
        else:
            torch.ones(1)
    allocated = sum(event["args"]["Bytes"] > 0 for event in events(prof) if event["name"] == "[memory]")
    return [[recorded.is_native(prof), ones(prof), in_file(prof), allocated], *found]
print(json.dumps([nest(options), torch.autograd._profiler_enabled()]))
"""


class Weather(unittest.TestCase):
    maxDiff = None

    def value(self, code):
        return support.program(code, "native", forked=True).value

    def test_workers_of_a_loader(self):
        reply = support.program(LOADER, "native", forked=True)
        rows, workers, was_killed, *counts = reply.value
        self.assertEqual(sorted(rows), sorted([index, 1, 1, 0] for index in (*range(8), *range(8))))
        self.assertEqual(workers, 4)
        self.assertTrue(was_killed)
        self.assertEqual(counts, [8, 8])

    def test_threads_are_born_and_die(self):
        self.assertEqual(self.value(THREADS), [20, 300, 300, 300])

    def test_exceptions(self):
        """`ones` of raises(): 4, and two vectors; one each after them; two in the generator."""
        self.assertEqual(self.value(EXCEPTIONS), [["raised", 4 + 2 + 1 + 1 + 1 + 2, 11, 4, 1], True, 1, False])

    def test_ends(self):
        with tempfile.TemporaryDirectory() as folder:
            for end, (_, status) in ENDS.items():
                with self.subTest(end):
                    path = os.path.join(folder, "trace.json")
                    code = f"import sys; sys.argv.append({path!r})\nEND, ENDS = {end!r}, {ENDS!r}\n" + END
                    reply = support.attempt(code, "native")
                    self.assertEqual(reply.returncode, status, reply.stderr)
                    lines = [line for line in reply.stderr.splitlines() if "KeyError" not in line]
                    self.assertEqual([line for line in lines if "rror" in line or "atal" in line], [])
                    if end == "with an exporter":
                        with open(path) as file:
                            self.assertIn("aten::ones", {event["name"] for event in json.load(file)["traceEvents"]})

    def test_nested(self):
        """Each has what happened while it recorded, of those inside it too."""
        self.assertEqual(self.value(NESTED), [
            [[True, 9, 9, 9], [True, 7, 7, 0], [True, 5, 5, 5], [True, 1, 1, 0]], False])


if __name__ == "__main__":
    unittest.main()
