"""Recordings of memory that are written while they run: .kpt files, spools, kills, full disks, damaged files."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from snapshots import Snapshot
from support import BACKEND, FREE_THREADED, MemoryCase, TAG, limit_file_size, run_python

import kpytrace

GOLDEN = pathlib.Path(__file__).parents[1] / "files/golden/memory.kpt"

# Prints how many rounds it has done, each of 1,000 blocks of 1,000 bytes that it keeps.
ENDLESS = """
import sys, kpytrace
kpytrace.memory(sys.argv[1]).start()
kept = []
while True:
    kept.append([bytes(967) for _ in range(1000)])
    for _ in range(2): [str(i) for i in range(1000)]
    print(len(kept), flush=True)
"""


def kpytrace_command(*words, **options):
    return run_python("-m", "kpytrace", *words, **options)


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, f"memory is not recorded on CPython {TAG} here")
class Stream(MemoryCase):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "memory.kpt"

    def convert(self, target="memory.pickle", *options, status=0):
        """Returns what convert printed."""
        done = kpytrace_command("convert", *options, self.path, self.folder / target)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def kept_blocks(self, size):
        self.convert("kept.pickle", "--quiet")
        return self.kept_sizes(self.folder / "kept.pickle").count(size)

    def test_a_file_has_what_other_recordings_have(self):
        def work():
            kept = [bytes(5000) for _ in range(100)]
            for _ in range(20000):
                [object()]
            return kept

        with kpytrace.memory(self.path) as m:
            kept = work()
            during = m.tables()
        after = m.tables()
        for tables in (during, after):
            self.assertAlmostEqual(tables.total("end")[0], len(kept) * 5033, delta=50_000)
            self.assertIn("work", tables.rows("end", "function")[0].where)
        self.assertGreater(after.total("all")[1], 20000)
        m.export(self.folder / "now.pickle")
        self.convert("then.pickle", "--quiet")
        now, then = ((self.folder / name).read_bytes() for name in ("now.pickle", "then.pickle"))
        self.assertEqual(now, then)
        Snapshot(self.folder / "then.pickle").check(self)
        for name in ("then.json", "then.pftrace", "then.tables.json"):
            self.convert(name, "--quiet")
        self.assertLess(self.path.stat().st_size, 6 * after.total("all")[1] + 20000)

    def test_other_outputs_leave_no_spool(self):
        kept = []
        with kpytrace.memory(self.folder / "memory.pickle") as m:
            kept.append(bytes(5000))
            self.assertIn("memory.pickle.spool.kpt", os.listdir(self.folder))
        self.assertEqual(os.listdir(self.folder), ["memory.pickle"])
        self.assertEqual(m.tables().total("end")[0] // 1000, 5, "what was written is still there")
        m.start()
        kept.append(bytes(7000))
        m.stop()
        self.assertIn(7033, self.kept_sizes(self.folder / "memory.pickle"))
        self.assertIn(5033, self.kept_sizes(self.folder / "memory.pickle"))

    def test_it_ends_with_its_file(self):
        m = kpytrace.memory(self.path)
        with m:
            pass
        with self.assertRaisesRegex(RuntimeError, "is complete: make a new recording"):
            m.start()
        with self.assertRaisesRegex(ValueError, "give its name to kpytrace.memory"):
            m.export(self.folder / "again.kpt")
        with self.assertRaisesRegex(ValueError, "keeps the last entries in memory"):
            kpytrace.memory(self.path, max_entries=10)
        with kpytrace.memory(self.folder / "next.kpt"):
            pass

    def test_threads_give_blocks_to_each_other(self):
        with kpytrace.memory(self.path):
            given, done = [], threading.Event()

            def take():
                while not done.is_set() or given:
                    if given:
                        given.pop()
            thread = threading.Thread(target=take)
            thread.start()
            for _ in range(200):
                given.extend(bytes(2000) for _ in range(100))
            done.set()
            thread.join()
        self.assertEqual(self.kept_blocks(2033), 0)

    def killed(self, number, path):
        """Kills a program while it allocates. Returns how many rounds it had printed."""
        with subprocess.Popen([sys.executable, "-c", ENDLESS, path], stdout=subprocess.PIPE) as program:
            rounds = [int(program.stdout.readline()) for _ in range(20)][-1]
            program.send_signal(number)
            rest = program.stdout.read().split()
        self.assertEqual(program.returncode, -number)
        return rounds, int(rest[-1]) if rest else rounds

    def test_a_killed_program_has_all_but_the_last_flush(self):
        rounds, last = self.killed(signal.SIGKILL, self.path)
        said = self.convert()
        self.assertIn("is cut off: its program was killed, or still runs; the allocations up to there are read", said)
        blocks = self.kept_blocks(1000)
        self.assertGreater(blocks, rounds * 1000 // 8, "20 rounds are many flushes")
        self.assertLessEqual(blocks, (last + 1) * 1000)

    def test_sigterm_writes_the_rest(self):
        _, last = self.killed(signal.SIGTERM, self.path)
        self.assertGreaterEqual(self.kept_blocks(1000), last * 1000)

    def test_a_killed_program_leaves_its_spool(self):
        self.path = self.folder / "memory.pickle.spool.kpt"
        rounds, _ = self.killed(signal.SIGKILL, self.folder / "memory.pickle")
        self.assertEqual(os.listdir(self.folder), ["memory.pickle.spool.kpt"])
        self.assertGreater(self.kept_blocks(1000), rounds * 1000 // 8)

    def test_an_output_that_fails_leaves_the_spool(self):
        done = self.program("""
            import os, sys, kpytrace
            path = sys.argv[1] + ".pickle"
            os.symlink("/dev/full", path)
            with kpytrace.memory(path):
                kept = [bytes(1000) for _ in range(100)]
            """, status=1)
        self.path = self.folder / "memory.kpt.pickle.spool.kpt"
        self.assertIn(f"the recording stays in {self.path}, and kpytrace convert makes the file of it", done.stderr)
        self.assertEqual(self.kept_blocks(1033), 100)

    def test_a_full_disk(self):
        done = self.program(limit_file_size(100_000) + """
import signal, sys, kpytrace
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
kept = []
try:
    with kpytrace.memory(sys.argv[1]):
        for i in range(300_000): kept.append(str(i) * (i % 50))
except OSError as error:
    print(error)
print(len(kept))
""")
        self.assertRegex(done.stdout, r"\A\[Errno 27\] .*memory\.kpt: File too large; what was allocated after that is "
                         r"not recorded, the file is whole up to there\n300000\n\Z")
        self.assertLessEqual(self.path.stat().st_size, 100_000)
        self.convert()
        Snapshot(self.folder / "memory.pickle").check(self)

    def test_a_fork_leaves_the_file_to_its_parent(self):
        """The sizes are large, since an import may keep a block of any small one."""
        self.program("""
            import os, sys, kpytrace
            m = kpytrace.memory(sys.argv[1]).start()
            kept = [bytes(11003) for _ in range(1000)]
            for _ in range(5):
                child = os.fork()
                if child == 0:
                    kept.append([bytes(13007) for _ in range(1000)])
                    try:
                        m.start()
                    except RuntimeError as error:
                        assert "written by the parent" in str(error), error
                    with kpytrace.memory(sys.argv[1] + ".child.kpt"):
                        kept.append(bytes(12011))
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
            kept += [bytes(11003) for _ in range(1000)]
            m.stop()
            """)
        self.assertEqual(self.kept_blocks(11036), 2000)
        self.assertEqual(self.kept_blocks(13040), 0)
        self.path = self.folder / "memory.kpt.child.kpt"
        self.assertEqual(self.kept_blocks(12044), 1)

    def test_memory_does_not_grow(self):
        done = self.program("""
            import sys, kpytrace
            def peak():
                with open("/proc/self/status") as status:
                    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
            with kpytrace.memory(sys.argv[1]):
                for _ in range(200_000): [object()]
                before = peak()
                for _ in range(2_000_000): [object()]
                print(peak() - before)
            """)
        self.assertLess(int(done.stdout), 30_000, "kB; 4 million events in memory take 96,000")

    def test_a_file_that_is_damaged(self):
        with kpytrace.memory(self.path):
            kept = [bytes(1000) for _ in range(1000)]
        whole = self.path.read_bytes()
        for cut in (len(whole) - 10, len(whole) // 2, 200, 60, 0):
            self.path.write_bytes(whole[:cut])
            done = kpytrace_command("memory", self.path)
            self.assertEqual(done.returncode, 0 if cut > 500 else 1, (cut, done.stderr))
            self.assertNotIn("Traceback", done.stderr)
        self.path.write_bytes(whole[:-200] + bytes([whole[-200] ^ 1]) + whole[-199:])
        self.assertIn("is damaged at byte", self.convert(status=1))
        self.assertFalse((self.folder / "memory.pickle").exists())
        self.convert("memory.pickle", "--recover")
        del kept

    def test_run_and_the_commands(self):
        done = kpytrace_command("run", "--memory", self.path, "-c", "def f(): return [bytes(967) for _ in range(1000)]\nx = f()",
                                cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = kpytrace_command("memory", self.path, "--by", "function")
        self.assertRegex(done.stdout, r"1\.0\d MB .* f")
        done = kpytrace_command("report", self.path, "-o", self.folder / "page.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('data-kind="memory"', (self.folder / "page.html").read_text("utf-8"))
        self.assertIn("recording:    memory", kpytrace_command("info", self.path).stdout)
        self.assertIn("is a recording of memory", self.convert("page.collapsed", status=2))
        self.assertIn("is always packed", self.convert("memory.pickle", "--no-compress", status=2))


class Golden(MemoryCase):
    """Needs no backend."""

    def test_the_kept_file_is_read(self):
        shutil.copy(GOLDEN, self.folder)
        for name in ("a.pickle", "a.json", "a.pftrace", "a.tables.json"):
            done = kpytrace_command("convert", "-q", self.folder / "memory.kpt", self.folder / name)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        from kpytrace._files.memory_tables import Tables

        tables = Tables(self.folder / "a.tables.json")
        found = {at: {row.name: (row.bytes, row.blocks) for row in tables.rows(at, "function")} for at in ("end", "all")}
        self.assertEqual(found["end"]["keep"], (104220, 102), "100 blocks of 1,033 bytes, their list and its items")
        self.assertEqual(found["all"]["end"], (161500, 349), "300 of 533 bytes, and the numbers of the loop")
        self.assertNotIn("end", found["end"])
        snapshot = Snapshot(self.folder / "a.pickle").check(self)
        self.assertEqual(len(snapshot.entries), tables.entries)


if __name__ == "__main__":
    unittest.main()
