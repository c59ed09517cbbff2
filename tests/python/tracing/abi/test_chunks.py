"""Sealed chunks, which the host's sink receives while the tracer runs."""

import collections
import ctypes
import os
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from host_case import HostCase, abi_host

NATIVE = os.environ.get("KPT_NATIVE")
ENTER, EXIT, OPEN, EPOCH, WATCH, GC_END = 0, 1, 2, 3, 4, 7  # core/recording/event.h


def leaf():
    pass


def work(n):
    for _ in range(n):
        leaf()


def down(n, then):
    return down(n - 1, then) if n else then()


def events(chunk):
    """Returns (kind, number) of the events in a chunk's bytes."""
    words = (ctypes.c_uint64 * (chunk.size_bytes // 8)).from_address(chunk.data)
    at, out = 0, []
    while at < len(words):
        kind = words[at] >> 32 & 15
        out.append((kind, words[at] >> 36))
        at += 2 if kind in (EPOCH, WATCH, GC_END) else 1
    return out


@unittest.skipUnless(NATIVE, "the native helper is not built")
class Chunks(HostCase):
    def setUp(self):
        super().setUp()
        self.native = ctypes.CDLL(NATIVE)
        self.native.native_log_count.restype = ctypes.c_uint64
        self.native.native_log_chunk.restype = ctypes.POINTER(abi_host.Chunk)
        self.native.native_log_chunk.argtypes = [ctypes.c_uint64]

    def make_streaming(self, refuse_every=0, chunk_bytes=0, **options):
        self.native.native_log_reset(ctypes.c_uint64(refuse_every))
        self.addCleanup(self.native.native_log_reset, ctypes.c_uint64(0))
        sealed = ctypes.cast(self.native.native_chunk, ctypes.c_void_p).value
        return self.make(chunk_sink=abi_host.sized(
            abi_host.ChunkSink, sealed=sealed, chunk_bytes=chunk_bytes), **options)

    def chunks(self):
        """Returns the chunks of each thread, by its OS id."""
        threads = collections.defaultdict(list)
        for i in range(self.native.native_log_count()):
            chunk = self.native.native_log_chunk(i).contents
            threads[chunk.os_tid].append(chunk)
        return threads

    def check_order(self, chunks):
        """Checks that sequence numbers have no gaps, and that times are in order."""
        self.assertEqual([c.sequence for c in chunks], list(range(len(chunks))))
        self.assertEqual([c.dropped_before for c in chunks], [0] * len(chunks))
        last = 0
        for chunk in chunks:
            self.assertTrue(last <= chunk.first_ticks <= chunk.last_ticks, chunk.sequence)
            last = chunk.last_ticks

    def test_they_come_in_order(self):
        tracer = self.make_streaming()
        down(10, lambda: work(50_000))
        tracer.stop()
        chunks = self.chunks()[os.getpid()]
        self.check_order(chunks)
        self.assertGreater(len(chunks), 5)
        counts = collections.Counter(kind for chunk in chunks for kind, _ in events(chunk))
        held = tracer.recording()
        self.assertLess(tracer.stats()["bytes_held"], 400_000)
        self.assertLessEqual(abs(counts[ENTER] + held.count(leaf) - 50_000), 200)

    def test_their_size(self):
        for asked, size in ((0, 65536), (16384, 16384), (1, 4096), (1 << 20, 1 << 20)):
            tracer = self.make_streaming(chunk_bytes=asked)
            work(150_000)
            tracer.stop()
            chunks = self.chunks()[threading.get_native_id()]
            full = {chunk.size_bytes for chunk in chunks[1:-1]}
            self.assertTrue(full and all(0 <= size - n <= 64 for n in full), (asked, full))

    def test_at_stop_the_rest_comes(self):
        """The sink has received the whole recording."""
        tracer = self.make_streaming()
        down(10, lambda: work(30_000))
        tracer.stop()
        chunks = self.chunks()[os.getpid()]
        self.check_order(chunks)
        counts = collections.Counter(kind for chunk in chunks for kind, _ in events(chunk))
        self.assertGreaterEqual(counts[ENTER], 30_000)
        self.assertEqual(tracer.recording().count(leaf), 0, "the tracer forgets what was taken")

    def test_each_begins_with_the_open_stack(self):
        tracer = self.make_streaming()
        down(20, lambda: work(30_000))
        tracer.stop()
        chunks = self.chunks()[os.getpid()]
        self.assertGreater(len(chunks), 3)
        for chunk in chunks[1:-1]:
            heads = [number for kind, number in events(chunk) if kind == OPEN]
            self.assertGreaterEqual(len(heads), 22)
            self.assertEqual(max(collections.Counter(heads).values()), 21)

    def test_refused_ones_are_kept(self):
        tracer = self.make_streaming(refuse_every=1)
        work(30_000)
        tracer.stop()
        self.assertEqual(self.native.native_log_count(), 0)
        recording = tracer.recording()
        self.assertEqual(recording.count(leaf), 30_000)
        self.assertGreater(recording.stats["chunks_refused"], 3)
        self.assertEqual(recording.stats["events_dropped"], 0)

    def test_some_are_refused(self):
        tracer = self.make_streaming(refuse_every=3)
        work(50_000)
        tracer.stop()
        chunks = self.chunks()[os.getpid()]
        self.assertEqual([c.sequence for c in chunks], sorted({c.sequence for c in chunks}))
        taken = sum(kind == ENTER for chunk in chunks for kind, _ in events(chunk))
        held = tracer.recording()
        self.assertGreater(held.stats["chunks_refused"], 0)
        # Each call is in one of the two.
        self.assertGreaterEqual(taken + held.count(leaf), 50_000)
        self.assertLess(taken + held.count(leaf), 50_000 + 500)

    def test_drops_are_counted_between_them(self):
        """A sink that refuses all chunks, and a small ring. dropped_before of the next offered chunk counts the
        dropped events, and the counters have all of them."""
        tracer = self.make_streaming(refuse_every=1, ring_bytes=200_000)
        work(40_000)
        self.native.native_log_reset(ctypes.c_uint64(0))  # from here on the sink takes all chunks
        work(5_000)
        tracer.stop()
        chunks = self.chunks()[os.getpid()]
        sequences = [c.sequence for c in chunks]
        self.assertEqual(sequences, list(range(sequences[0], sequences[0] + len(chunks))))
        self.assertGreater(sequences[0], 3)
        stats = tracer.stats()
        self.assertGreater(stats["chunks_refused"], 3)
        self.assertGreater(stats["events_dropped"], 20_000)
        self.assertEqual(chunks[0].dropped_before, stats["events_dropped"])
        self.assertEqual([c.dropped_before for c in chunks[1:]], [0] * (len(chunks) - 1))

    def test_threads(self):
        tracer = self.make_streaming()
        threads = [threading.Thread(target=work, args=(20_000,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        tids = [thread.native_id for thread in threads]
        for thread in threads:
            thread.join()
        tracer.stop()
        chunks = self.chunks()
        for tid in tids:
            self.assertGreater(len(chunks[tid]), 2)
            self.check_order(chunks[tid])
            entered = sum(kind == ENTER for c in chunks[tid] for kind, _ in events(c))
            self.assertGreaterEqual(entered, 20_000)
        self.assertEqual(len({c.thread for own in chunks.values() for c in own}), len(chunks))


if __name__ == "__main__":
    unittest.main()
