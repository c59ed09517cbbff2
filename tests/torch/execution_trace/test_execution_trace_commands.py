"""kpytrace et on real traces: ours, torch's own, and that of a program that was killed."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import torch

import kpytrace.torch

TRAIN = """
import os, signal, sys, torch, kpytrace.torch
observer = kpytrace.torch.ExecutionTraceObserver().register_callback(sys.argv[1])
observer.start()
layer = torch.nn.Linear(8, 4)
for _ in range(20):
    with torch.profiler.record_function("## STEP ##"):
        layer(torch.randn(3, 8)).sum().backward()
with torch.profiler.record_function("## LAST ##"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def train():
    layer = torch.nn.Linear(8, 4)
    for _ in range(5):
        layer(torch.randn(3, 8)).sum().backward()


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def et(self, *words, status=0):
        done = subprocess.run([sys.executable, "-m", "kpytrace", "et", *words], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        return done.stdout

    def record(self, kind, name):
        observer = kind().register_callback(str(self.folder / name))
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                    execution_trace_observer=observer) as prof:
            train()
        prof.export_chrome_trace(str(self.folder / "profile.json"))

    def read(self, name):
        return json.loads((self.folder / name).read_text())

    def test_both_are_read_and_linked(self):
        for kind in (kpytrace.torch.ExecutionTraceObserver, torch.profiler.ExecutionTraceObserver):
            self.record(kind, "a.json")
            self.assertEqual(self.et("check", "a.json"), "")
            self.assertIn("aten::addmm", self.et("info", "a.json"))
            self.et("link", "a.json", "profile.json", "b.json")
            for node in self.read("b.json")["nodes"]:
                names = [attr["name"] for attr in node["attrs"]]
                self.assertEqual(names[-1] == "kineto", "[pytorch|" not in node["name"], node)
            self.et("diff", "a.json", "b.json")
            self.assertEqual(self.et("check", "b.json"), "")

    def test_ours_and_torchs_are_the_same_run(self):
        self.record(torch.profiler.ExecutionTraceObserver, "a.json")
        self.record(kpytrace.torch.ExecutionTraceObserver, "b.json")
        self.et("diff", "a.json", "b.json")
        self.et("convert", "b.json", "b.chrome.json")
        events = self.read("b.chrome.json")["traceEvents"]
        self.assertTrue(any("train" in frame for e in events if e["name"] == "aten::addmm"
                            for frame in e["args"]["Python stack"]))

    def test_a_program_that_was_killed(self):
        path = self.folder / "killed.json"
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", TRAIN, path], check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.et("info", "killed.json", status=1)
        self.et("recover", "killed.json")
        self.assertEqual(self.et("check", "killed.json"), "")
        nodes = self.read("killed.json")["nodes"]
        self.assertEqual(sum(node["name"] == "## STEP ##" for node in nodes), 20)
        last = next(node for node in nodes if node["name"] == "## LAST ##")
        self.assertEqual(last["attrs"][-1]["value"]["ended_by"], "kill")
        self.assertTrue(os.path.exists(f"{path}.journal"))


if __name__ == "__main__":
    unittest.main()
