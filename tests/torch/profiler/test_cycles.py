"""Schedules with several cycles: with acc_events none of them is lost, and a handler gets one trace of each,
whole and in strict JSON."""

import collections
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import parts
import support
from test_export import python_calls, read

CYCLES = str(pathlib.Path(__file__).with_name("cycles.py"))
KINDS = ("stock", "all", "full", "fast")
ACTIVE = [[2, 3], [6, 7], [10, 11]]  # the steps of each cycle
WAYS = ("plain", "packed", "exported")


def count(names):
    """Counts each name, without the parts that differ from run to run, and without lines, since that of
    a resumed generator does (T2)."""
    return collections.Counter(re.sub(r" at 0x[0-9a-f]+|\(\d+\)(?=: )", "", name) for name in names)


class Cycles(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        for kinds in (KINDS[:1], KINDS[1:]):
            reply = support.python(CYCLES, temporary.name, *kinds)
            if reply.returncode != 0:
                raise AssertionError(f"{kinds}: exit status {reply.returncode}\n{reply.stderr}")
        cls.folder = temporary.name
        cls.results = {kind: read(cls.path(kind, "results.json")) for kind in KINDS}

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    def events(self, kind, python):
        return count(name for name, is_python in self.results[kind]["events"]
                              if is_python == python)

    def test_T36_accumulated_operators(self):
        theirs = self.events("stock", False)
        self.assertEqual((theirs["ProfilerStep*"], theirs["aten::linear"]), (6, 12))
        for kind in KINDS[1:]:
            with self.subTest(mode=kind):
                self.assertEqual(self.events(kind, False), theirs)
                self.assertEqual(self.results[kind]["averages"], self.results["stock"]["averages"])

    def test_T36_accumulated_calls(self):
        theirs, own = self.events("stock", True), self.events("all", True)
        self.assertEqual(own, theirs)
        if not support.events_have_calls():
            self.assertEqual(theirs, collections.Counter())
            return
        self.assertEqual({name: number for name, number in theirs.items() if ": step_" in name},
                         {f"cycles.py: step_{n}": 1 for cycle in ACTIVE for n in cycle})

    @unittest.skipUnless(support.events_have_calls(), "prof.events() of this torch has operators alone, also with its own tracer")
    def test_T36_accumulated_calls_around_operators(self):
        """In mode full there is no call that stock does not have, and each call that encloses an operator."""
        theirs, own = self.events("stock", True), self.events("full", True)
        self.assertEqual(own - theirs, collections.Counter())
        for name in ("programs.py: train", "nn.Module: Net_0", "nn.Module: Linear_0",
                     "torch/optim/optimizer.py: _optimizer_step_code",
                     *(f"cycles.py: step_{n}" for cycle in ACTIVE for n in cycle)):
            self.assertEqual(own[name], theirs[name], name)
            self.assertGreater(own[name], 0, name)
        self.assertEqual(own["programs.py: inner"], 0)
        self.assertEqual(self.events("fast", True), collections.Counter())

    def test_accumulated_cycles_grow_alike(self):
        for kind in KINDS:
            first, second, third = self.results[kind]["counts"]
            self.assertEqual((second, third), (2 * first, 3 * first), kind)

    def test_accumulated_events_are_exported(self):
        """Exports also have the calls of all cycles that torch does not have."""
        for name, outers in {"accumulated.json": 6, "without_operators.json": 2}.items():
            found = {kind: count(event["name"] for event in read(self.path(kind, name)))
                     for kind in KINDS}
            self.assertEqual(found["stock"]["programs.py: outer"], outers if support.events_have_calls() else 0)
            if not support.events_have_calls():  # ours has them all the same
                self.assertEqual([found[kind]["programs.py: outer"] for kind in KINDS[1:]], [outers] * 3)
                self.assertEqual([found[kind] for kind in KINDS[2:]], [found["all"]] * 2)
                continue
            for kind in KINDS[1:]:
                with self.subTest(file=name, mode=kind):
                    # In all modes the same calls are cut, and go on as further events.
                    more = count(self.results["all"]["parts"]) if name == "accumulated.json" else {}
                    self.assertEqual(found[kind], found["stock"] + collections.Counter(more))

    def test_one_trace_a_cycle(self):
        for kind in KINDS:
            for way in WAYS:
                folder = self.path(kind, way)
                files = sorted(os.listdir(folder))
                with self.subTest(mode=kind, way=way):
                    self.assertEqual(len(files), len(ACTIVE))
                    for name, steps in zip(files, ACTIVE):
                        self.check(read(os.path.join(folder, name)), steps)

    def check(self, trace, steps):
        """Checks that the file has the calls of STEPS, and of no other step. Ids begin again with each cycle (T15)."""
        calls = parts.once(python_calls(trace))
        names = count(call["name"] for call in calls)
        self.assertEqual({name for name in names if ": step_" in name},
                         {f"cycles.py: step_{step}" for step in steps})
        self.assertEqual([names[name] for name in ("programs.py: outer", "programs.py: inner",
                                                   "nn.Module: Net_0", "<built-in function ord>")],
                         [2, 8, 2, 2])
        ids = sorted(call["args"]["Python id"] for call in calls)
        self.assertEqual(ids, list(range(1, len(ids) + 1)))


if __name__ == "__main__":
    unittest.main()
