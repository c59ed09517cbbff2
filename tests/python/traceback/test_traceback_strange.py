"""Tracebacks under unusual conditions: moved frames, no memory, types that are freed first."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, TAG, run_python

from kpytrace import traceback as tb

try:
    import _testcapi
except ImportError:
    _testcapi = None

WHY_SKIPPED = f"there is no backend for CPython {TAG} beside the plugin"


def deep(count, function):
    return function() if count == 0 else deep(count - 1, function)


def lines():
    return [(frame["name"], frame["line"]) for frame in tb.gather().symbolize()]


def python_lines():
    frame, found = sys._getframe(), []
    while frame:
        found.append((frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    return found


@unittest.skipUnless(BACKEND.exists(), WHY_SKIPPED)
class Strange(unittest.TestCase):
    def test_a_trace_function_moves_a_frame(self):
        seen = []

        def victim():
            x = 1
            x = 2
            x = 3
            return x

        def trace(frame, event, arg):
            if event == "line" and frame.f_code is victim.__code__ and not seen:
                for _ in range(20):
                    lines()
                frame.f_lineno += 2
                seen.append((lines()[2:], python_lines()[1:]))
            return trace

        def go():
            before = sys.gettrace()
            sys.settrace(trace)
            try:
                victim()
            finally:
                sys.settrace(before)

        for count in range(10):
            seen.clear()
            deep(count, go)
            ours, pythons = seen[0]
            at = [name for name, _ in pythons].index("victim")
            self.assertEqual(ours[ours.index(pythons[at]):], pythons[at:])

    @unittest.skipUnless(hasattr(_testcapi, "set_nomemory"), "this Python can't run out of memory on demand")
    def test_no_memory_leaves_no_exception(self):
        def once(allocation):
            tb.gather()
            _testcapi.set_nomemory(allocation, allocation + 1)
            try:
                return tb.gather()
            except MemoryError:
                return None
            finally:
                _testcapi.remove_mem_hooks()

        for allocation in range(1, 8):
            for count in range(5, 40, 7):
                where = deep(count, lambda: once(allocation))
                if where is not None and not where.cut:
                    self.assertEqual(sum(f["name"] == "deep" for f in where.symbolize()), count + 1)

    def test_the_type_goes_before_the_module(self):
        done = run_python("-c", """
import sys, gc
from kpytrace import traceback
spares = [traceback.gather() for _ in range(20)]
del spares
standalone = traceback._standalone
kept = [standalone.Traceback]
del traceback, standalone
for name in [name for name in sys.modules if name.startswith("kpytrace")]:
    module = sys.modules.pop(name)
    if "standalone" not in name:
        module.__dict__.clear()
    del module
for _ in range(4): gc.collect()
kept.clear()
for _ in range(2): gc.collect()
""", env={"PYTHONMALLOC": "debug"})
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
