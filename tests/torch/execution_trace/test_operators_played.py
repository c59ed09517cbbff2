"""torch's operators and the GPU work that they launch, without a GPU: a stand-in of CUPTI plays the launches."""

import collections
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
for folder in ("tests/torch/support", "tests/fixtures/cupti"):
    sys.path.insert(0, str(ROOT / folder))
import support

if not os.environ.get("KPT_STAND_IN_CUPTI"):
    print("skipped: GPU activities were not built")
    raise SystemExit(77)
import played
import torch

import kpytrace

READERS = ROOT / "build" / "readers" / "bin" / "python"
PERFETTO = ROOT / "tests" / "python" / "support" / "perfetto_calls.py"
launch = played.launcher(os.environ["KPT_STAND_IN_CUPTI"], os.environ["KPT_STAND_IN_CUDA"], "played_kernel")


LIBRARY = torch.library.Library("played", "DEF")
LIBRARY.define("launch(Tensor x) -> Tensor")


@torch.library.impl(LIBRARY, "launch", "CPU")
def launch_in_operator(x):
    launch()
    return x + 1


def backward_hook(*_):
    torch.ops.played.launch(torch.ops.played.launch(torch.ones(2)))


def step():
    """Launches a kernel in the forward pass, and two for the backward pass of its multiplication."""
    x = torch.ones(2, requires_grad=True) * 2
    x.grad_fn.register_hook(backward_hook)
    torch.ops.played.launch(x.detach())
    x.sum().backward()


class Played(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        for name, steps in (("one", 1), ("three", 3)):
            trace = kpytrace.start(torch=True, gpu="calls")
            for i in range(steps):
                with torch.profiler.record_function(f"step#{i}"):
                    step()
            trace.stop()
            trace.write(cls.path(f"{name}.kpt"))
            trace.close()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def command(self, *words):
        reply = support.python("-m", "kpytrace", *words)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return reply.stdout

    @unittest.skipUnless(READERS.exists(), "there are no readers")
    def test_perfetto(self):
        """Also of two ranks: each has numbers of its own."""
        self.command("merge", "-q", self.path("one.kpt"), self.path("three.kpt"), "-o", self.path("x.pftrace"))
        reply = subprocess.run([READERS, PERFETTO, self.path("x.pftrace")], stdout=subprocess.PIPE, check=True)
        launched, kinds = collections.defaultdict(collections.Counter), collections.Counter()
        for kind, name, _, notes, track, parent in json.loads(reply.stdout)["slices"]:
            if "External id" in notes:
                launched[notes["External id"]][kind, name] += 1
            if kind == "kernel" and "forward at" in notes:
                self.assertRegex(notes["forward at"], r"test_operators_played.py\(\d+\): step$")
                kinds["backward kernels"] += 1
            if kind in ("user_annotation", "gpu_user_annotation") and name.startswith("step#"):
                kinds[kind] += 1
                self.assertTrue(kind == "user_annotation" or (track == "annotations" and "stream" in parent), track)
        self.assertEqual(kinds, {"backward kernels": 8, "user_annotation": 4, "gpu_user_annotation": 4})
        self.assertEqual(len(launched), 12)
        for counts in launched.values():
            self.assertEqual(counts, {("cpu_op", "played::launch"): 1, ("kernel", "played_kernel"): 1,
                                      ("cuda_driver", "cuLaunchKernel"): 1})

    def test_torchs_profiler_inside_a_trace(self):
        """A line says that it gets nothing of the GPU, once, and torch's functions are as before after the trace."""
        calls, profiler = [], torch.autograd.profiler

        def enable(config, activities):
            calls.append(activities)
        with mock.patch.object(profiler, "_enable_profiler", enable), \
                contextlib.redirect_stderr(io.StringIO()) as errors:
            trace = kpytrace.start(gpu=True)
            profiler._enable_profiler("config", {"ProfilerActivity.CPU"})
            self.assertEqual(errors.getvalue(), "")
            for _ in range(2):
                profiler._enable_profiler("config", {"ProfilerActivity.CPU", "ProfilerActivity.CUDA"})
            left = profiler._enable_profiler
            trace.stop()
            self.assertIs(profiler._enable_profiler, enable)
            left("config", {"ProfilerActivity.CUDA"})
        self.assertEqual(len(calls), 4)
        self.assertEqual(errors.getvalue().count("torch.profiler gets no GPU activities"), 1)

    def test_what_changed(self):
        words = "--ops", self.path("one.kpt"), self.path("three.kpt")
        rows = {row["name"]: row for row in json.loads(self.command("diff", "-q", "--json", *words))}
        for name in ("played::launch", "annotation step#*"):
            self.assertGreater(rows[name]["gpu_total_before"], 0)
            self.assertAlmostEqual(rows[name]["gpu_total_after"] / rows[name]["gpu_total_before"], 3, places=1)
        self.assertEqual((rows["played::launch"]["calls_before"], rows["played::launch"]["calls_after"]), (3, 9))
        self.assertEqual(rows["played::launch"]["gpu_own_before"], rows["annotation step#*"]["gpu_total_before"])
        self.assertEqual(rows["annotation step#*"]["gpu_own_before"], 0)
        self.assertRegex(self.command("diff", "-q", *words), "GPU before +after")


if __name__ == "__main__":
    unittest.main()
