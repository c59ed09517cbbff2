"""Threads, greenlets and tasks that have ended: once their events are written, or out of the ring, they take no memory,
and a flush takes no time for them. What was recorded of them is in the file."""

import json
import os
import pathlib
import struct
import sys
import textwrap
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
FIXTURES = pathlib.Path(__file__).parents[2] / "fixtures"
sys.path.insert(0, str(FIXTURES))

from short_tracks import HAS_GREENLET
from support import BACKEND, Case, FREE_THREADED, run_python

import kpytrace

# Runs work() in KIND, so many times that the memory has its size, then COUNT times. Prints how many bytes were added, and
# the processor time of the idle program while it flushes 50 times, before all of them and after.
PROGRAM = """
import sys, time
import kpytrace

KIND, COUNT, OUTPUT, RING, FIXTURES = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
sys.path.insert(0, FIXTURES)
import short_tracks
from short_tracks import own_bytes

# In parts, so that a flush is not far behind on a busy machine: until then events take memory.
def run(count, part=1_000):
    for _ in range(count // part):
        getattr(short_tracks, KIND)(part)
        time.sleep(0.02)

def idle_seconds():
    begin = time.process_time()
    time.sleep(0.5)
    return time.process_time() - begin

options = {"ring": RING} if RING else {"flush_ns": "10ms"}
with kpytrace.trace(OUTPUT, **options):
    idle = idle_seconds()
    run(COUNT // 2)
    before = own_bytes()
    run(COUNT)
    added = own_bytes() - before
    print(added, idle, idle_seconds())
"""

KIND_CHUNK, TABLE = 1, 0xFFFFFFFF  # of a record, and of a chunk (docs/kpt.md)
EACH_BYTES = 32  # kept for an ended track at most
NOISE_BYTES = 2 << 20
TIMES = 15  # flushes that walked 12,000 ended threads took a hundred times as long
keeps_freed = unittest.skipIf("ASAN_OPTIONS" in os.environ, "AddressSanitizer keeps what was freed")


def work():
    return len("")


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class EndedTracks(Case):
    def grow(self, kind, count, ring=""):
        program = self.folder / "program.py"
        program.write_text(textwrap.dedent(PROGRAM))
        output = self.folder / ("trace.json" if ring else "trace.kpt")
        reply = run_python(str(program), kind, str(count), str(output), ring, str(FIXTURES))
        self.assertEqual(reply.returncode, 0, reply.stderr)
        added, before, after = map(float, reply.stdout.split())
        self.assertLess(added, EACH_BYTES * count + NOISE_BYTES, f"{kind} {ring}")
        if not ring:
            self.assertLess(after, TIMES * before, "a flush walks the ended tracks")

    @keeps_freed
    def test_threads_of_a_stream(self):
        self.grow("threads", 8_000)

    @keeps_freed
    def test_threads_of_a_ring(self):
        self.grow("threads", 8_000, "256kB")

    @keeps_freed
    @unittest.skipIf(not HAS_GREENLET or FREE_THREADED, "no greenlets")
    def test_greenlets_of_a_stream(self):
        self.grow("greenlets", 40_000)

    @keeps_freed
    @unittest.skipIf(not HAS_GREENLET or FREE_THREADED, "no greenlets")
    def test_greenlets_of_a_ring(self):
        self.grow("greenlets", 20_000, "256kB")

    @keeps_freed
    def test_tasks_of_a_stream(self):
        self.grow("tasks", 20_000)

    def run_threads(self, count, prefix):
        for i in range(count):
            thread = threading.Thread(target=work, name=f"{prefix}-{i}")
            thread.start()
            thread.join()

    def test_the_file_has_all_threads(self):
        """Also those that ended long before the recording did."""
        kpt = self.folder / "trace.kpt"
        with kpytrace.trace(kpt, flush_ns="1ms") as t:
            self.run_threads(600, "thread")
            self.assertGreaterEqual(t.stats()["threads"], 601)
        reply = run_python("-m", "kpytrace", "convert", str(kpt), str(self.path))
        self.assertEqual(reply.returncode, 0, reply.stderr)
        events = json.loads(self.path.read_text())["traceEvents"]
        calls = {}
        for e in events:
            if e["ph"] == "X" and __file__ in e["name"] and e["name"].endswith(": work"):
                calls[e["tid"]] = calls.get(e["tid"], 0) + 1
        self.assertEqual(sum(calls.values()), 600)

    def test_a_flush_describes_all_new_threads_at_once(self):
        kpt = self.folder / "trace.kpt"
        with kpytrace.trace(kpt, flush_ns="60min"):
            self.run_threads(300, "thread")
        tables = chunks = 0
        content, at = kpt.read_bytes(), 64
        while at < len(content):
            _, kind, size = struct.unpack_from("=IIQ", content, at)
            if kind == KIND_CHUNK:
                _, thread = struct.unpack_from("=II", content, at + 24)
                tables += thread == TABLE
                chunks += thread != TABLE
            at += 24 + (size + 7) // 8 * 8
        self.assertGreater(chunks, 300)
        self.assertLess(tables, 30)

    def test_a_ring_that_many_threads_have_left(self):
        """Its threads are numbered anew in each file."""
        kpt = self.folder / "ring.kpt"
        with kpytrace.trace(self.path, ring="128kB") as t:
            for _ in range(3):
                self.run_threads(200, "thread")
                kpytrace.dump(kpt)
                reply = run_python("-m", "kpytrace", "top", "-n", "0", str(kpt))
                self.assertEqual(reply.returncode, 0, reply.stderr)
                self.assertIn(": work", reply.stdout)
        self.assertGreater(t.summary.dropped, 1_000)
        self.assertLess(t.summary.threads, 400)
        self.assertGreaterEqual(t.stats()["threads"], 600)


if __name__ == "__main__":
    unittest.main()
