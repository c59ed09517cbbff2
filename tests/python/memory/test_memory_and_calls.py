"""Calls and memory in one .kpt file: streamed together, and on one clock."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from both_parts import Both, kpytrace_command
from snapshots import Snapshot
from support import BACKEND, FREE_THREADED, TAG, limit_file_size, run_python

import kpytrace
from kpytrace._files.kpt_header import File

# Keeps a block of 1,000 bytes in each call of keep, and prints how often it has done so.
ENDLESS = """
import sys, kpytrace
kept = []
def keep(): kept.append(bytes(967))
kpytrace.start(sys.argv[1], memory=True)
while True:
    for _ in range(1000): keep()
    print(len(kept), flush=True)
"""


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, f"memory is not recorded on CPython {TAG} here")
class Stream(Both):
    def test_a_trace_with_memory(self):
        def keep():
            kept = []
            for _ in range(100):
                kept.append(bytes(11_967))
            return kept

        with kpytrace.trace(self.path, memory=True) as t:
            kept = keep()
            during = t.memory.tables()
        for tables in (during, t.memory.tables()):
            self.assertIn("keep", max(tables.rows("end", "function"), key=lambda row: row.bytes).where)
        self.assertFalse(t.memory.running)
        self.assertEqual(self.kept_blocks(12_000), len(kept))
        self.assertEqual(len(self.calls_of("keep")), 1)
        self.assertEqual(File(self.path).info["recording"], "calls and memory")
        with self.assertRaisesRegex(RuntimeError, "is complete: make a new recording"):
            t.memory.start()

    def test_the_package_adds_few_calls(self):
        own = {}
        for name, options in {"alone": {}, "both": {"memory": True}}.items():
            with kpytrace.trace(self.folder / f"{name}.kpt", **options) as t:
                pass
            own[name] = t.summary.calls
        self.assertLess(own["both"], own["alone"] + 40)

    def test_both_parts_are_on_one_clock(self):
        """Time of memory is in steps of up to 2 µs, which are cut off: an allocation may be early by so much."""
        kept = []

        def keep(i):
            kept.append(bytes(100_000 + i))

        with kpytrace.trace(self.path, memory=True):
            for i in range(100):
                keep(i)
                time.sleep(0.002)
        calls = self.calls_of("keep")
        times = [base + e["ts"] * 1000 for e, base in self.events("memory")
                 if e["name"] == "[memory]" and e["args"]["Bytes"] > 100_000]
        self.assertEqual((len(calls), len(times)), (100, 100))
        for (begin, end), at in zip(calls, times):
            self.assertTrue(begin - 3000 <= at <= end + 1000, (begin, at, end))

    def test_a_recording_joins_the_trace_that_writes_its_path(self):
        with kpytrace.trace(self.path) as t:
            before = bytes(12_967)
            with kpytrace.memory(self.path) as m:
                kept = bytes(11_967)
            self.assertIs(t.memory, m)
            after = bytes(13_967)
            with self.assertRaisesRegex(RuntimeError, "has a recording of memory already: choose another path"):
                kpytrace.memory(self.path).start()
            with kpytrace.memory(self.folder / "other.kpt"):
                pass
        self.assertEqual([self.kept_blocks(len(block) + 33) for block in (before, kept, after)], [0, 1, 0])
        m.export(self.folder / "now.pickle")
        self.convert("then.pickle", "-q")
        self.assertEqual(*((self.folder / name).read_bytes() for name in ("now.pickle", "then.pickle")))

    def test_the_recording_ends_with_the_trace(self):
        t = kpytrace.start(self.path)
        m = kpytrace.memory(self.path).start()
        kept = bytes(11_967)
        kpytrace.stop()
        self.assertFalse(m.running or t.running)
        m.stop()
        self.assertEqual(self.kept_blocks(len(kept) + 33), 1)
        t.close()
        m.close()
        t = kpytrace.start(self.path, memory=True)
        m = t.memory
        t.close()
        self.assertFalse(m.running)

    def test_a_trace_that_is_lost_ends_before_its_memory(self):
        """The recording's object holds the C part of the trace."""
        m = self.program("""
            import gc, sys, kpytrace
            t = kpytrace.Trace(sys.argv[1])
            t.__enter__()
            m = kpytrace.memory(sys.argv[1]).start()
            del t
            gc.collect()
            kept = [bytes(11_967) for _ in range(10)]
            m.stop()
            del m
            gc.collect()
            """)
        self.assertEqual(m.stderr, "")
        self.assertEqual(self.kept_blocks(12_000), 10)

    def test_samples(self):
        with kpytrace.trace(self.path, memory="1kB") as t:
            kept = [bytes(967) for _ in range(1000)]
        self.assertEqual(t.memory.tables().sample_bytes, 1000)
        self.assertLess(self.kept_blocks(1000), len(kept))

    def test_a_dump_and_a_conversion_have_both(self):
        with kpytrace.trace(self.path, memory=True) as t:
            kept = [bytes(11_967) for _ in range(10)]
            copy = t.dump()
        self.path = pathlib.Path(copy)
        self.assertEqual(self.kept_blocks(12_000), len(kept))
        self.assertEqual(len(self.calls_of("dump")), 1)
        self.convert("again.kpt", "-q")
        self.path = self.folder / "again.kpt"
        self.assertEqual(self.kept_blocks(12_000), len(kept))
        self.assertEqual(File(self.path).info["recording"], "calls and memory")
        self.check_page(("trace", "memory"))

    def test_what_can_not_be_recorded_together(self):
        for output, options in (("a.json", {}), ("a.json", {"stream": True}), ("a.kpt", {"ring": "10s"}),
                                ("a.kpt", {"stream": False})):
            with self.assertRaisesRegex(ValueError, "memory is recorded into a .kpt file"):
                kpytrace.trace(self.folder / output, memory=True, **options)
        with self.assertRaisesRegex(ValueError, "must be True, False or a size"):
            kpytrace.trace(self.path, memory=[])
        with kpytrace.trace(self.path, memory=False) as t:
            pass
        self.assertIsNone(t.memory)
        with kpytrace.memory(self.folder / "other.kpt"):
            with self.assertRaisesRegex(RuntimeError, "memory is being recorded already"):
                kpytrace.start(self.path, memory=True)
        self.assertIsNone(kpytrace._api.trace._active)

    def killed(self, number):
        """Returns how many blocks the program had made when the signal was sent."""
        with subprocess.Popen([sys.executable, "-c", ENDLESS, self.path], stdout=subprocess.PIPE) as program:
            count = [int(program.stdout.readline()) for _ in range(30)][-1]
            program.send_signal(number)
            program.stdout.read()
        self.assertEqual(program.returncode, -number)
        return count

    def test_sigterm_writes_the_rest_of_both(self):
        count = self.killed(signal.SIGTERM)
        self.assertGreaterEqual(self.kept_blocks(1000), count)
        self.assertGreaterEqual(len(self.calls_of("keep")), count)

    def test_a_killed_program_leaves_both_and_a_conversion_completes_them(self):
        self.killed(signal.SIGKILL)
        done = kpytrace_command("report", self.path, "-o", self.folder / "page.html")
        self.assertEqual(done.stderr.count("is cut off"), 1, done.stderr)
        blocks, calls = self.kept_blocks(1000), len(self.calls_of("keep"))
        self.assertTrue(blocks and calls)
        self.convert("again.kpt")
        self.path = self.folder / "again.kpt"
        self.assertTrue(File(self.path).ended)
        self.assertEqual((self.kept_blocks(1000), len(self.calls_of("keep"))), (blocks, calls))

    def test_a_conversion_that_is_killed_leaves_the_recording(self):
        with kpytrace.trace(self.path, memory=True):
            kept = [bytes(11_967) for _ in range(10)]
            for i in range(200_000):
                str(i)
        before = self.path.read_bytes()
        for target in ("a.kpt", "a.pickle", "a.html"):
            (self.folder / target).write_text("of before")
            for wait in (0.1, 0.2):
                with subprocess.Popen([sys.executable, "-m", "kpytrace", "convert", "-q", self.path,
                                       self.folder / target]) as program:
                    time.sleep(wait)
                    program.kill()
                if program.returncode:
                    self.assertEqual((self.folder / target).read_text(), "of before")
            self.convert(target, "-q")
            self.assertNotEqual((self.folder / target).read_bytes(), b"of before")
        self.assertEqual(self.path.read_bytes(), before)
        self.assertEqual(self.kept_blocks(12_000), len(kept))

    def test_a_full_disk(self):
        done = self.program(limit_file_size(300_000) + """
import signal, sys, kpytrace
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
kept = []
def keep(i): kept.append(str(i) * (i % 50))
try:
    with kpytrace.trace(sys.argv[1], memory=True):
        for i in range(300_000): keep(i)
except OSError as error:
    print(error)
print(len(kept))
""")
        self.assertEqual(done.stderr, "")
        self.assertRegex(done.stdout, r"\A\[Errno 27\] .*both\.kpt: File too large; \d+ events and all later allocations were "
                         r"lost, the rest of the file is whole.*\n300000\n\Z")
        self.assertLessEqual(self.path.stat().st_size, 300_000)
        self.convert("a.pickle")
        self.assertGreater(len(Snapshot(self.folder / "a.pickle").check(self).entries), 1000)
        self.assertGreater(len(self.calls_of("keep")), 100)

    def test_run_prints_a_full_disk_once(self):
        done = run_python("-c", limit_file_size(200_000) + f"""
import signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-m", "kpytrace", "run", "-o", {str(self.path)!r}, "--memory",
                          {str(self.path)!r}, "-c", "x = [str(i) for i in range(300000)]; print(len(x))"])
""")
        self.assertEqual((done.returncode, done.stdout), (0, "300000\n"))
        self.assertEqual(done.stderr.count("File too large"), 1, done.stderr)

    def test_a_fork_leaves_the_file_to_its_parent(self):
        self.program("""
            import os, sys, kpytrace
            with kpytrace.trace(sys.argv[1], memory=True) as t:
                kept = [bytes(11_967) for _ in range(100)]
                for _ in range(5):
                    child = os.fork()
                    if child == 0:
                        kept.append([bytes(12_967) for _ in range(100)])
                        t.stop()
                        with kpytrace.trace(sys.argv[1] + ".child.kpt", memory=True):
                            kept.append(bytes(13_967))
                        os._exit(0)
                    assert os.waitpid(child, 0)[1] == 0
                kept += [bytes(11_967) for _ in range(100)]
            """)
        self.assertEqual([self.kept_blocks(size) for size in (12_000, 13_000)], [200, 0])
        self.path = self.folder / "both.kpt.child.kpt"
        self.assertEqual([self.kept_blocks(size) for size in (12_000, 13_000, 14_000)], [0, 0, 1])

    def test_run_with_children(self):
        (self.folder / "program.py").write_text("import os, sys\n"
                                                "def keep(size): return [bytes(size) for _ in range(100)]\n"
                                                "if os.fork() == 0:\n    kept = keep(12_967)\n    sys.exit()\n"
                                                "kept = keep(11_967)\nos.wait()\n")
        done = kpytrace_command("run", "--children", "-o", self.path, "--memory", self.path, self.folder / "program.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([self.kept_blocks(size) for size in (12_000, 13_000)], [100, 0])
        self.assertEqual(len(self.calls_of("keep")), 1)
        self.path, = (self.folder / "both.children").glob("*.kpt")
        self.assertEqual(self.kept_blocks(13_000), 100)
        self.assertEqual(len(self.calls_of("keep")), 1)

    def test_run_and_the_commands(self):
        def run(*options, status=0):
            done = kpytrace_command("run", *options, "-c", "def f(): return [bytes(967) for _ in range(1000)]\nx = f()",
                                    cwd=self.folder)
            self.assertEqual(done.returncode, status, done.stderr)
            return done.stderr

        run("-o", "both.kpt", "--memory", self.path)
        self.assertEqual(os.listdir(self.folder), ["both.kpt"])
        self.assertRegex(kpytrace_command("memory", self.path, "--by", "function").stdout, r"1\.0\d MB .* f")
        self.assertRegex(kpytrace_command("top", "-n", "0", self.path).stdout, r" 1 .* <string>\(1\): f\n")
        self.assertRegex(kpytrace_command("info", self.path).stdout, r"(?s)recording:    calls and memory\n.*memory:       "
                         r"[1-9][\d,]+ allocations and frees in [1-9][\d,]+ bytes\n")
        run("-o", "both.kpt", "--memory", "both.kpt", "--memory-sample", "512kB")
        self.assertIn("one byte in 512,000", kpytrace_command("memory", self.path).stdout)
        for name, options, message in (("a.json", (), "only if it is a .kpt file"), ("a.kpt", ("--ring", "5s"), "and no ring"),
                                       ("a.kpt", ("--memory-entries", "9"), "keeps the last entries in memory")):
            self.assertIn(message, run("-o", name, "--memory", name, *options, status=2))

    def test_both_variables(self):
        variables = {"KPYTRACE": str(self.path), "KPYTRACE_MEMORY": f"{self.path} sample_bytes=1kB"}
        start = "from kpytrace._processes import autostart; autostart.start()\n"
        done = run_python("-c", start + "import os; print('KPYTRACE_MEMORY' in os.environ)", env=variables)
        self.assertEqual((done.returncode, done.stdout), (0, "False\n"), done.stderr)
        self.assertEqual(File(self.path).info["recording"], "calls and memory")
        variables["KPYTRACE_MEMORY"] = f"{self.path} max_frames=3"
        done = run_python("-c", start, env=variables)
        self.assertIn("memory is not recorded: max_frames can't be given", done.stderr)
        self.assertNotIn("recording", File(self.path).info)


if __name__ == "__main__":
    unittest.main()
