"""Streams of programs that SIGKILL ends at random moments, with packed events and without, and with memory: each file opens,
and has all that was recorded before the last flush. A long run kills a hundred programs, and a hundred with memory."""

import os
import pathlib
import random
import subprocess
import sys
import textwrap
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, FREE_THREADED, Case, run_python
from work import WORK

from kpytrace import _standalone
from kpytrace._api import native
from kpytrace._cli.memory import open_tables

KILLS = 50 if os.environ.get("KPYTRACE_TEST_LONG", "0") != "0" else 3  # of each kind

# Prints how many calls of the main thread are in the file for certain: a dump of a stream flushes it first. Another thread
# fills chunks meanwhile, and flushes come from the recording's own thread, too.
PROGRAM = WORK + textwrap.dedent("""
    import kpytrace, threading, time
    kpytrace.start(sys.argv[1], flush_ns="5ms", compress=sys.argv[2] != "plain", memory=sys.argv[2] == "memory")
    kept = []
    def leaf_with_memory():
        kept.append(bytes(967))
    def busy():
        while True:
            work(20000)
            time.sleep(float(sys.argv[3]))
    threading.Thread(target=busy, daemon=True).start()
    done = 0
    while True:
        for _ in range(20):
            work(50)
            if sys.argv[2] == "memory":
                for _ in range(50): leaf_with_memory()
            time.sleep(0.0002)
        done += 1000
        kpytrace.dump(sys.argv[4])
        print(done, flush=True)
    """)


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Kills(Case):
    def leaves(self, path, name):
        """Returns the calls of a function in the main thread, and the state of the file."""
        handle, state, _ = _standalone.open(native.load(), path, False)
        rows = _standalone.profile(handle, 0, 2**32 - 1, True, None)
        _standalone.close(handle)
        return sum(row[5] for row in rows if row[0].endswith(name) and row[4] == b"MainThread"), state

    def check(self, kind, kills=KILLS):
        path, copy = self.folder / "trace.kpt", self.folder / "copy.kpt"
        copy.symlink_to("/dev/null")
        seed = random.randrange(2**32)
        rng = random.Random(seed)
        for i in range(kills):
            with self.subTest(f"kill {i}, seed {seed}"):
                rest = rng.choice((0.05, 0.01, 0))  # without rests it records ten million calls a second
                child = subprocess.Popen([sys.executable, "-c", PROGRAM, path, kind, str(rest), copy],
                                         text=True, stdout=subprocess.PIPE)
                first = child.stdout.readline()
                time.sleep(rng.random() * 0.5)
                child.kill()
                lines = (first + child.stdout.read()).splitlines(keepends=True)
                child.wait()
                child.stdout.close()
                flushed = max(int(line) for line in lines if line.endswith("\n"))
                leaves, state = self.leaves(path, b": leaf")
                self.assertEqual(state, "cut off")
                self.assertGreaterEqual(leaves, flushed)
                if kind == "memory":
                    self.check_memory(path, flushed)
                elif not i:
                    reply = run_python("-m", "kpytrace", "info", str(path))
                    self.assertIn("cut off", reply.stdout)
                    reply = run_python("-m", "kpytrace", "convert", str(path), str(self.path))
                    self.assertEqual(reply.returncode, 0, reply.stderr)
                    self.read_trace()

    def test_packed(self):
        self.check("packed")

    def test_as_they_are(self):
        self.check("plain")

    def check_memory(self, path, flushed):
        """The calls and the blocks are of one function: each has all of those before the last flush."""
        calls, _ = self.leaves(path, b": leaf_with_memory")
        rows = open_tables(str(path), prints_state=False).rows("end", "function")
        blocks = sum(row.blocks for row in rows if row.name == "leaf_with_memory")
        self.assertGreaterEqual(min(calls, blocks - 1), flushed)  # one is the list that has them

    @unittest.skipIf(FREE_THREADED, "memory is not recorded without the GIL")
    def test_with_memory(self):
        self.check("memory", KILLS * 2)


if __name__ == "__main__":
    unittest.main()
