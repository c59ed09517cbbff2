"""The flight recorder: a ring that is written on a signal, on an uncaught exception, at the end and by
dump(), while tracing goes on."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case, run_python

import kpytrace

PROGRAM = """
import kpytrace, sys, threading, time
def leaf(n):
    return n
def work(n):
    for i in range(n):
        leaf(i)
"""


def leaf(n):
    return n


def work(n):
    for i in range(n):
        leaf(i)


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Flight(Case):
    def leaves(self, path):
        return sum(name.endswith(": leaf") for name in self.names(path))

    def wait_for(self, path):
        for _ in range(6000):
            if path.exists():
                return
            time.sleep(0.01)
        self.fail(f"{path} did not come")

    def test_the_end_is_kept(self):
        with kpytrace.trace(self.path, ring="256kB") as t:
            work(100_000)
        self.assertGreater(t.summary.dropped, 100_000)
        self.assertGreater(self.leaves(self.path), 1000)
        self.assertLess(self.leaves(self.path), 40_000)

    def test_issue_23_what_a_deep_ring_drops_is_counted_once(self):
        """Each chunk begins with all open calls, which are not counted as dropped with the chunk."""
        def deep(n):
            if n:
                return deep(n - 1)
            return work(100_000)

        self.addCleanup(sys.setrecursionlimit, sys.getrecursionlimit())
        sys.setrecursionlimit(10_000)
        with kpytrace.trace(self.path, ring="256kB") as t:
            deep(3000)
        self.assertGreater(t.summary.dropped, 150_000)
        self.assertLess(t.summary.dropped + t.stats()["events"], 2 * (100_000 + 3000) + 1000)

    def test_dump_goes_on(self):
        with kpytrace.trace(self.path, ring="10s"):
            work(100)
            one = kpytrace.dump()
            work(100)
            two = kpytrace.dump()
            three = kpytrace.dump(self.folder / "there.kpt")
        self.assertEqual([one, two, three], [str(self.folder / name) for name in
                                             ("trace.1.json", "trace.2.json", "there.kpt")])
        self.assertEqual([self.leaves(self.folder / name) for name in
                          ("trace.1.json", "trace.2.json", "trace.json")], [100, 200, 200])
        reply = run_python("-m", "kpytrace", "top", "-n", "0", three)
        self.assertIn(": leaf", reply.stdout)
        with self.assertRaisesRegex(RuntimeError, "no trace is running"):
            kpytrace.dump()

    def test_a_ring_as_a_kpt_file(self):
        kpt = self.folder / "ring.kpt"
        with kpytrace.trace(kpt, ring="256kB"):
            work(100_000)
            self.assertFalse(kpt.exists())
        reply = run_python("-m", "kpytrace", "convert", str(kpt), str(self.path))
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertGreater(self.leaves(self.path), 1000)

    def test_notes_of_a_ring_are_bounded(self):
        with kpytrace.trace(self.path, ring="64kB"):
            for i in range(200_000):
                kpytrace.counter("i", i)
        counters = [e for e in self.read_trace()["traceEvents"] if e["ph"] == "C"]
        self.assertLess(len(counters), 140_000)
        self.assertEqual(max(max(e["args"].values()) for e in counters), 199_999)

    def start_program(self, text, *words):
        program = self.folder / "program.py"
        program.write_text(PROGRAM + textwrap.dedent(text))
        command = [sys.executable, "-m", "kpytrace", "run", "-q", "--ring", "10s", "-o", str(self.path),
                   *words, str(program)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_a_signal(self):
        """Also while the program hangs in C."""
        child = self.start_program("""
            work(123)
            print("ready", flush=True)
            lock = threading.Lock()
            lock.acquire()
            lock.acquire(timeout=60)
            """)
        self.assertEqual(child.stdout.readline(), "ready\n")
        for n in (1, 2):
            child.send_signal(signal.SIGUSR2)
            dump = self.folder / f"trace.{n}.json"
            self.wait_for(dump)
            self.assertEqual(self.leaves(dump), 123)
        self.assertIsNone(child.poll())
        child.kill()
        said = child.communicate()[1]
        self.assertIn(f"kpytrace: SIGUSR2: the trace is in {self.folder / 'trace.1.json'}\n", said)

    def test_a_signal_in_the_midst_of_work(self):
        child = self.start_program("""
            threads = [threading.Thread(target=work, args=(10 ** 9,), daemon=True) for _ in range(3)]
            for t in threads: t.start()
            print("ready", flush=True)
            end = time.monotonic() + 60
            while time.monotonic() < end and not sys.stdin.closed: work(100)
            """, "--ring", "64kB")
        self.assertEqual(child.stdout.readline(), "ready\n")
        for n in range(1, 4):
            child.send_signal(signal.SIGUSR2)
            self.wait_for(self.folder / f"trace.{n}.json")
            self.assertGreater(self.leaves(self.folder / f"trace.{n}.json"), 100)
        child.kill()
        child.communicate()

    def test_a_programs_own_handler_stays(self):
        with unittest.mock.patch.dict(os.environ):
            before = signal.signal(signal.SIGUSR2, lambda *_: seen.append(1))
            self.addCleanup(signal.signal, signal.SIGUSR2, before)
            seen = []
            with kpytrace.trace(self.path, ring="10s"):
                os.kill(os.getpid(), signal.SIGUSR2)
                work(10)
            self.assertEqual(seen, [1])
            self.assertFalse((self.folder / "trace.1.json").exists())

    def test_the_signal_is_given_back(self):
        with kpytrace.trace(self.path, ring="10s"):
            pass
        reply = run_python("-c", PROGRAM + textwrap.dedent("""
            import os, signal
            with kpytrace.trace(sys.argv[1], ring="10s"):
                pass
            os.kill(os.getpid(), signal.SIGUSR2)
            """), str(self.path))
        self.assertEqual(reply.returncode, -signal.SIGUSR2)

    def test_an_uncaught_exception(self):
        child = self.start_program("work(5)\nraise ValueError('the reason')")
        out, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 1)
        self.assertIn("ValueError: the reason", err)
        self.assertIn("trace.1.json", err)
        self.assertEqual(self.leaves(self.folder / "trace.1.json"), 5)
        self.assertEqual(self.leaves(self.path), 5)

    def test_issue_23_a_restarted_program_keeps_its_dumps(self):
        for n in (1, 2, 3):
            _, err = self.start_program(f"work({n})\nraise ValueError('the reason')").communicate(timeout=60)
            self.assertIn(f"trace.{n}.json", err)
        self.assertEqual([self.leaves(self.folder / f"trace.{n}.json") for n in (1, 2, 3)], [1, 2, 3])
        with kpytrace.trace(self.path, ring="10s"):
            self.assertEqual([kpytrace.dump(), kpytrace.dump()],
                             [str(self.folder / f"trace.{n}.json") for n in (4, 5)])

    def test_an_uncaught_exception_of_a_thread(self):
        child = self.start_program("""
            def fail():
                work(7)
                1 / 0
            t = threading.Thread(target=fail); t.start(); t.join()
            work(3)
            """)
        out, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 0, err)
        self.assertIn("ZeroDivisionError", err)
        self.assertEqual(self.leaves(self.folder / "trace.1.json"), 7)
        self.assertEqual(self.leaves(self.path), 10)

    def test_ten_thousand_threads_in_turn(self):
        """Each thread has its own stream; the ring keeps only the chunks that fit."""
        kpt = self.folder / "threads.kpt"
        with kpytrace.trace(kpt) as t:
            for _ in range(10_000 if sys.version_info[:2] == (3, 12) else 1000):
                thread = threading.Thread(target=leaf, args=(1,))
                thread.start()
                thread.join()
        self.assertGreater(t.summary.threads, 1000 - 10)
        reply = run_python("-m", "kpytrace", "top", "-s", "calls", "-n", "0", str(kpt))
        count = next(row.split()[0] for row in reply.stdout.splitlines() if row.endswith(": leaf"))
        self.assertEqual(int(count.replace(",", "")), t.summary.threads - 1)


if __name__ == "__main__":
    unittest.main()
