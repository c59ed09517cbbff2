"""torch's memory profile (_memory_profile(), export_memory_timeline()) has the same tensors in the same
categories as under torch's own tracer."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

PROGRAM = """
import json, os, tempfile, torch
from torch.profiler._memory_profiler import MemoryProfileTimeline

def profiled(make_optimizer, steps, steps_before=0, clear_first=True):
    model = torch.nn.Linear(256, 256)
    optimizer = make_optimizer(model.parameters())
    data = torch.ones(8, 256)

    def step():
        if clear_first:
            optimizer.zero_grad()
        loss = model(data).sum()
        if not clear_first:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for _ in range(steps_before):
        step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True,
                                record_shapes=True, with_stack=True) as profiler:
        for _ in range(steps):
            step()
    return profiler

def timeline(profiler):
    memory = profiler._memory_profile()
    return [[str(action), str(memory._categories.get(key, version)), size]
            for _, action, (key, version), size in memory.timeline]

def spread(self, memory, init=MemoryProfileTimeline.__init__):
    init(self, memory)
    self.timeline = [(t if t < 0 else 1000 * number, *rest) for number, (t, *rest) in enumerate(self.timeline, 1)]

# torch adds up what happens in one microsecond: how much that is differs from run to run, the more the faster a machine is.
MemoryProfileTimeline.__init__ = spread

def exported(profiler):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "memory.json")
        profiler.export_memory_timeline(path, device="cpu")
        with open(path) as file:
            return json.load(file)[1]

def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)

profilers = {"SGD": profiled(sgd, 3), "Adam": profiled(torch.optim.Adam, 10),
             }
# The first call of the module sees gradients that zero_grad() frees, and no operator sees. What torch makes of them
# depends on whether later tensors get their memory, so on where the heap has space.
kept = []
for number in range(6):
    profilers[f"later {number}"] = profiled(sgd, 3, steps_before=2, clear_first=False)
    kept.append(torch.empty(1000 + 40000 * number))
print(json.dumps({name: [timeline(profiler), exported(profiler)]
                  for name, profiler in profilers.items()}))
"""


class Timeline(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.found = {mode: support.program(PROGRAM, mode, forked=True, KPYTRACE_TEST_LONG="1").value
                     for mode in (None, "all", "full")}

    def compare(self, name):
        for mode in ("all", "full"):
            with self.subTest(mode):
                theirs, ours = self.found[None][name], self.found[mode][name]
                self.assertEqual(theirs[0], ours[0])
                self.assertEqual(theirs[1], ours[1])

    def of_later(self, mode):
        """Returns the timelines of the runs that differ in where the heap has space."""
        return [found for name, found in self.found[mode].items() if name.startswith("later")]

    def test_issue_23_no_gradients_before_the_first_step(self):
        self.assertGreater(len(self.found[None]["SGD"][0]), 40)
        self.compare("SGD")

    def test_issue_23_adam(self):
        self.compare("Adam")

    def test_issue_23_gradients_of_earlier_steps(self):
        stock = self.of_later(None)
        for mode in ("all", "full"):
            with self.subTest(mode):
                ours = self.of_later(mode)
                self.assertTrue(any(found in stock for found in ours), (stock[0][0][:9], ours[0][0][:9]))
                beside = {tuple(row) for found in stock for row in found[0] if row[0] == "Action.PREEXISTING"}
                for found in ours:  # no gradients but those that torch has in a run
                    self.assertLessEqual({tuple(row) for row in found[0] if row[0] == "Action.PREEXISTING"}, beside)


if __name__ == "__main__":
    unittest.main()
