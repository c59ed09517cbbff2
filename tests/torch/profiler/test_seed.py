"""torch's own three tests of its Python tracer, run with kpytrace."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

C_METHOD = """
import time, traced
from torch.profiler import profile, ProfilerActivity

class A:
    method_with_c_function = classmethod(repr)

def get_key(x):
    A().method_with_c_function()
    time.sleep(1.2)
    return len(x)

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True) as prof:
    sorted(["Alice", "Bob"], key=get_key)
print(max([row["dur"] for row in traced.calls(prof)
           if row["name"] == "<built-in function sorted>"], default=0))
"""

MONITORING = """
import json
from sys import monitoring
from torch.profiler import profile, ProfilerActivity
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True):
    inside = monitoring.get_tool(2)
print(json.dumps([inside, monitoring.get_tool(2)]))
"""

C_RETURNS = """
import threading, time, torch
from threading import Event, Lock
lock = Lock()
lock.acquire()
event1, event2, event3 = Event(), Event(), Event()

def run():
    event1.set()
    event2.wait()
    lock.acquire()
    event3.set()

threading.Thread(target=run).start()
CPU = [torch.profiler.ProfilerActivity.CPU]
with torch.profiler.profile(activities=CPU, with_stack=True):
    event1.wait()
    event2.set()
    time.sleep(1)
with torch.profiler.profile(activities=CPU, with_stack=True):
    lock.release()
    event3.wait()
"""


class Seed(unittest.TestCase):
    def test_method_with_c_function(self):
        self.assertGreater(support.program(C_METHOD, "all").value, 2_000_000)

    @unittest.skipUnless(sys.version_info[:2] == (3, 12), "as in torch")
    def test_T43_monitoring_callback(self):
        shown = "PyTorch Profiler" if sys.version_info[2] < 5 else None
        for mode in ("full", "native"):
            self.assertEqual(support.program(MONITORING, mode).value, [shown, None])

    def test_unexpected_c_return_events(self):
        reply = support.program(C_RETURNS, "full")
        self.assertNotIn("replay stack is empty", reply.stderr)
        self.assertNotIn("kpytrace", reply.stderr)


if __name__ == "__main__":
    unittest.main()
