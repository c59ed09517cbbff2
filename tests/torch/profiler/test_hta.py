"""Holistic Trace Analysis reads the exported trace, with its call stacks. Only in `make test-all`, since it
is fetched for it, with pandas and much more."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import fetched
import support
import test_kernel_stacks

# Its 0.5.0 can't do with pandas 3.
NEEDS = ("HolisticTraceAnalysis==0.5.0", "pandas<3")

EXPORT = """
    import sys, torch
    from torch.profiler import profile, ProfilerActivity, record_function

    def adds(tensor):
        return tensor + 1

    def work(tensor):
        with record_function("span"):
            adds(tensor)

    work(torch.ones(3))
    with profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
        work(torch.ones(3))
    prof.export_chrome_trace({path!r})
"""

STANDALONE = """
    import time, kpytrace

    def leaf():
        time.sleep(0.001)

    def work():
        with kpytrace.span("span", epoch=1):
            leaf()
        kpytrace.mark("here")
        kpytrace.counter("queue", 3)

    with kpytrace.trace({path!r}, c_calls=False):
        work()
"""

# It rounds times to microseconds, and shorter calls then end before they begin.
ANALYSIS = """
import sys
from hta.common.trace_call_graph import CallGraph
from hta.trace_analysis import TraceAnalysis
trace = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="").t
frame = trace.get_trace(0)
trace.traces[0] = frame[frame["dur"] >= 0]
frame = CallGraph(trace).trace_data.get_trace(0)
names = trace.symbol_table.get_sym_table()
shown = {index: names[name] for index, name in zip(frame["index"], frame["name"])}
parents = dict(zip(frame["index"], frame["parent"]))
[index] = [index for index, name in shown.items() if name.endswith(sys.argv[2])]
while index in shown:
    print("stack:", shown[index])
    index = parents[index]
"""

KERNELS = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
frame = analysis.t.get_trace(0)
names = analysis.t.symbol_table.get_sym_table()
print("kernels:", sum(names[cat] in ("kernel", "gpu_memcpy", "gpu_memset") for cat in frame["cat"]))
"""


class Analysis(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = fetched.python_with("hta", "Holistic Trace Analysis", *NEEDS)

    def stack(self, path, innermost):
        reply = subprocess.run([self.python, "-W", "ignore", "-c", ANALYSIS, path, innermost],
                               capture_output=True, text=True, env=support.environment(PYTHONPATH=""))
        self.assertEqual(reply.returncode, 0, reply.stderr)
        shown = [line.partition(": ")[2] for line in reply.stdout.splitlines()
                 if line.startswith("stack: ")]
        return [name.rpartition(": ")[2] for name in shown]

    def test_kernels_with_stacks(self):
        """Kernels of a real GPU, if there is one, or of the stand-in."""
        device = "cuda" if test_kernel_stacks.has_cuda() else "cpu"
        with tempfile.TemporaryDirectory() as folder:
            test_kernel_stacks.run("full", device, folder)
            path = os.path.join(folder, "packed.json.gz")
            reply = subprocess.run([self.python, "-W", "ignore", "-c", KERNELS, path], text=True,
                                   capture_output=True, env=support.environment(PYTHONPATH=""))
            count = len(test_kernel_stacks.kernels(test_kernel_stacks.read(path)))
            self.assertIn(f"kernels: {count}", reply.stdout.splitlines(), reply.stderr)

    def test_call_stacks_of_the_standalone_host(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json.gz")
            support.program(STANDALONE.format(path=path), "fast")
            self.assertEqual(self.stack(path, ": leaf")[:3], ["leaf", "span", "work"])

    def test_call_stacks(self):
        for mode in ("fast", "full", "native"):
            with self.subTest(mode=mode), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "trace.json.gz")
                support.program(EXPORT.format(path=path), mode)
                self.assertEqual(self.stack(path, "aten::add")[:4],
                                 ["aten::add", "adds", "span", "work"])


if __name__ == "__main__":
    unittest.main()
