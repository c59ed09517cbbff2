"""torch's own commands read our memory snapshots. They are part of torch, and need no GPU."""

import os
import pathlib
import pickle
import sys
import tempfile
import unittest

import torch
from torch.cuda import _memory_viz

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

import kpytrace


def keep():
    kept = [bytes(1000 + i) for i in range(500)]
    tensors = [torch.ones(10) for _ in range(100)]
    for i in range(100):
        bytearray(5000 + i)
    return kept, tensors


class Memory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "memory.pickle")
            with kpytrace.memory(path):
                cls.kept = keep()
            with open(path, "rb") as file:
                cls.snapshot = pickle.load(file)
            cls.size = os.path.getsize(path)

    def test_trace(self):
        text = _memory_viz.trace(self.snapshot)
        for device, entries in enumerate(self.snapshot["device_traces"]):
            if entries:
                self.assertIn(f"Device {device} ----------------\n{len(entries)} entries\n", text)
        self.assertIn("free completed for", text)

    def test_segsum(self):
        """segsum checks that free and used bytes add up."""
        text = _memory_viz.segsum(self.snapshot)
        self.assertIn(f"segments: {len(self.snapshot['segments'])}\n", text)

    def test_memory_and_segments(self):
        """Flame graphs by stack, before they are drawn."""
        for command in (_memory_viz.memory, _memory_viz.segments):
            text = command(self.snapshot, format_flamegraph=lambda lines: lines)
            self.assertIn("active_allocated", text)
            self.assertIn(f"{os.path.basename(__file__)}:{keep.__code__.co_firstlineno + 1}:keep", text)

    def test_plots(self):
        for plot in (_memory_viz.trace_plot, _memory_viz.segment_plot):
            page = plot(self.snapshot)
            self.assertIn("<script", page)
            self.assertGreater(len(page), self.size)

    def test_the_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "memory.pickle")
            with open(path, "wb") as file:
                pickle.dump(self.snapshot, file)
            for command in ("trace", "stats"):
                done = support.python("-m", "torch.cuda._memory_viz", command, path)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("segments" if command == "stats" else "Device", done.stdout)


if __name__ == "__main__":
    unittest.main()
