"""Recordings of samples: their sums are those of all blocks, whichever allocator is below."""

import ctypes
import os
import pathlib
import sys
import tracemalloc
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from snapshots import Snapshot
from support import BACKEND, FREE_THREADED, MemoryCase, TAG, line_of, run_python

import kpytrace

WHY_SKIPPED = f"there is no backend for CPython {TAG} beside the plugin, or none that records memory"
HERE = __file__


def keep_bytes(sizes):
    return [bytes(size) for size in sizes]


def allocate_and_free(count):
    for _ in range(count):
        bytes(100000)


def grow_and_shrink(count):
    kept = []
    for i in range(count):
        one = [None] * 30 if i % 2 else [None] * 300
        one.append(None)
        del one[5:]
        kept.append(one)
    return kept


def estimate(snapshot, entries):
    return sum(e["size"] * snapshot.weight(e["size"]) for e in entries)


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, WHY_SKIPPED)
class Samples(MemoryCase):
    def test_samples_add_up(self):
        sizes = [50 + i * 7919 % 5000 if i % 100 else 100000 for i in range(40000)]
        snapshot, kept = self.record(keep_bytes, sizes, sample_bytes=4000)
        total = sum(map(sys.getsizeof, kept))
        sampled = snapshot.allocated(line_of(keep_bytes, 1), HERE)
        self.assertLess(len(sampled), len(kept))
        for estimate in (sum(e["size"] * snapshot.weight(e["size"]) for e in sampled),
                         sum(b["size"] * snapshot.weight(b["size"]) for b in snapshot.blocks)):
            self.assertAlmostEqual(estimate / total, 1, delta=0.05)
        self.assertAlmostEqual(sum(snapshot.weight(e["size"]) for e in sampled) / len(kept), 1,
                               delta=0.05)

    def test_frees_of_samples_are_recorded_and_no_others(self):
        snapshot, _ = self.record(allocate_and_free, 5000, sample_bytes=1000000)
        sampled = snapshot.allocated(line_of(allocate_and_free, 2), HERE)
        self.assertGreater(len(sampled), 300)
        self.assertLess(len(sampled), 700)
        addresses = {e["addr"] for e in sampled}
        frees = [e for e in snapshot.entries if e["action"] == "free_completed"]
        self.assertEqual(sum(e["addr"] in addresses for e in frees), len(sampled))
        self.assertEqual(snapshot.own["frees_of_earlier_blocks"], 0)

    def test_small_blocks_are_their_domains(self):
        snapshot, kept = self.record(keep_bytes, [100] * 40000, sample_bytes=300)
        sampled = snapshot.allocated(line_of(keep_bytes, 1), HERE)
        small = [e for e in sampled if e["size"] == sys.getsizeof(kept[0])]
        self.assertAlmostEqual(estimate(snapshot, small) / sum(map(sys.getsizeof, kept)), 1, delta=0.05)
        objects = {e["addr"] for e in snapshot.data["device_traces"][2]}
        self.assertLessEqual({e["addr"] for e in small}, objects)

    def test_ends_of_small_blocks(self):
        with kpytrace.memory(sample_bytes=1000) as m:
            kept = keep_bytes([100] * 40000)
            size = sys.getsizeof(kept[0])
            del kept
            m.export(self.path)
        snapshot = Snapshot(self.path).check(self)
        self.assertGreater(sum(e["size"] == size for e in snapshot.entries), 5000)
        self.assertLess(sum(b["size"] == size for b in snapshot.blocks), 20)

    def test_blocks_that_are_resized(self):
        """A block that stays in the raw domain when it shrinks is not counted twice."""
        exact, _ = self.record(grow_and_shrink, 20000)
        sampled, _ = self.record(grow_and_shrink, 20000, sample_bytes=100)
        for offset in (3, 4, 5):
            line = line_of(grow_and_shrink, offset)
            whole = sum(e["size"] for e in exact.allocated(line, HERE))
            guess = estimate(sampled, sampled.allocated(line, HERE))
            self.assertAlmostEqual(guess / whole, 1, delta=0.06, msg=offset)

    def test_python_counts_its_blocks_as_before(self):
        before = sys.getallocatedblocks()
        with kpytrace.memory(sample_bytes=100):
            keep_bytes([100] * 50000)
        self.assertLess(abs(sys.getallocatedblocks() - before), 2000)

    @unittest.skipIf("ASAN_OPTIONS" in os.environ, "AddressSanitizer is below all of them, and has the samples above")
    def test_other_allocators(self):
        for name in ("malloc", "debug"):
            done = run_python(__file__, "Samples.test_samples_add_up", "Samples.test_blocks_that_are_resized",
                              "Samples.test_frees_of_samples_are_recorded_and_no_others",
                              "Samples.test_ends_of_small_blocks", env={"PYTHONMALLOC": name})
            self.assertEqual(done.returncode, 0, f"{name}: {done.stderr}")

    def test_beside_hooks_that_stay(self):
        """Hooks of a recording that ended below another's hooks pass every call on, and do not count it."""
        m = kpytrace.memory(sample_bytes=1000).start()
        tracemalloc.start()
        m.stop()
        try:
            for sample in (300, 0, 300):
                snapshot, kept = self.record(keep_bytes, [100] * 40000, sample_bytes=sample)
                blocks = [b for b in snapshot.blocks if b["size"] == sys.getsizeof(kept[0])]
                self.assertAlmostEqual(estimate(snapshot, blocks) / sum(map(sys.getsizeof, kept)), 1,
                                       delta=0.05)
        finally:
            tracemalloc.stop()

    def test_code_that_is_first_seen_below_tracemalloc(self):
        """It allocates raw memory with its lock held, as when a list that was freed is used again: then nothing
        of Python's may be allocated, not even for the name of code that was never seen before."""
        code = [compile("[]", f"{i}.py", "eval") for i in range(2000)]
        with kpytrace.memory(sample_bytes=50):
            tracemalloc.start()
            try:
                _ = [[] for _ in range(1000)]  # so that those that are used again are known to it
                _ = None
                seen = sum(len(eval(c)) == 0 for c in code)
            finally:
                tracemalloc.stop()
        self.assertEqual(seen, 2000)

    def test_the_child_of_a_fork_has_its_own_hooks_alone(self):
        """The child does not have the hooks of its parent below its own: after a stop, Python's own are restored."""
        name = ctypes.pythonapi._PyMem_GetCurrentAllocatorName
        name.restype = ctypes.c_char_p
        before = name()
        with kpytrace.memory(sample_bytes=1000):
            child = os.fork()
            if not child:
                with kpytrace.memory(sample_bytes=1000):
                    keep_bytes([100] * 1000)
                os._exit(0 if name() == before else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


if __name__ == "__main__":
    unittest.main()
