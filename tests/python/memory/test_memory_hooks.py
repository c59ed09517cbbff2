"""What a recording of memory puts into Python: hooks in front of the allocators, beside those of others, and a finder of
modules. It takes them along when it ends, however it ends."""

import pathlib
import sys
import tracemalloc
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, FREE_THREADED, MemoryCase, TAG

import kpytrace


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, f"no backend for CPython {TAG} that records memory")
class Hooks(MemoryCase):
    def test_a_running_recording_that_dies_takes_its_hooks_along(self):
        self.program("""
            import ctypes, kpytrace
            def allocators():
                found = [(ctypes.c_void_p * 5)() for _ in range(3)]
                for domain in range(3): ctypes.pythonapi.PyMem_GetAllocator(domain, found[domain])
                return [tuple(f) for f in found]
            for options in ({}, {"sample_bytes": 4096}):
                plain = allocators()
                m = kpytrace.memory(**options)
                m._start()
                assert allocators() != plain
                del m
                assert allocators() == plain
            """)

    def test_the_finder_of_a_dead_recording_hides_no_module(self):
        self.program("""
            import sys, kpytrace
            before = list(sys.meta_path)
            m = kpytrace.memory()
            m._start()
            assert len(sys.meta_path) == len(before) + 1
            del m
            sys.modules.pop("atexit", None)
            import atexit  # built into the interpreter: the second finder finds it
            assert sys.meta_path == before
            """)

    def test_tracemalloc_in_any_order(self):
        """The hook that was installed last must be removed first. If it is not, our hooks stay, pass every call on, and
        record again after the next start. If tracemalloc is removed from below our hooks, they are gone until then."""
        kept = []
        for order in ("OTot", "OTto", "TOto", "TOot", "TOtoOo", "OTotOo", "OToOot", "OToTot", "TOotOTot"):
            m = kpytrace.memory(self.path)
            calls = {"O": m.start, "o": m.stop, "T": tracemalloc.start, "t": tracemalloc.stop}
            with self.subTest(order):
                recorded = []
                for i, step in enumerate(order):
                    calls[step]()
                    kept.append([bytes(2000 + i) for _ in range(100)])
                    if m.running and not (order.startswith("TOt") and i == 2):
                        recorded.append(2033 + i)
                m.export(self.path)
                m.close()
                tracemalloc.stop()
                sizes = self.kept_sizes()
                self.assertEqual({n: sizes.count(n) for n in range(2033, 2041)},
                                 {n: 100 * (n in recorded) for n in range(2033, 2041)})

    def test_tracemalloc_below_and_threads_without_the_gil(self):
        """tracemalloc waits for the GIL inside of our hook: stop must not hold it meanwhile."""
        self.program("""
            import ctypes, sys, threading, tracemalloc, kpytrace
            library = ctypes.CDLL(None)
            malloc, free = library.PyMem_RawMalloc, library.PyMem_RawFree
            malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
            free.restype, free.argtypes = None, [ctypes.c_void_p]
            over = False
            def work():
                while not over: free(malloc(100))
            threads = [threading.Thread(target=work) for _ in range(3)]
            tracemalloc.start()
            for thread in threads: thread.start()
            for i in range(30):
                with kpytrace.memory(sample_bytes=i % 2 * 1000): pass
            over = True
            for thread in threads: thread.join()
            kpytrace.memory(sys.argv[1]).start()
            """)


if __name__ == "__main__":
    unittest.main()
