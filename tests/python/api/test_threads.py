"""Threads: calls of several at once on one trace or recording, what one of them is writing when the program ends,
and what a stream holds of those that waited when it began."""

import asyncio
import pathlib
import queue
import sys
import textwrap
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from snapshots import Snapshot
from support import BACKEND, FREE_THREADED, Case, MemoryCase, run_python

import kpytrace
from kpytrace import _standalone

WITHOUT = "there is no backend for this Python"
NO_MEMORY = "there is no backend that records memory"


def leaf():
    pass


def work(n):
    for _ in range(n):
        leaf()


class AtOnce:
    """Runs THEN while another thread calls OTHER repeatedly."""

    def __init__(self, other, then):
        self.failed, self.ending, self.times = [], False, 0
        thread = threading.Thread(target=self.repeat, args=(other,))
        thread.start()
        while not self.times:
            time.sleep(0.001)
        try:
            then()
        finally:
            self.ending = True
            thread.join()

    def repeat(self, other):
        while not self.ending:
            try:
                other()
            except Exception as error:
                self.failed.append(error)
            self.times += 1


@unittest.skipUnless(BACKEND.exists(), WITHOUT)
class Traces(Case):
    def test_one_stops_what_others_read(self):
        for name in ("stats", "dump"):
            trace = kpytrace.start(self.path)
            work(20_000)
            together = AtOnce(getattr(trace, name), trace.stop)
            self.assertEqual(together.failed, [])
            self.assertGreaterEqual(self.names().count(next(n for n in self.names() if n.endswith(": leaf"))), 20_000)

    def test_what_a_daemon_writes_at_the_end(self):
        """The program ends when the file is complete."""
        done = run_python("-c", textwrap.dedent("""
            import sys, threading, kpytrace
            def leaf(): pass
            trace = kpytrace.start(sys.argv[1])
            for i in range(100_000): leaf()
            threading.Thread(target=kpytrace.stop, daemon=True).start()
            while trace.running: pass
            """), self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([path.name for path in self.folder.iterdir()], [self.path.name])
        self.assertGreaterEqual(len(self.calls()), 100_000)


# While a thread is at its first START, another one forks, and the child does the same, twice.
FORK = """
    import atexit, os, signal, sys, threading
    import kpytrace, kpytrace._api.memory, kpytrace._processes.process_hooks, kpytrace._standalone
    begun, forked, real = threading.Event(), threading.Event(), atexit.register
    def register(function):
        begun.set()
        forked.wait()
        return real(function)
    def start():
        return START
    atexit.register = register
    thread = threading.Thread(target=start)
    thread.start()
    begun.wait()
    pid = os.fork()
    if not pid:
        signal.alarm(60)
        atexit.register = real
        start().stop()
        start().stop()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    forked.set()
    thread.join()
    sys.exit(status)
    """


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, WITHOUT)
class Forks(Case):
    def test_during_the_first_start(self):
        for start in ("kpytrace.start()", "kpytrace.memory().start()"):
            done = run_python("-W", "ignore", "-c", textwrap.dedent(FORK).replace("START", start))
            self.assertEqual((done.returncode, done.stderr), (0, ""), start)


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, NO_MEMORY)
class Memory(MemoryCase):
    def test_one_stops_what_others_export(self):
        memory = kpytrace.memory(self.path)
        memory.start()
        kept = [bytes(100) for _ in range(10_000)]
        together = AtOnce(lambda: memory.export(self.folder / "other.pickle"), memory.stop)
        self.assertEqual(together.failed, [])
        del kept
        for name in (self.path.name, "other.pickle"):
            Snapshot(self.folder / name).check(self)

    def test_what_a_daemon_writes_at_the_end(self):
        done = run_python("-c", textwrap.dedent("""
            import sys, threading, kpytrace
            memory = kpytrace.memory(sys.argv[1]).start()
            kept = [bytes(100) for _ in range(100_000)]
            threading.Thread(target=memory.stop, daemon=True).start()
            while memory.running: pass
            """), self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([path.name for path in self.folder.iterdir()], [self.path.name])
        Snapshot(self.path).check(self)


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, WITHOUT)
class NewThreads(Case):
    def test_the_first_calls_of_a_thread_begin_with_it(self):
        """Also where the tracer first sees a thread inside of its first calls (3.10 and 3.11)."""
        program = """
            import json, sys, threading, time, kpytrace
            sys.setswitchinterval(1e-4)
            gate = threading.Event()
            old = threading.Thread(target=lambda: (gate.wait(), len("x")))
            old.start()
            with kpytrace.trace("t.json"):
                time.sleep(0.3)
                new = threading.Thread(target=lambda: len("y"))
                new.start()
                new.join()
                gate.set()
                old.join()
            events = [e for e in json.load(open("t.json"))["traceEvents"] if e.get("ph") == "X"]
            first = min(e["ts"] for e in events)
            begins = [e["ts"] - first for e in events if e["name"].endswith("): _bootstrap_inner")]
            assert len(begins) == 2, begins
            assert min(begins) < 0.1e6, begins  # the old thread's: since the trace began
            assert max(begins) > 0.25e6, begins
            """
        reply = run_python("-c", textwrap.dedent(program), cwd=self.folder)
        self.assertEqual(reply.returncode, 0, reply.stderr)


@unittest.skipUnless(BACKEND.exists(), WITHOUT)
class Streams(Case):
    def setUp(self):
        super().setUp()
        self.kpt = self.folder / "trace.kpt"

    def repaired(self):
        """Returns the number of events that replay repaired."""
        read, state, _ = _standalone.open(kpytrace._api.native.plugin_file(), str(self.kpt), False)
        self.assertEqual(state, "whole")
        _standalone.write(read, str(self.path), None)
        return _standalone.stats(read)["events_repaired"]

    @unittest.skipIf(FREE_THREADED, "the stacks of other threads are not looked at")
    def test_a_thread_that_waits_through_flushes(self):
        """The flush writes the open calls of the thread before the thread does. Both are the same calls."""
        items = queue.Queue()

        def wait():
            while items.get():
                leaf()

        thread = threading.Thread(target=wait)
        thread.start()
        with kpytrace.trace(self.kpt, flush_ns="1ms"):
            time.sleep(0.2)
            items.put(1)
            time.sleep(0.05)
            items.put(0)
            thread.join()
        self.assertEqual(self.repaired(), 0)
        calls = [e for e in self.calls() if e["name"].endswith(": wait") and __file__ in e["name"]]
        self.assertEqual(len(calls), 1)
        self.assertGreater(calls[0]["dur"], 200_000)
        waits = [e for e in self.calls() if e["name"].endswith(": get")]
        self.assertEqual([e["args"].get("began before", False) for e in sorted(waits, key=lambda e: e["ts"])],
                         [True, False])

    def test_tasks_and_new_chunks(self):
        """A task's mark is not older than its call, also if a chunk begins between them."""
        async def step():
            for _ in range(100):
                await asyncio.sleep(0)

        async def main():
            for _ in range(20):
                await asyncio.gather(*(step() for _ in range(20)))

        with kpytrace.trace(self.kpt, flush_ns="50us"):
            asyncio.run(main())
        self.assertEqual(self.repaired(), 0)


if __name__ == "__main__":
    unittest.main()
