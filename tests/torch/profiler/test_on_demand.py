"""T40: traces on demand, which Kineto starts itself, have Python calls from the child profiler."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

REQUEST = """
import ctypes, glob, json, os, time, torch
library, folder, stack = {arguments}
helper = ctypes.CDLL(library)

class Net(torch.nn.Linear):
    pass
net = Net(2, 2)

def marker():
    return net(torch.ones(1, 2))

with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
    pass  # Kineto is initialised by the first profiler, or by its daemon
config = f"ACTIVITIES_DURATION_MSECS=1000\\nACTIVITIES_LOG_FILE={folder}/trace.json\\n"
config += f"PROFILE_WITH_STACK={stack}\\nACTIVITIES_WARMUP_PERIOD_SECS=0\\n"
helper.kpt_request(config.encode())
began = time.monotonic()
found = []
while not found and time.monotonic() - began < 40:
    marker()
    time.sleep(0.01)
    for path in glob.glob(folder + "/trace*.json"):
        try:
            with open(path) as file:
                found = json.load(file)["traceEvents"]
        except ValueError:
            pass
rows = [event for event in found if event.get("cat") == "python_function"]
print(json.dumps([len(found) > 0, sum(event["name"].endswith(": marker") for event in rows) > 0,
                  any(event["name"] == "nn.Module: Net_0" for event in rows),
                  all("Python id" in event["args"] for event in rows)]))
"""


class OnDemand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import torch
        from kpytrace.torch import _compile, _environment

        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.library = os.path.join(folder.name, "on_demand.so")
        subprocess.run(_compile.command(torch, _environment.find_compiler(),
                                        os.path.join(support.HERE, "on_demand.cc"), cls.library), check=True)

    def request(self, stack):
        with tempfile.TemporaryDirectory() as folder:
            arguments = repr((self.library, folder, stack))
            return support.program(REQUEST.replace("{arguments}", arguments), "full", forked=True).value

    def test_T40_with_stack(self):
        self.assertEqual(self.request("true"), [True, True, True, True])

    def test_T40_without(self):
        self.assertEqual(self.request("false")[:2], [True, False])


if __name__ == "__main__":
    unittest.main()
