"""A CPython with unknown layouts: the tracer calls CPython's own functions, with the same results, and the
counters report it (issue 23, 24). KPYTRACE_LAYOUTS makes the layouts of this CPython unknown."""

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
