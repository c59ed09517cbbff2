"""kpytrace.torch.memory: every tensor in the processor's memory is in the recording, once, with its size and
its stack, for any thread; and torch is restored afterwards."""

import json
import os
import pathlib
import random
import sys
import tempfile
import threading
import tracemalloc
import unittest

import torch
from torch.cuda import _memory_viz

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from tensors import CPU, Exported, Recorded, Snapshot, bytes_of

import kpytrace
import kpytrace.torch

TYPES = (torch.uint8, torch.float16, torch.float32, torch.float64, torch.complex128, torch.bool)


def in_threads(count, function):
    errors = []

    def guarded(number):
        try:
            function(number)
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class Tensors(unittest.TestCase):
    def test_small_and_large(self):
        sizes = [1, 7, 64, 1000, 10**6, 5 * 10**7]

        def make():
            return [torch.empty(size, dtype=torch.uint8) for size in sizes]
        recorded = Recorded(make)
        self.assertEqual(recorded.allocated(make), sizes)
        self.assertEqual(recorded.alive(), sum(sizes))
        self.assertEqual(recorded.devices[CPU], "cpu")

    def test_totals(self):
        shapes = random.Random(5)

        def make():
            return [torch.empty([shapes.randrange(1, 20) for _ in range(shapes.randrange(1, 4))],
                                dtype=shapes.choice(TYPES)) for _ in range(300)]
        recorded = Recorded(make)
        self.assertEqual(recorded.allocated(make), bytes_of(recorded.result))

    def test_what_is_freed(self):
        def make():
            kept = []
            for number in range(100):
                tensor = torch.empty(1000 + number, dtype=torch.uint8)
                if number % 10 == 0:
                    kept.append(tensor)
            return kept
        recorded = Recorded(make)
        self.assertEqual(recorded.alive(), sum(bytes_of(recorded.result)))
        self.assertEqual(sum(entry["action"] == "free_completed" for entry in recorded.entries), 90)

    def test_empty_ones_and_views_are_none(self):
        whole = torch.ones(100)

        def make():
            return torch.empty(0), whole[3:7], whole.view(10, 10).t(), whole.detach()
        self.assertEqual(Recorded(make).allocated(), [])

    def test_a_storage_that_grows(self):
        def make():
            tensor = torch.empty(10, dtype=torch.uint8)
            tensor.resize_(1000)
            return tensor
        recorded = Recorded(make)
        self.assertEqual(recorded.allocated(make), [10, 1000])
        self.assertEqual(recorded.alive(), 1000)

    def test_blocks_of_before_and_of_after(self):
        before = [torch.ones(100) for _ in range(10)]

        def make():
            before.clear()
            return torch.ones(7)
        recorded = Recorded(make)
        self.assertEqual([entry["size"] for entry in recorded.entries], [28])
        recorded.result = None  # by our deleter, when nobody records

    def test_numpy_is_not_counted(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("there is no numpy")

        def make():
            array = numpy.ones(10**5)
            tensor = torch.from_numpy(array)
            return array, tensor, tensor.numpy(), torch.ones(3).numpy()
        self.assertEqual(Recorded(make).allocated(), [12])

    def test_threads(self):
        """Allocated in many threads, freed in others."""
        def make():
            given = [[] for _ in range(8)]

            def work(number):
                for size in range(1, 201):
                    given[number].append(torch.empty(size * 8 + number, dtype=torch.uint8))

            def drop(number):
                given[(number + 1) % 8].clear()
            in_threads(8, work)
            in_threads(8, drop)
            return work
        recorded = Recorded(make)
        self.assertEqual(sorted(recorded.allocated(recorded.result)),
                         sorted(size * 8 + number for size in range(1, 201) for number in range(8)))
        self.assertEqual(recorded.alive(), 0)

    def test_backward_in_threads(self):
        weights = [torch.ones(50, 50 + number, requires_grad=True) for number in range(4)]

        def make():
            in_threads(4, lambda number: (weights[number] * 2).sum().backward())
        recorded = Recorded(make)
        backward = [entry["size"] for entry in recorded.entries
                    if entry.get("category") == "backward"]
        for weight in weights:
            self.assertIn(weight.numel() * 4, backward)
        self.assertEqual({entry["category"] for entry in recorded.entries if "category" in entry},
                         {"backward", "unknown"})

    def test_no_room_for_a_tensor(self):
        def make():
            with self.assertRaises(RuntimeError):
                torch.empty(1 << 58, dtype=torch.uint8)
            return torch.ones(2)
        self.assertEqual(Recorded(make).allocated(), [8])

    def test_cycles(self):
        recording = kpytrace.torch.memory()
        kept = []
        for number in range(20):
            recording.start()
            kept.append(torch.empty(100 + number, dtype=torch.uint8))
            recording.stop()
            kept.append(torch.empty(7))  # nobody records this
            if number % 3 == 0:
                kept.clear()
        recorded = Exported(recording)
        self.assertEqual(recorded.allocated(), [100 + number for number in range(20)])

    def test_beside_tracemalloc(self):
        def make():
            return [torch.empty(size, dtype=torch.uint8) for size in range(1, 100)]
        for start_first in (True, False):
            recording = []

            def beside():
                if not start_first:
                    tracemalloc.start()
                recording.append(make())
                tracemalloc.get_traced_memory()
                tracemalloc.stop()
            if start_first:
                tracemalloc.start()
            self.assertEqual(Recorded(beside).allocated(make), list(range(1, 100)))

    def test_torchs_own_profile_of_memory_is_the_same(self):
        def work():
            # Where there is a GPU its own events, such as cudaGetDeviceCount, are there the first time alone.
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
                kept = [torch.ones(100 + number) for number in range(10)]
                del kept
            return [(event.key, event.self_cpu_memory_usage) for event in profile.key_averages()]
        self.assertEqual(sorted(work()), sorted(Recorded(work).result))

    def test_samples(self):
        def make():
            return [torch.empty(4096, dtype=torch.uint8) for _ in range(20000)]
        recorded = Recorded(make, sample_bytes="64kB")
        sampled = recorded.allocated()
        self.assertLess(len(sampled), 4000)
        ratio = recorded.modules[""][0] / (20000 * 4096)
        self.assertAlmostEqual(ratio, 1, delta=0.25)

    def test_the_last_ones(self):
        def make():
            for size in range(1, 5001):
                torch.empty(size, dtype=torch.uint8)
        recorded = Recorded(make, max_entries=200)
        self.assertGreater(recorded.snapshot["kpytrace"]["entries_dropped"], 4000)
        self.assertEqual(recorded.allocated()[-1], 5000)

    def test_tensors_are_recorded_only_on_request(self):
        with kpytrace.memory() as recording:
            kept = torch.ones(10)
        self.assertEqual(kept.numel(), 10)
        self.assertEqual(len(Exported(recording).devices), CPU)

    def test_written_while_it_runs(self):
        with tempfile.TemporaryDirectory() as folder, kpytrace.torch.memory() as recording:
            kept = [torch.empty(1000, dtype=torch.uint8)]
            first = Snapshot(recording.export(os.path.join(folder, "first.pickle")))
            kept.append(torch.empty(2000, dtype=torch.uint8))
            second = Snapshot(recording.export(os.path.join(folder, "second.pickle")))
        self.assertEqual((first.alive(), second.alive()), (1000, 3000))

    def test_chrome_json(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "memory.json")
            with kpytrace.torch.memory(path):
                kept = torch.ones(1000)
            with open(path) as file:
                events = json.load(file)["traceEvents"]
        self.assertEqual(kept.numel(), 1000)
        self.assertEqual([event["args"]["bytes"] for event in events
                          if event["ph"] == "C" and event["name"] == "cpu"], [4000])

    def test_one_recording_at_a_time(self):
        with kpytrace.torch.memory():
            with self.assertRaisesRegex(RuntimeError, "already"):
                kpytrace.torch.memory().start()
            with self.assertRaisesRegex(RuntimeError, "already"):
                kpytrace.memory().start()

    def test_torchs_commands_read_it(self):
        def make():
            return [torch.ones(1000 + number) for number in range(50)]
        recorded = Recorded(lambda: (make(), make())[0])
        snapshot = recorded.snapshot
        text = _memory_viz.trace(snapshot)
        self.assertIn(f"Device {CPU} ----------------\n{len(recorded.entries)} entries\n", text)
        self.assertIn(f"segments: {len(snapshot['segments'])}\n", _memory_viz.segsum(snapshot))
        for command in (_memory_viz.memory, _memory_viz.segments):
            self.assertIn(".make", command(snapshot, format_flamegraph=lambda lines: lines))
        for plot in (_memory_viz.trace_plot, _memory_viz.segment_plot):
            self.assertIn("<script", plot(snapshot))


if __name__ == "__main__":
    unittest.main()
