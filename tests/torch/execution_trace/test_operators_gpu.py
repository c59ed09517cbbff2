"""torch's operators and the GPU work that they launch, in the standalone host's trace: the same links as in torch's own
files. Needs a GPU."""

import collections
import contextlib
import io
import json
import os
import tempfile
import unittest

import kpytrace
import torch
from kpytrace._cli import commands

if not torch.cuda.is_available():
    print("skipped: there is no GPU")
    raise SystemExit(77)

KINDS = ("kernel", "gpu_memcpy", "gpu_memset")


def model():
    nn = torch.nn
    return nn.Sequential(*(nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 64), nn.GELU()) for _ in range(4))).cuda()


class GpuOperators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Ours first: Kineto keeps CUPTI until the process ends."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.kpt, ours, stock = (os.path.join(folder.name, name) for name in ("trace.kpt", "trace.json", "stock.json"))
        cls.net, cls.data = model(), torch.randn(8, 64, device="cuda")
        cls.optimizer = torch.optim.Adam(cls.net.parameters(), foreach=False)
        for _ in range(3):
            cls.step()
        trace = kpytrace.start(torch=True, gpu=True)
        cls.step()
        trace.stop()
        trace.write(cls.kpt)
        trace.write(ours)
        trace.close()
        kinds = torch.profiler.ProfilerActivity
        with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA]) as profile:
            cls.step()
        profile.export_chrome_trace(stock)
        cls.ours, cls.stock = map(cls.events, (ours, stock))

    @classmethod
    def forward(cls):
        return cls.net(cls.data).square().mean()

    @classmethod
    def step(cls):
        with torch.profiler.record_function("whole step"):
            cls.optimizer.zero_grad()
            cls.forward().backward()
            cls.optimizer.step()
        torch.cuda.synchronize()

    @staticmethod
    def events(path):
        with open(path, encoding="utf-8") as file:
            return [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]

    def links(self, events):
        """Returns how often each operator launched each kernel."""
        names = {e["args"]["External id"]: e["name"] for e in events
                 if e["cat"] == "cpu_op" and "External id" in e["args"]}
        return collections.Counter((names.get(e["args"].get("External id")), e["name"]) for e in events
                                   if e["cat"] in KINDS)

    def test_kernels_belong_to_the_operators_that_torch_names(self):
        ours, stock = self.links(self.ours), self.links(self.stock)
        self.assertEqual(ours, stock)
        self.assertGreater(sum(ours.values()), 100)
        self.assertNotIn(None, [name for name, _ in ours])

    def test_backward_kernels_have_their_forward_line(self):
        events = self.ours
        main = {e["tid"] for e in events if e["name"].startswith("Optimizer.step")}
        operators = {e["args"]["External id"]: e for e in events if e["cat"] == "cpu_op" and "External id" in e["args"]}
        backward = [e for e in events if e["cat"] == "kernel" and
                    operators[e["args"]["External id"]]["tid"] not in main]
        self.assertGreater(len(backward), 20)
        for kernel in backward:
            self.assertIn("forward", kernel["args"].get("forward at", ""), kernel)

    def test_annotations_are_on_the_stream(self):
        def annotations(events):
            return collections.Counter(e["name"] for e in events if e["cat"] == "gpu_user_annotation")

        ours, stock = annotations(self.ours), annotations(self.stock)
        self.assertEqual(ours["whole step"], 1)
        self.assertEqual(ours, stock)

    def command(self, *words):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(commands.main([*words, self.kpt]), 0)
        return out.getvalue()

    def test_tables(self):
        work = sum(e["dur"] for e in self.ours if e["cat"] in KINDS) * 1000
        rows = json.loads(self.command("top", "-q", "--ops", "--json", "--count=0"))
        self.assertAlmostEqual(sum(row["gpu_own_ns"] for row in rows) / work, 1, places=3)
        whole, = (row for row in rows if row["name"] == "whole step")
        self.assertGreater(whole["gpu_total_ns"], 0)
        report = json.loads(self.command("top", "-q", "--gpu", "--json"))
        by_line = report["lines"]
        self.assertTrue(any(row["line"].startswith("backward of ") and "forward" in row["line"] for row in by_line),
                        by_line)
        self.assertFalse(any("not in the recording" in row["line"] for row in by_line), by_line)
        gaps = [gap["line"] for device in report["devices"] for gap in device["gaps"]]
        self.assertLessEqual(set(gaps), {row["line"] for row in by_line}, "autograd's threads have the forward line")
        print(self.command("top", "-q", "--ops", "--sort=gpu", "--count=5"))
        print(self.command("top", "-q", "--gpu", "--count=5"))


if __name__ == "__main__":
    unittest.main()
