"""Recordings of memory that are added up and have no history: the numbers are those of a recording with one; what is
refused; threads, forks, signals."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, FREE_THREADED, MemoryCase, TAG, run_python

import kpytrace
from kpytrace._files.memory_tables import Tables

# Prints how many rounds it has done, each of 1,000 blocks that it keeps.
ENDLESS = """
import sys, kpytrace
m = kpytrace.memory(sys.argv[1], aggregate=True).start()
kept = []
while True:
    kept.append([bytes(5000) for _ in range(1000)])
    print(len(kept), flush=True)
    if len(kept) == 20: sys.stdin.read()
"""


def make(count, size=1000):
    return [bytes(size) for _ in range(count)]


def program():
    kept = make(500)
    make(3000)
    for i in range(5000):
        str(i) + "x"
    return kept


def kpytrace_command(*words, **options):
    return run_python("-m", "kpytrace", *map(str, words), **options)


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, f"memory is not recorded on CPython {TAG} here")
class Aggregate(MemoryCase):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "memory.tables.json"

    def amounts(self, tables, at):
        """Returns bytes and blocks by function, of this file."""
        return {row.name: (row.bytes, row.blocks) for row in tables.rows(at, "function") if row.file == __file__}

    def test_it_has_the_numbers_of_a_history(self):
        program()
        found = []
        for options in ({}, {"aggregate": True}):
            with kpytrace.memory(**options) as m:
                kept = program()
            found.append(m.tables())
        history, added_up = found
        for at in ("peak", "end", "all", "temporary"):
            self.assertEqual(self.amounts(history, at), self.amounts(added_up, at), at)
        self.assertGreater(added_up.total("all")[1], 13000)
        self.assertEqual(max(most for _, _, most in added_up.series()), added_up.total("peak")[0])
        del kept

    def test_snapshots_on_demand(self):
        with kpytrace.memory(self.path, aggregate=True) as m:
            kept = make(200)
            m.export(self.folder / "now.tables.json")
            m.export(self.folder / "now.html")
            kept += make(300)
            during = m.tables()
            kept += make(100)
        for tables, blocks in ((Tables(self.folder / "now.tables.json"), 200), (during, 500), (Tables(self.path), 600)):
            self.assertAlmostEqual(sum(count for _, count in self.amounts(tables, "end").values()), blocks, delta=5)
        self.assertIn('data-kind="memory"', (self.folder / "now.html").read_text("utf-8"))
        self.assertNotIn("moments", json.loads(self.path.read_text()))
        m.start()  # and it goes on
        kept += make(100)
        m.stop()
        self.assertAlmostEqual(sum(count for _, count in self.amounts(m.tables(), "end").values()), 700, delta=9)
        self.assertEqual(sorted(os.listdir(self.folder)), ["memory.tables.json", "now.html", "now.tables.json"])

    def test_samples(self):
        with kpytrace.memory(sample_bytes=5000, aggregate=True) as m:
            kept = make(20000)
        sampled = sum(size for size, _ in self.amounts(m.tables(), "end").values())
        self.assertAlmostEqual(sampled / sum(map(sys.getsizeof, kept)), 1, delta=.1)

    def test_what_needs_a_history_is_refused(self):
        m = kpytrace.memory(aggregate=True).start()
        for name in ("a.pickle", "a.json", "a.pftrace"):
            for use in (lambda: m.export(self.folder / name), lambda: kpytrace.memory(self.folder / name, aggregate=True)):
                with self.assertRaisesRegex(ValueError, "has no history, so its path must end in .tables.json or .html"):
                    use()
        with self.assertRaisesRegex(ValueError, "no history"):
            kpytrace.memory(self.folder / "a.kpt", aggregate=True)
        with self.assertRaisesRegex(ValueError, "max_entries keeps the last entries, and aggregate keeps none"):
            kpytrace.memory(aggregate=True, max_entries=5)
        with self.assertRaisesRegex(ValueError, "aggregate="):
            kpytrace.memory(aggregate="perhaps")
        for wanted in ({"at": 0}, {"temporary_within": 5}):
            with self.assertRaisesRegex(ValueError, "record without max_entries and without aggregate"):
                m.tables(**wanted)
        m.close()
        with self.assertRaisesRegex(RuntimeError, "closed"):
            m.export(self.folder / "a.html")
        self.assertEqual(os.listdir(self.folder), [])

    def test_run_and_the_variable(self):
        code = "def f(): return [bytes(5000) for _ in range(100)]\nx = f()"
        done = kpytrace_command("run", "--memory", self.path, "--memory-aggregate", "-c", code)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(kpytrace_command("memory", self.path, "--by", "function").stdout, r"50\d\.\d\d kB .* f")
        done = kpytrace_command("run", "-q", "--memory", "a.html", "--memory-aggregate", "-c",
                                code + "\nimport kpytrace; kpytrace.dump('dump.tables.json')", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(Tables(self.folder / "dump.tables.json").total("end")[0], 505_000, delta=20_000)
        with self.assertRaisesRegex(RuntimeError, "no trace is running"):
            kpytrace.dump("a.html")
        done = run_python("-c", "from kpytrace import _startup; _startup.start(); x = [bytes(5000) for _ in range(100)]",
                          cwd=self.folder, env={"KPYTRACE_MEMORY": "b.html aggregate=1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('data-kind="memory"', (self.folder / "b.html").read_text("utf-8"))
        for words, text in ((("--memory-aggregate",), "need --memory FILE"),
                            (("--memory-aggregate", "--memory", "a.kpt"), "has no history, so its path must end in")):
            done = kpytrace_command("run", *words, "-c", "pass", cwd=self.folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)

    def test_threads(self):
        """Threads allocate while others write snapshots; blocks that one makes another frees."""
        with kpytrace.memory(aggregate=True) as m:
            given, done = [], threading.Event()

            def take():
                while not done.is_set() or given:
                    if given:
                        given.pop()

            def look():
                while not done.is_set():
                    m.export(self.path)
            threads = [threading.Thread(target=target) for target in (take, look)]
            for thread in threads:
                thread.start()
            for _ in range(100):
                given.extend(make(100, 7001))
            done.set()
            for thread in threads:
                thread.join()
        self.assertLess(self.amounts(m.tables(), "end").get("make", (0, 0))[0], 7001)
        self.assertGreater(sum(size for size, _ in self.amounts(m.tables(), "all").values()), 10_000 * 7001)

    def test_sigterm_writes_it(self):
        with subprocess.Popen([sys.executable, "-c", ENDLESS, self.path], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as child:
            while int(child.stdout.readline()) < 20:
                pass
            child.send_signal(signal.SIGTERM)
            child.wait()
        self.assertEqual(child.returncode, -signal.SIGTERM)
        self.assertGreaterEqual(Tables(self.path).total("end")[0], 20 * 1000 * 5033)

    def test_a_fork_has_none_of_it(self):
        self.program("""
            import os, sys, kpytrace
            m = kpytrace.memory(sys.argv[1], aggregate=True).start()
            kept = [bytes(11003) for _ in range(1000)]
            for _ in range(5):
                child = os.fork()
                if child == 0:
                    kept.append([bytes(13007) for _ in range(1000)])
                    with kpytrace.memory(sys.argv[1] + ".child.tables.json", aggregate=True):
                        kept.append([bytes(12011) for _ in range(100)])
                    m.start()
                    kept.append([bytes(14009) for _ in range(100)])
                    m.export(sys.argv[1] + ".again.tables.json")
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
            m.stop()
            """)
        for name, size in (("", 1000 * 11036), (".child.tables.json", 100 * 12044), (".again.tables.json", 100 * 14042)):
            largest = Tables(f"{self.path}{name}").rows("end", "function")[0].bytes
            self.assertAlmostEqual(largest / size, 1, delta=.03)

    @unittest.skipIf("ASAN_OPTIONS" in os.environ, "AddressSanitizer keeps what was freed")
    def test_memory_does_not_grow(self):
        done = self.program("""
            import sys, kpytrace
            def peak():
                with open("/proc/self/status") as status:
                    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
            with kpytrace.memory(sys.argv[1], aggregate=True):
                for _ in range(200_000): [object()]
                before = peak()
                for _ in range(1_000_000): [object()]
                print(peak() - before)
            """)
        self.assertLess(int(done.stdout), 30_000, "kB; 2 million events in memory take 48,000")


if __name__ == "__main__":
    unittest.main()
