"""A flight recorder that writes itself: start(ring=..., dump_on=...)."""

import contextlib
import io
import pathlib
import re
import sys
import time
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case, run_python

import kpytrace
from kpytrace._cli import commands

PROGRAM = """
import sys, time, kpytrace

def work(seconds):
    time.sleep(seconds)

trace = kpytrace.start(sys.argv[1], ring="10s", dump_on=sys.argv[2], dumps_per_hour=int(sys.argv[3]))
exec(sys.argv[4])
trace.stop()
"""
STEPS = """
for number in range(1, {count} + 1):
    with kpytrace.span("step"):
        work({slow} if number in {which} else 0.005)
    {between}
"""


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class DumpOn(Case):
    def run_program(self, dump_on, code, per_hour=6):
        reply = run_python("-c", PROGRAM, self.folder / "out.kpt", dump_on, str(per_hour), code)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return reply.stderr

    def reasons(self):
        """Returns the reasons that the dumps have, in their order."""
        found = []
        for number in range(1, 100):
            path = self.folder / f"out.{number}.kpt"
            if not path.exists():
                return found
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                self.assertEqual(commands.main(["info", "-q", str(path)]), 0)
            found.append(re.search(r"^dump: +(.*)$", out.getvalue(), re.M).group(1))

    def test_a_slow_step(self):
        text = self.run_program("step>20x", STEPS.format(count=20, slow=0.6, which=(15,), between="time.sleep(0.01)"))
        reason, = self.reasons()
        self.assertRegex(reason, r"^step 15 took \d{3,}\.\d ms, \d+\.\d times the median of \d+\.\d ms$")
        self.assertIn(f"kpytrace: {reason}: the trace is in {self.folder}/out.1.kpt", text)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(commands.main(["top", "-q", str(self.folder / "out.1.kpt")]), 0)
        self.assertIn("work", out.getvalue())

    def test_what_is_between_the_steps_does_not_count(self):
        between = "time.sleep(0.6 if number == 12 else 0)"
        self.run_program("step>60x", STEPS.format(count=15, slow=0, which=(), between=between))
        self.assertEqual(self.reasons(), [])

    def test_a_hang_is_written_once(self):
        text = self.run_program("hang=500ms", "work(2.2)\nwork(0.1)")
        reason, = self.reasons()
        self.assertRegex(reason, r"^nothing has happened for 0\.\d s$")
        self.assertEqual(text.count("the trace is in"), 1)

    def test_threads_that_look_now_and_then_are_idle_if_there_are_steps(self):
        """torch's DataLoader has such threads, which wait for five seconds at a time."""
        poll = "import threading\nthreading.Thread(target=lambda: [work(0.2) for _ in range(12)]).start()\n"
        self.run_program("hang=1s", STEPS.format(count=3, slow=0, which=(), between="pass") + poll + "time.sleep(2)")
        self.assertEqual(len(self.reasons()), 1)
        self.run_program("hang=1s", poll + "time.sleep(2)")
        self.assertEqual(len(self.reasons()), 1)

    def test_a_noop_writes_nothing(self):
        self.use_noop()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trace = kpytrace.start(self.folder / "out.kpt", ring="10s", dump_on="hang=100ms")
        time.sleep(0.5)
        trace.stop()
        self.assertEqual(self.reasons(), [])

    def test_a_trace_that_nobody_stops_ends(self):
        trace = kpytrace.Trace(self.folder / "out.kpt", {"ring": "1s", "dump_on": "hang=60s"})
        trace._start(nests=True)
        del trace
        kpytrace.start(self.folder / "out.kpt", ring="1s", dump_on="hang=60s").stop()

    def test_both(self):
        code = STEPS.format(count=10, slow=0.6, which=(9,), between="pass") + "\nwork(7)"
        self.run_program("step>20x, hang=1s", code)
        slow, hang = self.reasons()
        self.assertIn("step 9 took", slow)
        self.assertIn("nothing has happened", hang)

    def test_at_most_so_many_an_hour(self):
        between = "time.sleep(5.5 if number == 10 else 0)"
        text = self.run_program("step>20x", STEPS.format(count=20, slow=0.6, which=(10, 15), between=between), 1)
        self.assertEqual(len(self.reasons()), 1)
        self.assertEqual(len(re.findall("no trace is written: there were 1 within an hour", text)), 1)

    def test_another_process_may_ask(self):
        path = self.folder / "out.kpt"
        with kpytrace.trace(path, ring="10s", dump_on="hang=60min") as trace:
            kpytrace._api.native.standalone.ask_dump(trace._handle, "rank 3: step 8 took 5 s")
            for _ in range(100):
                if (self.folder / "out.1.kpt").exists():
                    break
                time.sleep(0.05)
            self.assertEqual(kpytrace._api.native.standalone.own_dumps(trace._handle), (0, ""))
        self.assertEqual(self.reasons(), ["rank 3: step 8 took 5 s"])

    def test_what_is_refused(self):
        for options, text in (({"dump_on": "hang=1s"}, "dump_on needs a ring and an output"),
                              ({"dump_on": "step>0.5x", "ring": "1s"}, "dump_on must have a factor of at least 1"),
                              ({"dump_on": "slow", "ring": "1s"}, "dump_on must be like 'step>3x'"),
                              ({"dump_on": 5, "ring": "1s"}, "dump_on must be like 'step>3x'"),
                              ({"dump_on": "hang=60", "ring": "1s"}, "dump_on must have a time with its unit"),
                              ({"dump_on": "hang=0s", "ring": "1s"}, "dump_on must have a time with its unit"),
                              ({"dump_on": "hang=1s", "ring": "1s", "dumps_per_hour": 0}, "between 1 and 60"),
                              ({"dump_on": "hang=soon", "ring": "1s"}, "dump_on must be a number followed by")):
            with self.subTest(options), self.assertRaisesRegex(ValueError, text):
                kpytrace.start(self.folder / "out.kpt", **options)
        with self.assertRaisesRegex(ValueError, "dump_on needs a ring and an output"):
            kpytrace.start(None, ring="1s", dump_on="hang=1s")


if __name__ == "__main__":
    unittest.main()
