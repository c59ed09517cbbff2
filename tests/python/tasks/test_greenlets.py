"""Greenlets: each has its own track, in which its calls nest. Needs the package greenlet, and gevent for the
tests of gevent; KPT_GREENLETS names their folder if this Python has none itself."""

import collections
import os
import pathlib
import sys
import threading
import unittest

if os.environ.get("KPT_GREENLETS"):
    sys.path.append(os.environ["KPT_GREENLETS"])
try:
    import greenlet
except ImportError:
    sys.exit(77)
try:
    import gevent
except ImportError:
    gevent = None

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, FREE_THREADED, Case, run_python

import kpytrace

FIRST_TID = 20_000_000


def leaf():
    pass


def deep(depth, other):
    if depth:
        deep(depth - 1, other)
    else:
        other.switch()
    leaf()


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, "no backend that knows greenlets")
class Greenlets(Case):
    def tracks(self):
        """Returns the calls of each track, which nest strictly, by its name."""
        events = self.read_trace()["traceEvents"]
        names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
        tracks = {name: [] for name in names.values()}
        for e in events:
            if e["ph"] == "X":
                tracks[names[e["tid"]]].append(e)
        for calls in tracks.values():
            calls.sort(key=lambda e: e["args"]["Python id"])
            open_ = {None: (0.0, 1e18)}
            for e in calls:
                self.assertNotIn("recovered", e["args"], e)
                begin, end = open_[e["args"]["Python parent id"]]
                self.assertTrue(begin <= e["ts"] and e["ts"] + e["dur"] <= end + 1e-6, e)
                open_[e["args"]["Python id"]] = (e["ts"], e["ts"] + e["dur"])
        return tracks

    def functions(self, calls):
        return [e["name"].rpartition(": ")[2] for e in calls if ": " in e["name"]]

    def test_each_has_its_own_track(self):
        main = greenlet.getcurrent()

        def run_a():
            leaf()
            deep(3, main)
            deep(1, b)

        def run_b():
            deep(2, a)

        a, b = greenlet.greenlet(run_a), greenlet.greenlet(run_b)
        with kpytrace.trace(self.path) as trace:
            a.switch()
            leaf()
            b.switch()
            leaf()
            a.switch()
        self.assertEqual(trace.stats()["events_repaired"], 0)
        tracks = self.tracks()
        own = {name: self.functions(calls) for name, calls in tracks.items() if name.startswith("greenlet-")}
        self.assertEqual(sorted(own.values()),
                         sorted([["run_a", "leaf", "deep", "deep", "deep", "deep", "leaf", "leaf", "leaf",
                                  "leaf", "deep", "deep", "leaf", "leaf"],
                                 ["run_b", "deep", "deep", "deep", "leaf", "leaf", "leaf"]]))
        self.assertEqual(self.functions(tracks["MainThread"]).count("leaf"), 2)

    def test_exceptions_generators_and_dead_ones(self):
        def failing():
            try:
                deep(2, main)
            finally:
                leaf()

        def generate():
            for number in range(3):
                main.switch(number)
                yield number

        main = greenlet.getcurrent()
        with kpytrace.trace(self.path):
            for _ in range(50):
                g = greenlet.greenlet(failing)
                g.switch()
                with self.assertRaises(ValueError):
                    g.throw(ValueError)
                g = greenlet.greenlet(lambda: list(generate()))
                while not g.dead:
                    g.switch()
                g = greenlet.greenlet(failing)
                g.switch()
                del g  # killed where it is
        self.assertEqual(len([name for name in self.tracks() if name.startswith("greenlet-")]), 150)

    def test_in_many_threads(self):
        def work():
            main = greenlet.getcurrent()
            all_ = [greenlet.greenlet(deep) for _ in range(10)]
            for depth, g in enumerate(all_):
                g.switch(depth, main)
            for g in all_:
                g.switch()

        with kpytrace.trace(self.path):
            threads = [threading.Thread(target=work, name=f"t{i}") for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        tracks = self.tracks()
        counts = sorted(self.functions(c).count("deep") for n, c in tracks.items() if n.startswith("greenlet-"))
        self.assertEqual(counts, sorted(list(range(1, 11)) * 8))

    def test_begun_and_ended_inside(self):
        """The program's own trace function is called for each switch, and is restored afterwards."""
        heard = []

        def listen(event, args):
            heard.append(event)

        def inside():
            with kpytrace.trace(self.path):
                deep(2, main)
                leaf()

        main = greenlet.getcurrent()
        greenlet.settrace(listen)
        self.addCleanup(greenlet.settrace, None)
        g = greenlet.greenlet(inside)
        g.switch()
        g.switch()
        self.assertEqual(heard, ["switch"] * 4)
        g = greenlet.greenlet(leaf)
        g.switch()
        self.assertEqual(heard, ["switch"] * 6)
        self.assertIs(greenlet.gettrace(), listen)
        self.assertIn("deep", sum(map(self.functions, self.tracks().values()), []))

    def test_the_program_takes_its_trace_function_back(self):
        """Then greenlets share a track, and replay repairs their events so that the calls in the file nest."""
        main = greenlet.getcurrent()
        with kpytrace.trace(self.path):
            first = greenlet.greenlet(deep)
            first.switch(1, main)
            greenlet.settrace(None)
            for _ in range(200):
                g = greenlet.greenlet(deep)
                g.switch(3, main)
                g.switch()
            first.switch()
        for e in self.calls():
            self.assertGreaterEqual(e["dur"], 0)

    def test_imported_later(self):
        script = self.folder / "program.py"
        script.write_text("import sys\nsys.path += [p for p in [%r] if p]\nimport greenlet\n"
                          "def leaf(): pass\n"
                          "def body():\n    leaf()\n    main.switch()\n    leaf()\n"
                          "main = greenlet.getcurrent()\n"
                          "for _ in range(3):\n"
                          "    g = greenlet.greenlet(body); g.switch(); leaf(); g.switch()\n"
                          % os.environ.get("KPT_GREENLETS", ""))
        out = run_python("-m", "kpytrace", "run", "-q", "-o", self.path, script, cwd=self.folder)
        self.assertEqual(out.returncode, 0, out)
        tracks = self.tracks()
        self.assertEqual([self.functions(c) for n, c in tracks.items() if n.startswith("greenlet-")],
                         [["body", "leaf", "leaf"]] * 3)

    def test_fork(self):
        """The child of a fork continues its greenlets, and can start its own trace."""
        script = self.folder / "program.py"
        script.write_text("import os, sys\nsys.path += [p for p in [%r] if p]\nimport greenlet, threading\n"
                          "def leaf(): pass\n"
                          "def body():\n"
                          "    while True:\n"
                          "        leaf()\n        greenlet.getcurrent().parent.switch()\n"
                          "def begin(): return [greenlet.greenlet(body) for _ in range(20)]\n"
                          "def go_on():\n    for g in own: g.switch()\n"
                          "def elsewhere():\n"
                          "    others.extend(begin())\n"
                          "    for g in others: g.switch()\n"
                          "    begun.set(); forked.wait()\n"
                          "own, others, begun, forked = begin(), [], threading.Event(), threading.Event()\n"
                          "thread = threading.Thread(target=elsewhere)\n"
                          "thread.start(); begun.wait()\n"
                          "go_on()\n"
                          "pid = os.fork()\n"
                          "if not pid:\n"
                          "    go_on()\n    others.clear()\n    go_on()\n    sys.exit(3)\n"
                          "status = os.waitpid(pid, 0)[1]\n"
                          "forked.set()\nthread.join()\ngo_on()\n"
                          "sys.exit(status != 3 << 8)\n"
                          % os.environ.get("KPT_GREENLETS", ""))
        out = run_python("-W", "ignore", "-m", "kpytrace", "run", "-q", "--children", "-o", self.path, script,
                         cwd=self.folder)
        self.assertEqual((out.returncode, out.stderr), (0, ""))
        events = self.read_trace()["traceEvents"]
        counts = collections.Counter(e["pid"] for e in events if e["ph"] == "X" and e["name"].endswith(": leaf"))
        self.assertEqual(sorted(counts.values()), [40, 60])

    def test_left_out(self):
        main = greenlet.getcurrent()
        with kpytrace.trace(self.path, tasks=False):
            g = greenlet.greenlet(deep)
            g.switch(1, main)
            g.switch()
        self.assertFalse([e for e in self.calls() if e["tid"] >= FIRST_TID])

    @unittest.skipUnless(gevent, "there is no gevent")
    def test_gevent(self):
        from gevent import queue

        channel = queue.Queue(2)
        done = []

        def produce():
            for number in range(20):
                channel.put(number)
                gevent.sleep(0)

        def consume():
            for _ in range(20):
                done.append(channel.get())
                leaf()

        with kpytrace.trace(self.path):
            gevent.joinall([gevent.spawn(f) for _ in range(5) for f in (produce, consume)])
        self.assertEqual(len(done), 100)
        tracks = self.tracks()
        own = [self.functions(c) for n, c in tracks.items() if n.startswith("Greenlet-")]
        self.assertEqual(len(own), 10)
        self.assertEqual(sum(f.count("leaf") for f in own), 100)
        self.assertEqual(sorted({len({"produce", "consume"} & set(f)) for f in own}), [1])


if __name__ == "__main__":
    unittest.main()
