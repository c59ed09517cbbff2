"""Holistic Trace Analysis reads the exported trace, with its call stacks. Only in `make test-all`, since it
is fetched for it, with pandas and much more."""

import os
import subprocess
import sys
import tempfile
import unittest

import support

ROOT = os.path.dirname(os.path.dirname(support.HERE))
FOLDER = os.path.join(ROOT, "build", "hta")
PYTHON = os.path.join(FOLDER, "bin", "python")
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
[index] = [index for index, name in shown.items() if name == "aten::add"]
while index in shown:
    print("stack:", shown[index])
    index = parents[index]
"""


def environment():
    """Fetches it, once; skips where it can't be had."""
    if not os.environ.get("KPYTRACE_TEST_LONG"):
        raise unittest.SkipTest("Holistic Trace Analysis is fetched by `make test-all` only")
    if sys.version_info[:2] != (3, 12):
        raise unittest.SkipTest("the files are the same on all Pythons: 3.12 has this test")
    if os.path.exists(os.path.join(FOLDER, ".complete")):
        return
    for command in ([sys.executable, "-m", "venv", "--clear", FOLDER],
                    [PYTHON, "-m", "pip", "install", "--quiet", *NEEDS]):
        reply = subprocess.run(command, capture_output=True, text=True)
        if reply.returncode != 0:
            raise unittest.SkipTest(f"no Holistic Trace Analysis: {reply.stderr.strip()[-200:]}")
    with open(os.path.join(FOLDER, ".complete"), "w"):
        pass


class Analysis(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        environment()

    def test_call_stacks(self):
        for mode in ("fast", "full"):
            with self.subTest(mode=mode), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "trace.json.gz")
                support.program(EXPORT.format(path=path), mode)
                reply = subprocess.run([PYTHON, "-W", "ignore", "-c", ANALYSIS, path],
                                       capture_output=True, text=True,
                                       env=support.environment(PYTHONPATH=""))
                self.assertEqual(reply.returncode, 0, reply.stderr)
                stack = [line.partition(": ")[2] for line in reply.stdout.splitlines()
                         if line.startswith("stack: ")]
                self.assertEqual([name.rpartition(": ")[2] for name in stack[:4]],
                                 ["aten::add", "adds", "span", "work"], stack)


if __name__ == "__main__":
    unittest.main()
