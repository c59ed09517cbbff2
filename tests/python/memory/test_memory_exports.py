"""Exports of memory recordings: while they run, with other threads, and exports that fail."""

import errno
import os
import shutil
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from snapshots import Snapshot
from support import BACKEND, FREE_THREADED, MemoryCase, TAG

import kpytrace


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED,
                     f"there is no backend for CPython {TAG} beside the plugin, or none that records memory")
class Exports(MemoryCase):
    def test_export_while_it_runs(self):
        kept = []
        with kpytrace.memory() as m:
            for i in range(5):
                kept.append(bytes(299968 + i))
                m.export(self.folder / f"{i}.pickle")
        for i in range(5):
            sizes = self.kept_sizes(self.folder / f"{i}.pickle")
            self.assertEqual(sum(300000 < size < 300010 for size in sizes), i + 1)
        self.assertEqual(len(os.listdir(self.folder)), 5)

    def test_export_beside_threads(self):
        over = threading.Event()

        def work():
            while not over.is_set():
                [bytes(100) for _ in range(100)]
        with kpytrace.memory(max_entries=20000) as m:
            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for _ in range(5):
                m.export(self.path)
            over.set()
            for thread in threads:
                thread.join()
        Snapshot(self.path).check(self)

    def test_a_stop_waits_for_an_export(self):
        """stop() waits for the export of another thread, which lasts until its pipe is read."""
        self.program("""
            import os, sys, threading, kpytrace
            os.mkfifo("slow.pickle")
            m = kpytrace.memory(sys.argv[1]).start()
            kept = [bytes(100) for _ in range(10000)]
            threads = [threading.Thread(target=m.export, args=("slow.pickle",)), threading.Thread(target=m.stop)]
            threads[0].start()
            with open("slow.pickle", "rb") as file:
                child = os.fork()
                if child == 0:  # which has no such thread
                    m.export("empty.pickle")
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
                threads[1].start()
                with open("read.pickle", "wb") as copy:
                    copy.write(file.read())
            for thread in threads: thread.join()
            assert not m.running
            """)
        for path in (self.path, self.folder / "read.pickle"):
            self.assertGreaterEqual(len(self.kept_sizes(path)), 10000)

    def test_a_failed_export_leaves_no_file(self):
        full = self.folder / "full.pickle"
        full.symlink_to("/dev/full")
        gone = self.folder / "folder"
        gone.mkdir()
        m = kpytrace.memory(gone / "memory.pickle").start()
        kept = [bytes(100) for _ in range(1000)]
        with self.assertRaises(OSError):
            m.export(full)
        shutil.rmtree(gone)  # with the spool, which is still read
        with self.assertRaisesRegex(OSError, os.strerror(errno.ENOENT)) as failed:
            m.stop()
        self.assertNotIn("stays in", str(failed.exception))
        self.assertFalse(m.running)
        m.export(self.path)
        self.assertGreaterEqual(len(self.kept_sizes()), 1000)
        self.assertEqual(sorted(os.listdir(self.folder)), ["full.pickle", "memory.pickle"])
        with self.assertRaises(ValueError):
            m.export(self.folder / "memory.txt")
        del kept


if __name__ == "__main__":
    unittest.main()
