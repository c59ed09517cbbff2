"""Operators of many threads, with and without Python, for a long time: none is lost from a stream, and none from a ring
without being counted. A callback of its own counts them. Quick runs take seconds, long runs ten minutes each."""

import concurrent.futures
import ctypes
import os
import resource
import subprocess
import tempfile
import threading
import time
import unittest

import kpytrace
import torch
from kpytrace.torch import _compile, _environment

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 600 if os.environ.get("KPYTRACE_TEST_LONG") else 3
NOTHING = {"include": "module:no_such_module", "c_calls": False, "gpu": False}  # only operators


@torch.jit.script
def branch(x):
    for _ in range(20):
        x = x * 1.01 + 0.1
    return x.sum()


@torch.jit.script
def branches(x):
    """torch.jit.fork runs its branches on torch's own threads, which have no Python."""
    first, second = torch.jit.fork(branch, x), torch.jit.fork(branch, x + 1)
    return torch.jit.wait(first) + torch.jit.wait(second)


def train(until):
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8))
    number = 0
    with concurrent.futures.ThreadPoolExecutor(1) as other:  # the forward operators are another thread's
        while time.monotonic() < until:
            with torch.profiler.record_function(f"step {number}"):
                loss = net(torch.ones(2, 8)).square().mean() + branches(torch.ones(4))
                other.submit(loss.backward).result()
            number += 1


class Long(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        library = os.path.join(folder.name, "counter.so")
        subprocess.run(_compile.command(torch, _environment.find_compiler(), os.path.join(HERE, "operator_counter.cc"),
                                        library), check=True)
        cls.counter = ctypes.CDLL(library)
        cls.counter.counter_end.restype = ctypes.c_uint64
        torch.set_num_threads(1)
        train(time.monotonic() + 1)  # torch's threads begin, and branches() is compiled

    def record(self, path=None, **options):
        """Returns the trace, the number of operators that torch began while it ran, and the sizes of the process."""
        trace = kpytrace.start(path, torch=True, **NOTHING, **options)
        self.counter.counter_begin()
        until, memory = time.monotonic() + SECONDS, []
        threads = [threading.Thread(target=train, args=(until,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(SECONDS / 20)
            with open("/proc/self/statm", encoding="ascii") as file:
                memory.append(int(file.read().split()[1]) * resource.getpagesize())
        count = self.counter.counter_end()
        trace.stop()
        stats = trace.stats()
        print(f"{count:,} operators, {stats['threads']:,} threads, {stats['events']:,} events, "
              f"{stats['events_dropped']:,} dropped, memory {memory[len(memory) // 4] >> 20} to {memory[-1] >> 20} MB",
              flush=True)
        return trace, count, memory

    def rows(self, path):
        from kpytrace._api import native

        handle = native.standalone.open(native.load(), path, False)[0]
        rows = native.standalone.operators(handle, False, None)
        native.standalone.close(handle)
        return sum(row[4] for row in rows)

    def test_a_stream_has_all(self):
        path = os.path.join(self.folder, "stream.kpt")
        trace, count, _ = self.record(path)
        self.assertEqual(trace.stats()["events_dropped"], 0)
        self.assertEqual(self.rows(path), count)

    def test_a_ring_counts_what_it_drops(self):
        trace, count, memory = self.record(ring_bytes="1MB")
        path = os.path.join(self.folder, "ring.kpt")
        trace.write(path)
        stats = trace.stats()
        kept = self.rows(path)
        print(f"kept {kept:,}", flush=True)
        self.assertGreater(stats["events_dropped"], 0)
        self.assertLess(memory[-1], memory[len(memory) // 4] * 1.1 + (16 << 20))
        # An operator is two events; a detail and the open operators of a chunk are events, too.
        self.assertGreaterEqual(stats["events_dropped"] + stats["events"], 2 * count)

    def test_times_beside_python(self):
        """The calls that are open where an operator begins a chunk have lines, which were recorded long before. Their times
        must not become times of the chunk: the counter's low half has begun again meanwhile."""
        net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8))
        trace = kpytrace.start(torch=True, gpu=False, ring="1000s")
        until = time.monotonic() + 5
        while time.monotonic() < until or trace.stats()["chunks_sealed"] < 20:
            net(torch.ones(2, 8)).square().mean().backward()
        trace.stop()
        trace.write(os.path.join(self.folder, "python.kpt"))
        self.assertEqual(trace.stats()["events_repaired"], 0)


if __name__ == "__main__":
    unittest.main()
