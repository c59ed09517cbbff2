"""Programs that are hard to record with operators and GPU work at once. Each runs in a process of its own. Needs a GPU."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch

if not torch.cuda.is_available():
    print("skipped: there is no GPU")
    raise SystemExit(77)

HEAD = """
import sys, torch, kpytrace
kinds = torch.profiler.ProfilerActivity
out = sys.argv[1]
def start(**options):
    return kpytrace.start(out, torch=True, gpu=True, **options)
def work(x):
    return (x @ x).relu().sum()
x = torch.randn(64, 64, device="cuda")
work(x).item()
"""

GRAPH = """
graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
with torch.cuda.stream(stream):
    for _ in range(3):
        work(x)
torch.cuda.synchronize()
trace = start()
with torch.cuda.graph(graph):
    y = work(x)
for number in range(5):
    x.fill_(number)
    graph.replay()
torch.cuda.synchronize()
trace.stop()
print(y.item())
"""

WAIT_IN_CAPTURE = """
def attempt():
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            work(x)
            torch.cuda.synchronize()
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[0]
trace = start()
print(attempt())
torch.cuda.synchronize()
x.mul_(2)
torch.cuda.synchronize()
trace.stop()
"""

COMPILED = """
@torch.compile
def fused(x):
    return (x.sin() * x.cos() + 1).sum()
y = x.clone().requires_grad_()
fused(y).backward()
trace = start()
y.grad = None
fused(y).backward()
torch.cuda.synchronize()
trace.stop()
"""

PROFILER_INSIDE = """
trace = start(ring="30s")
work(x).item()
with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA]) as profile:
    work(x).item()
work(x).item()
trace.stop()
print(sum("CUDA" in str(e.device_type()) for e in profile.profiler.kineto_results.events()))
"""

PROFILER_OUTSIDE = """
with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA]) as profile:
    work(x).item()
    trace = start()
    work(x).item()
    trace.stop()
print(sum("CUDA" in str(e.device_type()) for e in profile.profiler.kineto_results.events()))
"""

NOT_STOPPED = """
start()
for _ in range(100):
    y = work(x)
"""

RAISES = """
trace = start()
for _ in range(3):
    try:
        x @ x[:3]
    except RuntimeError:
        pass
work(x).item()
trace.stop()
"""

WORKERS = """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return torch.full((4,), float(index)).mul(2)
trace = start()
total = sum(batch.cuda().sum().item() for batch in torch.utils.data.DataLoader(Data(), num_workers=2))
trace.stop()
print(total)
"""


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "trace.kpt")

    def run_program(self, text):
        """Returns the program's output, what it printed to stderr, and the events of its trace."""
        environment = dict(os.environ, PYTHONWARNINGS="ignore", KINETO_LOG_LEVEL="99")
        reply = subprocess.run([sys.executable, "-c", HEAD + text, str(self.path)], env=environment, timeout=300,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.info = self.command("info", "-q", self.path)
        self.command("convert", "-q", self.path, str(self.path) + ".json")
        with open(str(self.path) + ".json", encoding="utf-8") as file:
            events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
        return reply.stdout.strip(), reply.stderr, events

    def command(self, *words):
        return subprocess.run([sys.executable, "-m", "kpytrace", *map(str, words)], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    @staticmethod
    def kernels(events, part=""):
        return [e for e in events if e["cat"] == "kernel" and part in e["name"]]

    def test_a_graph(self):
        """Each replay's kernels are there; the operators ran once, at the capture."""
        output, errors, events = self.run_program(GRAPH)
        self.assertEqual(float(output), 64 * 64 * 64 * 16.0)
        launches = [e for e in events if "GraphLaunch" in e["name"]]
        self.assertEqual(len(launches), 5, errors)
        replayed = [e for e in self.kernels(events) if e["args"].get("correlation") in
                    {launch["args"]["correlation"] for launch in launches}]
        self.assertEqual(len(replayed) % 5, 0)
        self.assertGreaterEqual(len(replayed), 10)
        self.assertEqual(sum(e["name"] == "aten::mm" for e in events), 1)

    def test_a_wait_in_a_capture_fails_as_without_us(self):
        output, _, events = self.run_program(WAIT_IN_CAPTURE)
        bare = subprocess.run([sys.executable, "-c", HEAD.replace("kpytrace\n", "os\n", 1).replace(
            "return kpytrace.start(out, torch=True, gpu=True, **options)", "return type('T', (), {'stop': print})") +
            WAIT_IN_CAPTURE, ""], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual(output.splitlines()[0], bare.splitlines()[0])
        self.assertIn("Error", output)
        self.assertTrue(self.kernels(events), "the trace goes on")

    def test_compiled_code(self):
        _, _, events = self.run_program(COMPILED)
        fused = self.kernels(events, "triton_")
        self.assertGreaterEqual(len(fused), 1)
        self.assertEqual(sum("CompiledFunction" == e["name"] for e in events), 1)

    def test_torchs_profiler_inside(self):
        """CUPTI serves one of them, and the file and a line say whom."""
        output, errors, events = self.run_program(PROFILER_INSIDE)
        self.assertEqual((output, len(self.kernels(events))), ("0", 9))
        self.assertEqual(errors.count("torch.profiler gets no GPU activities while kpytrace records them"), 1, errors)

    def test_torchs_profiler_outside(self):
        output, errors, events = self.run_program(PROFILER_OUTSIDE)
        self.assertGreater(int(output), 5)
        self.assertEqual(self.kernels(events), [])
        for said in (errors, self.info):
            self.assertIn("CUPTI is in use by Kineto (torch.profiler), and serves one tool at a time", said)

    def test_a_trace_that_nobody_stops(self):
        _, _, events = self.run_program(NOT_STOPPED)
        self.assertGreaterEqual(len(self.kernels(events)), 300)

    def test_operators_that_raise(self):
        _, _, events = self.run_program(RAISES)
        self.assertEqual(sum(e["name"] == "aten::mm" for e in events), 4)
        self.assertTrue(self.kernels(events))

    def test_workers_that_are_forked(self):
        output, errors, events = self.run_program(WORKERS)
        self.assertEqual(float(output), 2 * 4 * sum(range(8)))
        self.assertTrue(self.kernels(events), errors)


if __name__ == "__main__":
    unittest.main()
