"""T17: events that begin at the same time. Here all events do, by a clock that does not advance."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

HERE = os.path.dirname(os.path.abspath(__file__))

# Running calls end with the session, and so have what follows them in them; all else takes no time.
PROGRAM = """
import json, torch, traced

def inner():
    torch.ones(1)
    torch.zeros(1)

def work():
    inner()
    inner()
events = []

def flat(nodes):
    for event in nodes:
        events.append([event.start_time_ns, event.tag.name, traced.plain(event.name)])
        flat(event.children)
flat(traced.run(work).profiler.kineto_results.experimental_event_tree())
print(json.dumps(events))
"""


class EqualStarts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import torch
        from kpytrace.torch import _environment

        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.clock = os.path.join(folder.name, "coarse_clock.so")
        subprocess.run([_environment.find_compiler(), "-std=c++20", "-shared", "-fPIC",
                        "-I" + os.path.join(os.path.dirname(torch.__file__), "include"), "-o", cls.clock,
                        os.path.join(HERE, "coarse_clock.cc")], check=True)

    def events(self, mode):
        """The event tree, parents first."""
        preloaded = [os.environ.get("LD_PRELOAD"), self.clock]
        return support.program(PROGRAM, mode, LD_PRELOAD=":".join(filter(None, preloaded))).value

    def test_T17_operators_come_before_calls(self):
        theirs = self.events(None)
        operators = [event for event in theirs if event[1] == "TorchOp"]
        self.assertGreater(len(operators), 4)
        for mode in (None, "all", "full"):
            found = theirs if mode is None else self.events(mode)
            self.assertEqual(len({start for start, _, _ in found}), 1, "the clock moves")
            first = found[:len(operators)]
            self.assertEqual([event[1:] for event in first], [event[1:] for event in operators], mode)
            rest = [name.rpartition(": ")[2] for _, _, name in found[len(operators):]]
            self.assertEqual([rest.count(name) for name in ("work", "inner")], [1, 2], mode)

    def test_T17_parents_come_before_children(self):
        """For calls. torch's own tracer has all Python calls before those of C."""
        names = [name.rpartition(": ")[2] for _, tag, name in self.events("all") if "Py" in tag]
        start = names.index("work")
        self.assertEqual([name for name in names[start:start + 7]],
                         ["work"] + 2 * ["inner", *(f"<built-in method {name} of type object>"
                                                    for name in ("ones", "zeros"))])


if __name__ == "__main__":
    unittest.main()
