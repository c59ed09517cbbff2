"""Recordings of memory: the file has exactly the allocations of real programs."""

import ctypes
import importlib.util
import json
import os
import pathlib
import sys
import threading
import tracemalloc
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from snapshots import OPCODES, Snapshot
from support import BACKEND, FREE_THREADED, MemoryCase, TAG, line_of, run_python

import kpytrace

WHY_SKIPPED = f"there is no backend for CPython {TAG} beside the plugin, or none that records memory"
HERE = __file__


def keep_some():
    kept = [bytes(100 + i) for i in range(1000)]
    kept += [bytearray(5000 + i) for i in range(100)]
    kept.append({i: str(i) * 10 for i in range(2000)})
    kept.append("x" * 3000000)
    return kept


def keep_bytes(sizes):
    return [bytes(size) for size in sizes]


def outer(depth):
    return outer(depth - 1) if depth else inner()


def inner():
    return bytes(7777)


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, WHY_SKIPPED)
class Memory(MemoryCase):
    def test_equals_tracemalloc(self):
        """By line, all that is alive. Code that a recording sees for the first time gets 16 bytes of
        ours, in Python's memory, which tracemalloc would see: so it is seen before. Where ours is below, tracemalloc's own
        tables, raw memory, are in ours."""
        self.record(keep_some)
        for ours_first in (False, True):
            with self.subTest(ours_first=ours_first):
                recording = kpytrace.memory(self.path)
                if ours_first:
                    recording.start()
                tracemalloc.start(1)
                self.addCleanup(tracemalloc.stop)
                recording.start()
                kept = keep_some()
                theirs = tracemalloc.take_snapshot()
                recording.stop()
                tracemalloc.stop()
                ours = Snapshot(self.path).check(self)
                lines = range(line_of(keep_some, 0), line_of(keep_some, 6))
                expected = {s.traceback[0].lineno: (s.size, s.count)
                            for s in theirs.statistics("lineno")
                            if s.traceback[0].filename == HERE and s.traceback[0].lineno in lines}
                found = {line: n for line, n in ours.by_line(HERE, raw=False).items()
                         if line in lines}
                self.assertEqual(found, expected)
                self.assertGreater(sum(size for size, _ in found.values()), 3600000)
                del kept
                recording.close()

    def test_growth_equals_tracemallocs(self):
        tracemalloc.start(1)
        self.addCleanup(tracemalloc.stop)
        with kpytrace.memory() as m:
            m.export(self.folder / "a.pickle")
            before = tracemalloc.get_traced_memory()[0]
            kept = keep_some()
            grown = tracemalloc.get_traced_memory()[0] - before
            m.export(self.folder / "b.pickle")
        a, b = (Snapshot(self.folder / f"{name}.pickle").bytes for name in "ab")
        self.assertGreater(grown, 3600000)
        # The number in `before`, the names of the files: some objects.
        self.assertLess(abs((b - a) - grown), 5000)
        del kept

    def test_the_viewer_knows_the_opcodes(self):
        snapshot, kept = self.record(keep_bytes, [*range(2000), 100000, 3000000])
        self.assertLessEqual(snapshot.opcodes(), OPCODES)
        del kept

    def test_stacks(self):
        snapshot, kept = self.record(outer, 3)
        block = next(b for b in snapshot.blocks if b["size"] == sys.getsizeof(kept))
        frames = [(f["name"], f["filename"], f["line"]) for f in block["frames"]]
        self.assertEqual(frames[0], ("inner", HERE, line_of(inner, 1)))
        self.assertEqual(frames[1:5], [("outer", HERE, line_of(outer, 1))] * 4)
        self.assertTrue(frames[5][0].endswith("MemoryCase.record" if TAG >= "3.11" else "record"))

    def test_max_frames(self):
        for most in (1, 2):
            snapshot, kept = self.record(outer, 3, max_frames=most)
            block = next(b for b in snapshot.blocks if b["size"] == sys.getsizeof(kept))
            self.assertEqual(len(block["frames"]), most)
            self.assertEqual(block["frames"][0]["name"], "inner")

    def test_recursion(self):
        snapshot, kept = self.record(outer, 700)
        block = next(b for b in snapshot.blocks if b["size"] == sys.getsizeof(kept))
        self.assertGreater(len(block["frames"]), 700)

    def raw(self, python):
        """Calls the raw domain's functions, with or without the GIL."""
        library = ctypes.pythonapi if python else ctypes.CDLL(None)
        functions = [getattr(library, "PyMem_Raw" + name) for name in ("Malloc", "Realloc", "Free")]
        malloc, realloc, free = functions
        malloc.restype = realloc.restype = ctypes.c_void_p
        malloc.argtypes, free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
        realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        free.restype = None
        return functions

    def test_realloc_in_place_and_moved(self):
        for python in (True, False):
            malloc, realloc, free = self.raw(python)
            sizes = (100001, 100000, 100002, 30000003, 77)

            def work():
                at = malloc(100000)
                addresses = [at]
                for size in sizes:
                    addresses.append(realloc(addresses[-1], size))
                return addresses
            snapshot, addresses = self.record(work)
            free(addresses[-1])
            self.assertGreater(len(set(addresses)), 1, "one has moved")
            if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # whose blocks never stay
                self.assertLess(len(set(addresses)), len(addresses), "one has stayed")
            found = [(e["action"], e["addr"], e["size"]) for e in snapshot.data["device_traces"][0]
                     if (e["addr"], e["size"]) in list(zip(addresses, (100000, *sizes)))]
            expected = [("alloc", addresses[0], 100000)]
            for i, size in enumerate(sizes):
                before = expected[-1]
                expected += [("free_completed", *before[1:]), ("alloc", addresses[i + 1], size)]
            self.assertEqual(found, expected)
            self.assertEqual([b["size"] for b in snapshot.blocks if b["address"] == addresses[-1]],
                             [77])

    def test_a_failed_realloc_changes_nothing(self):
        malloc, realloc, free = self.raw(True)

        def work():
            at = malloc(1234567)
            self.assertIsNone(realloc(at, sys.maxsize // 2))
            return at
        for sample in (0, 1):
            snapshot, at = self.record(work, sample_bytes=sample)
            self.assertEqual([b["size"] for b in snapshot.blocks if b["address"] == at], [1234567])
            free(at)

    @unittest.skipUnless((3, 11) <= sys.version_info[:2] <= (3, 13), "frames are not read without the GIL")
    def test_without_the_gil_the_stack_is_there(self):
        malloc, _, free = self.raw(False)
        snapshot, at = self.record(lambda: malloc(4321))
        free(at)
        block = next(b for b in snapshot.blocks if b["size"] == 4321)
        self.assertEqual(block["frames"][0]["filename"], HERE)

    def test_freed_by_another_thread(self):
        def work():
            kept = keep_bytes([5000] * 500)
            thread = threading.Thread(target=kept.clear)
            thread.start()
            thread.join()
        for sample in (0, 1000):
            snapshot, _ = self.record(work, sample_bytes=sample)
            self.assertGreater(len(snapshot.allocated(line_of(keep_bytes, 1), HERE)), 400)
            self.assertNotIn(5033, [b["size"] for b in snapshot.blocks])

    def test_threads(self):
        kept = []

        def work():
            threads = [threading.Thread(target=lambda: kept.append(keep_bytes([999] * 3000)))
                       for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        snapshot, _ = self.record(work)
        found = snapshot.allocated(line_of(keep_bytes, 1), HERE)
        self.assertEqual(sum(e["size"] == sys.getsizeof(bytes(999)) for e in found), 18000)
        self.assertEqual(sum(b["size"] == sys.getsizeof(bytes(999)) for b in snapshot.blocks), 18000)

    def test_the_last_entries(self):
        snapshot, kept = self.record(keep_bytes, range(10000), max_entries=1000)
        self.assertEqual(len(snapshot.entries), 1000)
        self.assertGreater(snapshot.own["entries_dropped"], 9000)
        sizes = {e["size"] for e in snapshot.allocated(line_of(keep_bytes, 1), HERE)}
        # Each has two entries more: the number in range() comes, and goes.
        self.assertTrue({sys.getsizeof(block) for block in kept[-300:]} <= sizes)
        whole, _ = self.record(keep_bytes, range(10000))
        self.assertAlmostEqual(1000 + snapshot.own["entries_dropped"], len(whole.entries), delta=50)

    def test_chrome_json(self):
        with kpytrace.memory() as m:
            kept = keep_some()
        m.export(self.path)
        m.export(self.folder / "memory.json")
        snapshot = Snapshot(self.path)
        trace = self.read_trace(self.folder / "memory.json")
        events, frames = trace["traceEvents"], trace["stackFrames"]
        instants = [e for e in events if e["name"] == "[memory]"]
        self.assertEqual(len(instants), len(snapshot.entries))
        self.assertEqual(instants[-1]["args"]["Total Allocated"], snapshot.bytes)
        self.assertEqual(max(e["args"]["Total Allocated"] for e in instants),
                         snapshot.own["peak_bytes"])
        last = {e["name"]: e["args"]["bytes"] for e in events if e["ph"] == "C"}
        self.assertEqual(sum(last.values()), snapshot.bytes)
        times = {(e["args"]["Addr"], e["args"]["Bytes"]): e.get("sf") for e in instants}
        for entry in snapshot.entries:
            if entry["action"] == "alloc" and entry["size"] > 4000:
                found, at = [], times[entry["addr"], entry["size"]]
                while at:
                    found.append(frames[str(at)]["name"])
                    at = frames[str(at)].get("parent")
                self.assertEqual(found, [f"{f['filename']}({f['line']}): {f['name']}" for f in entry["frames"]])
        del kept

    def test_names_of_any_kind(self):
        names = ["a\udc80\"b.py", "日本\n.py", "\U0001f600" * 200, ""]

        def work():
            kept = []
            for name in names:
                code = compile("def f():\n return bytes(4567)\n", name or "<none>", "exec")
                scope = {}
                exec(code, scope)
                kept.append(scope["f"]())
            return kept
        with kpytrace.memory(self.path) as m:
            kept = work()
        snapshot = Snapshot(self.path).check(self)
        m.export(self.folder / "a.json")
        json.loads((self.folder / "a.json").read_bytes().decode())
        found = [b["frames"][0]["filename"] for b in snapshot.blocks
                 if b["size"] == sys.getsizeof(kept[0])]
        self.assertEqual(len(found), len(names))
        self.assertLessEqual({names[1], names[2], "<none>"}, set(found))

    def test_beside_a_trace(self):
        with kpytrace.trace(self.folder / "trace.json") as t:
            snapshot, kept = self.record(keep_bytes, [3210] * 100)
        self.assertGreater(t.summary.calls, 1)
        self.assertEqual(snapshot.by_line(HERE)[line_of(keep_bytes, 1)][1] // 100, 1)
        del kept

    def test_the_hooks_allocate_nothing_that_is_recorded(self):
        snapshot, _ = self.record(lambda: None)
        self.assertLess(len(snapshot.entries), 100)

    def test_what_only_looks_like_numpy(self):
        done = run_python("-c", "import sys, types, kpytrace\n"
                          "fake = types.SimpleNamespace(_ARRAY_API=1)\n"
                          "sys.modules['numpy._core._multiarray_umath'] = fake\n"
                          "with kpytrace.memory(sys.argv[1]): kept = [0] * 1000\n", self.path)
        self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "numpy is not installed")
    def test_numpy(self):
        done = run_python("-c", "import sys, numpy, kpytrace\n"
                          "with kpytrace.memory(sys.argv[1]):\n"
                          "    kept = [numpy.ones(1000) + i for i in range(100)]\n", self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreaterEqual(Snapshot(self.path).check(self).by_line("<string>")[3][1], 100)


if __name__ == "__main__":
    unittest.main()
