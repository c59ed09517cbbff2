"""Tensors in a real GPU's memory are in the recording as torch's own history has them. Without a GPU
test_memory_cuda_played.py simulates them."""

import json
import os
import pathlib
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support
import torch
from torch.cuda import _memory_viz
from tensors import Exported, Recorded

import kpytrace.torch

if not torch.cuda.is_available():
    print("skipped: there is no GPU")
    raise SystemExit(77)

DEVICE = "cuda:0"


def gpu(found):
    devices = found.devices
    return found.snapshot["device_traces"][devices.index(DEVICE)] if DEVICE in devices else []


def allocated(found):
    return [entry["size"] for entry in gpu(found) if entry["action"] == "alloc"]


def alive(found):
    return sum(segment["allocated_size"] for segment in found.snapshot["segments"]
               if segment["device"] == found.devices.index(DEVICE))


def requested():
    """Returns the sizes that programs have requested, before torch rounds them up."""
    torch.cuda.synchronize()
    return torch.cuda.memory_stats(0)["requested_bytes.all.current"]


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device=DEVICE)


class Cuda(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.warm = empty(1) + 1  # the context, and what torch allocates for itself

    def test_sizes(self):
        sizes = [1, 511, 512, 513, 100_000, 3 << 20, 50 << 20]
        before = requested()

        def make():
            return [empty(size) for size in sizes]
        found = Recorded(make)
        self.assertEqual(allocated(found), sizes)
        self.assertEqual(alive(found), sum(sizes))
        self.assertEqual(requested() - before, sum(sizes))
        self.assertEqual(found.allocated(), [])  # none in the processor's memory
        self.assertTrue(all(entry["frames"][0]["name"].endswith("empty") for entry in gpu(found)
                            if entry["action"] == "alloc"))

    def test_what_is_freed(self):
        def make():
            kept = []
            for number in range(100):
                tensor = empty(1000 + number)
                if number % 10 == 0:
                    kept.append(tensor)
            return kept
        before = requested()
        found = Recorded(make)
        self.assertEqual(alive(found), requested() - before)
        self.assertEqual(sum(entry["action"] == "free_completed" for entry in gpu(found)), 90)

    def test_blocks_of_before(self):
        before = [empty(4096) for _ in range(10)]
        addresses = {tensor.data_ptr() for tensor in before}

        def make():
            before.clear()
        found = Recorded(make)
        self.assertEqual({entry["addr"] for entry in gpu(found)}, addresses)
        self.assertEqual({entry["action"] for entry in gpu(found)}, {"free_completed"})

    def test_as_torchs_own_history(self):
        """Both at once: the same blocks, in the same order, of the same sizes."""
        model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(),
                                    torch.nn.Linear(128, 8)).to(DEVICE)
        data = torch.randn(32, 64, device=DEVICE)
        model(data).sum().backward()  # what libraries keep
        model.zero_grad()
        torch.cuda.synchronize()
        torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
        try:
            with kpytrace.torch.memory() as recording:
                for _ in range(3):
                    model(data).sum().backward()
                torch.cuda.synchronize()
            theirs = torch.cuda.memory._snapshot()["device_traces"][0]
        finally:
            torch.cuda.memory._record_memory_history(enabled=None)
        actions = {"alloc": "alloc", "free_requested": "free_completed"}
        theirs = [(actions[entry["action"]], entry["addr"], entry["size"])
                  for entry in theirs if entry["action"] in actions]
        ours = [(entry["action"], entry["addr"], entry["size"]) for entry in gpu(Exported(recording))]
        self.assertTrue(theirs)
        self.assertEqual([block[:2] for block in ours], [block[:2] for block in theirs])
        self.assertEqual([block[2] for block in ours if block[0] == "alloc"],
                         [block[2] for block in theirs if block[0] == "alloc"])

    def test_modules(self):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = torch.nn.Linear(100, 200)
                self.second = torch.nn.Linear(200, 10)

            def forward(self, value):
                return self.second(torch.relu(self.first(value)))
        net = Net().to(DEVICE)
        data = torch.randn(50, 100, device=DEVICE)
        net(data).sum().backward()
        net.zero_grad()

        def make():
            result = net(data)
            result.sum().backward()
            return result
        found = Recorded(make)
        blocks = [(entry.get("user_metadata"), entry.get("category"), entry["size"])
                  for entry in gpu(found) if entry["action"] == "alloc"]
        self.assertIn(("Net.first", "forward", 50 * 200 * 4), blocks)
        self.assertIn(("Net", "forward", 50 * 200 * 4), blocks)
        self.assertIn(("Net.second", "forward", 50 * 10 * 4), blocks)
        backward = [size for _, category, size in blocks if category == "backward"]
        for parameter in net.parameters():
            self.assertIn(parameter.grad.nbytes, backward)

    def test_threads(self):
        kept = [[] for _ in range(6)]

        def work(number):
            for i in range(200):
                tensor = empty(1000 * (number + 1) + i)
                if i % 2:
                    kept[number].append(tensor)

        def make():
            threads = [threading.Thread(target=work, args=(number,)) for number in range(len(kept))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        before = requested()
        found = Recorded(make)
        self.assertEqual(len(allocated(found)), 200 * len(kept))
        self.assertEqual(alive(found), requested() - before)

    def test_streams(self):
        stream = torch.cuda.Stream()

        def make():
            with torch.cuda.stream(stream):
                return empty(12345)
        entry, = gpu(Recorded(make))
        self.assertEqual(entry["stream"], stream.cuda_stream)

    def test_start_and_stop_again(self):
        recording = kpytrace.torch.memory()
        kept = []
        for number in range(10):
            recording.start()
            kept.append(empty(10_000 + number))
            recording.stop()
            kept.append(empty(20_000 + number))
        self.assertEqual(allocated(Exported(recording)), list(range(10_000, 10_010)))

    def test_samples(self):
        with kpytrace.torch.memory(sample_bytes=100_000, modules=False) as recording:
            kept = [empty(4096) for _ in range(20_000)]
        total = recording.tables().total("end", DEVICE)[0]
        recording.close()
        self.assertAlmostEqual(total / sum(tensor.nbytes for tensor in kept), 1, delta=.25)

    def test_torchs_commands(self):
        snapshot = Recorded(lambda: [empty(10_000) for _ in range(5)]).snapshot
        self.assertIn("entries", _memory_viz.trace(snapshot))
        self.assertIn("segments", _memory_viz.segsum(snapshot))
        for plot in (_memory_viz.trace_plot, _memory_viz.segment_plot):
            self.assertIn("<script", plot(snapshot))

    def test_one_timeline_with_the_host(self):
        with kpytrace.torch.memory(modules=False) as recording:
            kept = []
            for number in range(100):
                device = DEVICE if number % 3 else "cpu"
                kept.append(torch.empty(10_000 + number, dtype=torch.uint8, device=device))
        with tempfile.TemporaryDirectory() as folder:
            with open(recording.export(os.path.join(folder, "memory.json"))) as file:
                events = json.load(file)["traceEvents"]
        recording.close()
        marks = {(event["args"]["Device Type"], event["args"]["Addr"]): event["ts"] for event in events
                 if event["name"] == "[memory]" and event["args"]["Bytes"] >= 10_000}
        times = [marks[int(tensor.is_cuda), tensor.data_ptr()] for tensor in kept]
        self.assertEqual(times, sorted(times))
        self.assertLessEqual({"cpu", DEVICE}, {event["name"] for event in events if event["ph"] == "C"})

    def test_cuda_begins_after_the_recording(self):
        """The recording does not initialise CUDA, since the program may fork later."""
        reply = support.program("""
            import json, torch, kpytrace.torch
            from tensors import Exported
            recording = kpytrace.torch.memory().start()
            began = torch.cuda.is_initialized()
            kept = torch.empty(54321, dtype=torch.uint8, device="cuda:0")
            recording.stop()
            found = Exported(recording)
            trace = found.snapshot["device_traces"][found.devices.index("cuda:0")]
            print(json.dumps([began, [entry["size"] for entry in trace].count(54321)]))
        """)
        self.assertEqual(reply.value, [False, 1])


if __name__ == "__main__":
    unittest.main()
