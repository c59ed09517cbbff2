"""A CPython with unknown layouts: the tracer calls CPython's own functions, with the same results, and the
counters report it (issue 23, 24). KPYTRACE_LAYOUTS makes the layouts of this CPython unknown; other tests change
what CPython says of itself."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import support

HERE = pathlib.Path(__file__).parent
FRAMES, OBJECTS, TASKS = 1, 2, 4
FRAMES_ARE_READ = (3, 11) <= support.VERSION < (3, 15) and not support.FREE_THREADED
DESCRIBED = FRAMES_ARE_READ and support.VERSION >= (3, 13)
TASK_IN_STATE = FRAMES_ARE_READ and support.VERSION >= (3, 14)
EVERY = ("", "described", "unknown")
LONG = os.environ.get("KPYTRACE_TEST_LONG", "0") not in ("", "0")
# Tests that depend on frames: lines of callers, resumes, open calls, names.
FILES = ("test_callers.py", "test_generators.py", "test_open_calls.py", "test_dead_code.py")

PROGRAM = """
import asyncio, json, sys
import kpytrace
from kpytrace import traceback

def places():
    return traceback.format(traceback.gather())

def down(n):
    return down(n - 1) if n else [places() for _ in range(20)]

async def inner(n):
    await asyncio.sleep(0)
    return n

async def outer(n):
    return [await inner(i) for i in range(n)]

async def main():
    return await asyncio.gather(*(asyncio.create_task(outer(3), name=f"task {i}") for i in range(4)))

trace = kpytrace.start(sys.argv[1], tasks=True)
unknown = trace.stats()["layouts_unknown"]
deep = down(70)
asyncio.run(main())
kpytrace.stop()
print(json.dumps([unknown, deep]))
"""

# Changes this CPython's description of itself before the backend is opened, and prints what is unknown then.
DESCRIPTION = """
import ctypes, json, mmap, sys
frame_type = type(sys._getframe())

def change_version(last_byte):  # the micro version becomes larger than any; LAST_BYTE is the release level
    version = ctypes.c_ulong.in_dll(ctypes.pythonapi, "Py_Version")
    page = ctypes.addressof(version) & -mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    assert not libc.mprotect(ctypes.c_void_p(page), 2 * mmap.PAGESIZE, 7), ctypes.get_errno()  # 7: all rights
    version.value = version.value & ~0xFFFF | 0xFF00 | last_byte

def change_frame_objects():
    size = ctypes.c_ssize_t.from_address(id(frame_type) + 4 * ctypes.sizeof(ctypes.c_void_p))
    assert size.value == frame_type.__basicsize__
    size.value += 8

def change_offsets(cookie):
    described = (ctypes.c_uint64 * 60).in_dll(ctypes.pythonapi, "_PyRuntime")
    assert bytes(described)[:8] == b"xdebugpy"
    if cookie:
        described[0] += 1
    for i in range(3, 60) if not cookie else ():
        described[i] += 8

eval(sys.argv[1])
import kpytrace
trace = kpytrace.start()
print(json.dumps(trace.stats()["layouts_unknown"]))
trace.stop()
"""


class Layouts(support.Case):
    def run_with(self, layouts, *command):
        environment = dict(os.environ, KPYTRACE_LAYOUTS=layouts)
        reply = subprocess.run([sys.executable, *command], env=environment, text=True,
                               capture_output=True, check=False)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return reply.stdout

    def program(self, layouts):
        """Returns what is unknown, the stacks that were gathered, and which calls ran in which task."""
        path = f"{self.path}.{layouts}.json"
        script = pathlib.Path(f"{self.path}.py")
        script.write_text(PROGRAM, encoding="utf-8")
        unknown, deep = json.loads(self.run_with(layouts, script, path))
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        tasks = sorted((e["name"], e.get("id", "")) for e in events if e.get("cat") == "asyncio_task")
        return unknown, deep, tasks

    def test_what_is_unknown(self):
        known = FRAMES | OBJECTS | (TASKS if TASK_IN_STATE else 0) if FRAMES_ARE_READ else 0
        always = 0 if FRAMES_ARE_READ or support.VERSION < (3, 11) else FRAMES
        wanted = {"": always, "unknown": always | known,
                  "described": always | (known & ~FRAMES if DESCRIBED else known)}
        for layouts in EVERY:
            self.assertEqual(self.program(layouts)[0], wanted[layouts], layouts)

    def unknown_after(self, change, layouts=""):
        return json.loads(self.run_with(layouts, "-c", DESCRIPTION, change))

    @unittest.skipUnless(FRAMES_ARE_READ, "no layout is read")
    def test_other_releases(self):
        """A later micro release has what it describes itself; a pre-release may have other layouts."""
        known = FRAMES | OBJECTS | (TASKS if TASK_IN_STATE else 0)
        self.assertEqual(self.unknown_after("0"), 0)
        self.assertEqual(self.unknown_after("change_version(0xF0)"), known & ~FRAMES if DESCRIBED else known)
        self.assertEqual(self.unknown_after("change_version(0xA1)"), known)

    @unittest.skipUnless(FRAMES_ARE_READ, "no layout is read")
    def test_frame_objects_of_another_size(self):
        known = FRAMES | OBJECTS | (TASKS if TASK_IN_STATE else 0)
        self.assertEqual(self.unknown_after("change_frame_objects()"), known)

    @unittest.skipUnless(DESCRIBED, "this CPython does not describe its layouts")
    def test_other_offsets(self):
        """A CPython that describes other offsets has no known layout; one without a description has those of its
        release."""
        known = FRAMES | OBJECTS | (TASKS if TASK_IN_STATE else 0)
        self.assertEqual(self.unknown_after("change_offsets(False)"), known)
        self.assertEqual(self.unknown_after("change_offsets(True)"), 0)
        self.assertEqual(self.unknown_after("change_offsets(True)", "described"), known)

    def test_stacks_and_tasks_are_the_same(self):
        _, deep, tasks = self.program("")
        self.assertIn("down", "".join(deep[0]))
        self.assertTrue(tasks)
        for layouts in EVERY[1:]:
            self.assertEqual(self.program(layouts)[1:], (deep, tasks), layouts)

    def test_what_depends_on_frames(self):
        # A CPython that describes no layouts has the same ones with both.
        for layouts in EVERY[1:] if DESCRIBED or LONG else EVERY[2:]:
            for name in FILES:
                with self.subTest(layouts=layouts, file=name):
                    self.run_with(layouts, HERE / name)


if __name__ == "__main__":
    unittest.main()
