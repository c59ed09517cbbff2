"""A long profile of a training step, with stacks: stop() takes no processor time to speak of, and the export has bounded
memory. Quick runs take seconds, long runs a minute, which is some 10^7 events; the figures are printed."""

import json
import os
import pathlib
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
for folder in ("tests/torch/support", "bench/measure"):
    sys.path.insert(0, str(ROOT / folder))

import recorded
import torch
from training_step import Step

import kpytrace.torch

SECONDS = 60 if os.environ.get("KPYTRACE_TEST_LONG") else 1.5
STEPS = 5  # between two looks at the clock
# What an export may take: so many bytes an event, of which a call or an operator has two, and a part of fixed size.
BYTES_AN_EVENT, FIXED_BYTES = 16, 64 << 20


def status(name):
    """Returns a size of the process in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def peak_of(call):
    """Returns by how much the resident memory rises at most during CALL, and the seconds."""
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # VmHWM begins again
    began = time.process_time()
    call()
    return max(0, status("VmHWM") - before), time.process_time() - began


class Long(unittest.TestCase):
    def test_long_profile(self):
        torch.set_num_threads(1)
        step = Step()
        step(STEPS)
        prof = kpytrace.torch.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True)
        before = status("VmRSS")
        prof.start()
        until = time.monotonic() + SECONDS
        steps = 0
        while time.monotonic() < until:
            step(STEPS)
            steps += STEPS
        began = time.process_time()
        prof.stop()
        figures = {"steps": steps, "stop s": time.process_time() - began, "held MB": (status("VmRSS") - before) / 1e6}
        events = figures["events"] = recorded.events_of(prof)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("/dev/null", os.path.join(folder, "trace.json.gz")):
                peak, seconds = peak_of(lambda: prof.export_chrome_trace(name))
                kind = "json.gz" if name.endswith("gz") else "json"
                figures |= {f"{kind} peak MB": peak / 1e6, f"{kind} s": seconds}
                self.assertLess(peak, BYTES_AN_EVENT * events + FIXED_BYTES, figures)
            figures["json.gz MB"] = os.path.getsize(name) / 1e6
        print(json.dumps(figures))
        self.assertGreater(events, 1000 * steps)
        self.assertLess(figures["stop s"], 1, figures)


if __name__ == "__main__":
    unittest.main()
