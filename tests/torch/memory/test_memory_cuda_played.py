"""Tensors in CUDA's memory, without a GPU: torch's allocator is replaced by one that reports given events
(cuda_player.cc) to the library that listens to a real device. test_memory_cuda.py uses a real device."""

import ctypes
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import torch
from tensors import CPU, Exported

import kpytrace.torch
from kpytrace.torch import _compile, _cuda, _environment, _shim

if not torch.version.cuda:
    print("skipped: this torch is built without CUDA")
    raise SystemExit(77)

ALLOC, FREE_REQUESTED, FREE_COMPLETED, SEGMENT_ALLOC, OOM = 0, 1, 2, 3, 8


class Player:
    """The allocator that reports given events. A block is identified by its device and address."""

    def __init__(self, folder):
        path = os.path.join(folder, "libplayer.so")
        source = str(pathlib.Path(__file__).with_name("cuda_player.cc"))
        names = str(_compile.source_folder() / _compile.CUDA_FOLDER / "stub_headers")
        unit = _compile.Unit("player", "a player", "", headers=lambda torch: [names],
                             libraries=["-lc10_cuda"])
        subprocess.run(_compile.command(torch, _environment.find_compiler(), source, path, unit),
                       check=True)
        self.without_gil, self.with_gil = ctypes.CDLL(path), ctypes.PyDLL(path)
        for library in (self.without_gil, self.with_gil):
            library.player_say.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_size_t,
                                           ctypes.c_size_t, ctypes.c_void_p]
            library.player_say.restype = None
            library.player_begin.argtypes = [ctypes.c_bool, ctypes.c_bool]
            library.player_trackers.restype = ctypes.c_size_t

    def begin(self, is_initialised=True, refuses=False):
        self.with_gil.player_begin(is_initialised, refuses)

    def say(self, action, address, size=0, device=0, stream=0, has_gil=True):
        (self.with_gil if has_gil else self.without_gil).player_say(action, device, address, size, stream)

    def alloc(self, address, size, **how):
        self.say(ALLOC, address, size, **how)

    def free(self, address, **how):
        self.say(FREE_REQUESTED, address, **how)
        self.say(FREE_COMPLETED, address, **how)


def of_device(found, name):
    return found.snapshot["device_traces"][found.devices.index(name)] if name in found.devices else []


def alive(entries):
    """Returns the bytes of blocks that were not freed."""
    blocks = {}
    for entry in entries:
        blocks.pop(entry["addr"], None)
        if entry["action"] == "alloc":
            blocks[entry["addr"]] = entry["size"]
    return sum(blocks.values())


class Played(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.player = Player(cls.folder.name)
        queued = []
        with mock.patch.object(torch.cuda, "device_count", lambda: 1), \
                mock.patch.object(torch.cuda, "_lazy_call", queued.append), \
                warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            kpytrace.torch.memory()
            kpytrace.torch.memory()
            cls.queued = len(queued)
            shim = _shim.load(torch)
            library = str(_shim.build(torch, unit=_cuda.UNIT))
            cls.player.begin(is_initialised=False)
            cls.before = shim.attach_cuda(library)
            cls.player.begin(refuses=True)
            cls.refused = shim.attach_cuda(library)
            queued[0]()
            cls.said = [str(one.message) for one in said]
            cls.player.begin()
            queued[0]()
            queued[0]()
        cls.no_library = shim.attach_cuda("/none")
        cls.trackers = cls.player.with_gil.player_trackers()

    def test_attached_once_when_cuda_is_initialised(self):
        self.assertEqual([self.queued, self.trackers], [1, 1])
        self.assertEqual(self.before, "CUDA is not initialised")
        self.assertIn("has nobody listen", self.refused)
        self.assertIsNone(self.no_library)  # it is there already

    def test_a_refusal_is_reported(self):
        self.assertEqual(len(self.said), 1)
        self.assertIn("CUDA tensors are not recorded: this allocator has nobody listen", self.said[0])

    def test_sizes_devices_and_streams(self):
        player = self.player
        with kpytrace.torch.memory() as recording:
            player.alloc(0x7000_0000_0000, 1000)
            player.alloc(0x7000_0000_0400, 2000, stream=77)
            player.alloc(0x7000_0000_0000, 5, device=1)  # another device has that address again
            player.say(SEGMENT_ALLOC, 0x7000_0000_0000, 2 << 20)
            player.say(OOM, 123, 456)
            player.free(0x7000_0000_0000)
            player.free(0x7000_1000_0000)  # from before
            kept = torch.empty(3)
        found = Exported(recording)
        self.assertEqual(found.devices[CPU:], ["cpu", "cuda:0", "cuda:1"])
        zero, one = of_device(found, "cuda:0"), of_device(found, "cuda:1")
        self.assertEqual([(entry["action"], entry["addr"]) for entry in zero],
                         [("alloc", 0x7000_0000_0000), ("alloc", 0x7000_0000_0400),
                          ("free_completed", 0x7000_0000_0000), ("free_completed", 0x7000_1000_0000)])
        self.assertEqual([entry["size"] for entry in zero], [1000, 2000, 1000, 0])
        self.assertEqual(zero[1]["stream"], 77)
        self.assertEqual([(entry["action"], entry["size"]) for entry in one], [("alloc", 5)])
        self.assertEqual([sum(segment["allocated_size"] for segment in found.snapshot["segments"]
                              if segment["device"] == found.devices.index(name))
                          for name in ("cuda:0", "cuda:1")], [2000, 5])
        self.assertEqual(found.allocated(), [kept.nbytes])
        frames = zero[0]["frames"]
        self.assertEqual([frame["name"].rpartition(".")[2] for frame in frames[:3]],
                         ["say", "alloc", "test_sizes_devices_and_streams"])

    def test_threads(self):
        """With the GIL and without it, freed in another thread."""
        player, threads, blocks = self.player, 8, 500

        def work(number):
            for i in range(blocks):
                player.alloc((number + 1 << 32) + i * 512, 100 + i, has_gil=i % 2 == 0)

        def drop(number):
            other = (number + 1) % threads
            for i in range(0, blocks, 2):
                player.free((other + 1 << 32) + i * 512, has_gil=i % 4 == 0)
        with kpytrace.torch.memory() as recording:
            for step in (work, drop):
                running = [threading.Thread(target=step, args=(number,)) for number in range(threads)]
                for thread in running:
                    thread.start()
                for thread in running:
                    thread.join()
        entries = of_device(Exported(recording), "cuda:0")
        self.assertEqual(sum(entry["action"] == "alloc" for entry in entries), threads * blocks)
        self.assertEqual(alive(entries), threads * sum(100 + i for i in range(1, blocks, 2)))

    def test_modules_and_backward(self):
        player = self.player

        class Part(torch.nn.Module):
            def forward(self, value):
                player.alloc(0x1000_0000, 512)
                return value * 2

        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(context, value):
                return value * 2

            @staticmethod
            def backward(context, gradient):
                player.alloc(0x2000_0000, 1024, has_gil=False)
                return gradient * 2

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.part = Part()

            def forward(self, value):
                return self.part(value)
        with kpytrace.torch.memory() as recording:
            Twice.apply(Net()(torch.ones(3, requires_grad=True))).sum().backward()
            player.alloc(0x3000_0000, 2048)
        found = Exported(recording)
        self.assertEqual([(entry["size"], entry.get("category"), entry.get("user_metadata"))
                          for entry in of_device(found, "cuda:0")],
                         [(512, "forward", "Net.part"), (1024, "backward", None), (2048, "unknown", None)])
        self.assertEqual(found.modules["Net.part"][0] >= 512, True)

    def test_stop_and_start(self):
        player = self.player
        recording = kpytrace.torch.memory()
        for number in range(20):
            recording.start()
            player.alloc(0x5000_0000 + number * 512, 10)
            recording.stop()
            player.alloc(0x6000_0000 + number * 512, 10)
        self.assertEqual([entry["addr"] for entry in of_device(Exported(recording), "cuda:0")],
                         [0x5000_0000 + number * 512 for number in range(20)])

    def test_stops_while_others_allocate(self):
        """No thread is inside a recording that has ended, so it may be freed."""
        player, ends = self.player, threading.Event()

        def work(number):
            i = 0
            while not ends.is_set():
                player.alloc((number + 1 << 34) + i * 512, 10, has_gil=False)
                player.free((number + 1 << 34) + i * 512, has_gil=False)
                i += 1
        running = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in running:
            thread.start()
        try:
            for _ in range(30):
                with kpytrace.torch.memory(modules=False) as recording:
                    player.alloc(0x100, 1)
                recording.close()
        finally:
            ends.set()
            for thread in running:
                thread.join()

    def test_samples(self):
        player, size, count = self.player, 4096, 20000
        with kpytrace.torch.memory(sample_bytes=100_000, modules=False) as recording:
            for i in range(count):
                player.alloc((1 << 40) + i * size, size)
            for i in range(0, count, 2):
                player.free((1 << 40) + i * size)
        tables = recording.tables()
        recording.close()
        self.assertAlmostEqual(tables.total("end", "cuda:0")[0] / (size * count / 2), 1, delta=.25)

    def test_one_timeline_with_the_host(self):
        """In every format: one clock, and a counter for each device."""
        player = self.player
        order = random.Random(3)
        with kpytrace.torch.memory(modules=False) as recording:
            kept, wanted = [], []
            for i in range(200):
                if order.random() < .5:
                    kept.append(torch.empty(10_000 + i, dtype=torch.uint8))
                    wanted.append((0, kept[-1].data_ptr()))
                else:
                    wanted.append((1, (1 << 41) + i * 16384))
                    player.alloc(wanted[-1][1], 10_000 + i)
        with tempfile.TemporaryDirectory() as folder:
            with open(recording.export(os.path.join(folder, "memory.json"))) as file:
                events = json.load(file)["traceEvents"]
            perfetto = recording.export(os.path.join(folder, "memory.pftrace"))
            with open(perfetto, "rb") as file:
                text = file.read()
        tables = recording.tables()
        found = Exported(recording)
        marks = {(event["args"]["Device Type"], event["args"]["Addr"]): event["ts"] for event in events
                 if event["name"] == "[memory]" and event["args"]["Bytes"] >= 10_000}
        times = [marks[block] for block in wanted]
        self.assertEqual(times, sorted(times))
        counters = {event["name"] for event in events if event["ph"] == "C"}
        self.assertLessEqual({"cpu", "cuda:0"}, counters)
        self.assertIn(b"cuda:0", text)
        self.assertEqual(tables.total("end", "cuda:0")[0], alive(of_device(found, "cuda:0")))
        entries = {(kind, entry["addr"]): entry["time_us"]
                   for kind, name in enumerate(("cpu", "cuda:0")) for entry in of_device(found, name)}
        times = [entries[block] for block in wanted]
        self.assertEqual(times, sorted(times))


if __name__ == "__main__":
    unittest.main()
