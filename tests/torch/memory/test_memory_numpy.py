"""The data of numpy's arrays is in recordings of memory: as many bytes as the arrays have, for any thread that
makes or frees them. (In this folder because torch's environments have numpy; torch itself is not needed.)"""

import ctypes
import gc
import os
import pathlib
import pickle
import random
import sys
import tempfile
import threading
import tracemalloc
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

import kpytrace

try:
    import numpy
except ImportError:
    print("skipped: there is no numpy")
    raise SystemExit(77) from None

DEVICE = 3


class Found:
    """numpy's blocks in RECORDING, which is closed."""

    def __init__(self, recording):
        with tempfile.TemporaryDirectory() as folder:
            with open(recording.export(os.path.join(folder, "memory.pickle")), "rb") as file:
                snapshot = pickle.load(file)
        recording.close()
        self.name = snapshot["kpytrace"]["devices"][DEVICE]
        self.entries = snapshot["device_traces"][DEVICE]
        self.allocated = [entry["size"] for entry in self.entries if entry["action"] == "alloc"]
        self.alive = sum(segment["allocated_size"] for segment in snapshot["segments"]
                         if segment["device"] == DEVICE)


def recorded(function, **options):
    with kpytrace.memory(**options) as recording:
        result = function()
    found = Found(recording)
    found.result = result
    return found


def in_threads(count, function):
    threads = [threading.Thread(target=function, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def functions_of_numpy():
    """Returns the four current functions of numpy's handler."""
    from numpy._core import _multiarray_umath

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    capsule = ctypes.cast(table[306], ctypes.POINTER(ctypes.py_object))[0]
    fields = ctypes.cast(pointer(capsule, b"mem_handler") + 128, ctypes.POINTER(ctypes.c_void_p))
    return (ctypes.c_void_p * 4).from_address(ctypes.addressof(fields.contents) + 8)


class Numpy(unittest.TestCase):
    def test_large_and_small(self):
        sizes = [1, 8, 100, 1000, 1024, 5000, 10**6, 10**8]

        def make():
            return [numpy.empty(size, numpy.uint8) for size in sizes]
        found = recorded(make)
        self.assertEqual(found.name, "numpy")
        self.assertEqual(found.allocated, sizes)
        self.assertEqual(found.alive, sum(sizes))
        self.assertEqual({entry["frames"][0]["line"] for entry in found.entries},
                         {make.__code__.co_firstlineno + 1})

    def test_totals(self):
        shapes = random.Random(7)

        def make():
            return [shapes.choice([numpy.zeros, numpy.empty, numpy.ones])(
                [shapes.randrange(1, 30) for _ in range(shapes.randrange(1, 4))],
                shapes.choice(["u1", "f4", "f8", "c16", "S7"])) for _ in range(500)]
        found = recorded(make)
        self.assertEqual(found.alive, sum(array.nbytes for array in found.result))

    def test_what_is_freed(self):
        def make():
            kept = []
            for number in range(100):
                array = numpy.zeros(1000 + number, numpy.uint8)
                if number % 10 == 0:
                    kept.append(array)
            return kept
        found = recorded(make)
        self.assertEqual(found.alive, sum(array.nbytes for array in found.result))
        self.assertEqual(len(found.entries), 190)

    def test_views_are_none(self):
        whole = numpy.ones(1000)
        found = recorded(lambda: (whole[3:7], whole.reshape(10, 100).T, memoryview(whole), whole[::2]))
        self.assertEqual(found.entries, [])

    def test_resize(self):
        def make():
            array = numpy.zeros(10, numpy.uint8)
            array.resize(100_000, refcheck=False)
            array.resize(50, refcheck=False)
            return array
        found = recorded(make)
        self.assertEqual(found.allocated, [10, 100_000, 50])
        self.assertEqual(found.alive, 50)

    def test_blocks_of_before_and_of_after(self):
        before = [numpy.ones(1000) for _ in range(10)]
        addresses = sorted(array.ctypes.data for array in before)

        def make():
            before.clear()
            return numpy.empty(5)
        found = recorded(make)
        self.assertEqual(sorted(entry["addr"] for entry in found.entries
                                if entry["action"] == "free_completed"), addresses)
        self.assertEqual(found.alive, 40)
        found.result = None  # when nobody records

    def test_threads(self):
        """Made in many threads, half of them freed in others."""
        given = [[] for _ in range(8)]

        def work(number):
            for size in range(1, 301):
                given[number].append(numpy.empty(size * 20 + number, numpy.uint8))

        def drop(number):
            del given[(number + 1) % len(given)][::2]

        def make():
            in_threads(len(given), work)
            in_threads(len(given), drop)
        found = recorded(make)
        self.assertEqual(len(found.allocated), 8 * 300)
        self.assertEqual(found.alive, sum(array.nbytes for kept in given for array in kept))

    def test_samples(self):
        for size in (100, 3000, 200_000):
            with self.subTest(size=size):
                count = 200_000_000 // max(size, 2000)
                with kpytrace.memory(sample_bytes=100_000 if size > 1000 else 10_000) as recording:
                    kept = [numpy.empty(size, numpy.uint8) for _ in range(count)]
                    del kept[::2]
                total = recording.tables().total("end", "numpy")[0]
                recording.close()
                self.assertAlmostEqual(total / (len(kept) * size), 1, delta=.25)
                gc.collect()

    def test_beside_tracemalloc(self):
        def make():
            return [numpy.zeros(10_000 + i, numpy.uint8) for i in range(50)]
        tracemalloc.start()
        try:
            found = recorded(make)
            theirs = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
        theirs = theirs.filter_traces([tracemalloc.DomainFilter(True, 389047)])
        line = make.__code__.co_firstlineno + 1
        self.assertEqual(sum(row.size for row in theirs.statistics("lineno")
                             if row.traceback[0].filename == __file__ and row.traceback[0].lineno == line),
                         found.alive)

    def test_start_and_stop_again(self):
        """numpy's functions are restored after each stop."""
        before = list(functions_of_numpy())
        recording = kpytrace.memory()
        kept = []
        for number in range(20):
            recording.start()
            self.assertNotEqual(list(functions_of_numpy()), before)
            kept.append(numpy.empty(10_000 + number, numpy.uint8))
            recording.stop()
            self.assertEqual(list(functions_of_numpy()), before)
            kept.append(numpy.empty(20_000 + number, numpy.uint8))
        self.assertEqual(Found(recording).allocated, list(range(10_000, 10_020)))

    def test_another_handler_is_installed_after_ours(self):
        """The other handler stays, and ours below it pass calls on. No call recurses endlessly."""
        functions = functions_of_numpy()
        before = list(functions)
        calls = []
        signature = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        recording = kpytrace.memory().start()
        ours = signature(functions[0])

        @signature
        def theirs(ctx, size):
            calls.append(size)
            return ours(ctx, size)
        functions[0] = ctypes.cast(theirs, ctypes.c_void_p).value
        try:
            kept = [numpy.empty(10_000, numpy.uint8)]
            recording.stop()
            kept.append(numpy.empty(20_000, numpy.uint8))
            recording.start()
            kept.append(numpy.zeros(30_000, numpy.uint8))
            kept.append(numpy.empty(40_000, numpy.uint8))
            recording.stop()
        finally:
            functions[0] = before[0]
        self.assertLessEqual({10_000, 20_000, 40_000}, set(calls))
        self.assertEqual(Found(recording).allocated, [10_000, 30_000, 40_000])
        self.assertEqual(recorded(lambda: numpy.empty(50)).alive, 400)
        self.assertEqual(list(functions), before)

    def test_stops_while_others_allocate(self):
        ends = threading.Event()

        def work():
            while not ends.is_set():
                numpy.ones(300)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):
                with kpytrace.memory() as recording:
                    numpy.ones(1000)
                recording.close()
        finally:
            ends.set()
            for thread in threads:
                thread.join()


class Imports(unittest.TestCase):
    """Tests in new processes."""

    def value(self, code):
        return support.program("import json, os, sys, kpytrace\n" + support.textwrap.dedent(code)).value

    def test_imported_while_recording(self):
        self.assertEqual(self.value("""
            before = list(sys.meta_path)
            with kpytrace.memory() as recording:
                watched = len(sys.meta_path) - len(before)
                import numpy
                kept = numpy.ones(12345)
            import test_memory_numpy as tests
            found = tests.Found(recording)
            print(json.dumps([watched, sys.meta_path == before, found.allocated.count(kept.nbytes)]))
        """), [1, True, 1])

    def test_never_imported(self):
        self.assertEqual(self.value("""
            before = list(sys.meta_path)
            for _ in range(3):
                with kpytrace.memory() as recording:
                    import wave
            print(json.dumps([sys.meta_path == before, "numpy" in sys.modules]))
        """), [True, False])

    def test_fork(self):
        """The child frees blocks that its parent recorded, and may start its own recording."""
        self.assertEqual(self.value("""
            import numpy
            import test_memory_numpy as tests
            kept = []
            with kpytrace.memory() as recording:
                kept.append(numpy.ones(1000))
                child = os.fork()
                if not child:
                    kept.clear()
                    numpy.ones(2000)
                    found = tests.recorded(lambda: numpy.empty(3000))
                    os._exit(found.allocated != [24000])
                status = os.waitpid(child, 0)[1]
            print(json.dumps([status, tests.Found(recording).alive]))
        """), [0, 8000])

    def test_python_ends_while_it_records(self):
        self.assertEqual(self.value("""
            import numpy
            recording = kpytrace.memory().start()
            kept = [numpy.ones(1000) for _ in range(100)]
            print(json.dumps(1))
        """), 1)


if __name__ == "__main__":
    unittest.main()
