"""torch's own analyses of a profile: they have the same results with kpytrace's tracer as with torch's, or a warning
names the mode in which they do."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

PATTERNS = """
import json, torch
from torch.profiler import _pattern_matcher

def matched(pattern, work):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
                                with_stack=True) as profiler:
        work()
    return len(getattr(_pattern_matcher, pattern)(profiler).matched_events())

def load(workers):
    data = torch.utils.data.TensorDataset(torch.ones(6, 2))
    for _ in torch.utils.data.DataLoader(data, batch_size=2, num_workers=workers):
        pass

def step(kind, gradients, foreach):
    model = torch.nn.Linear(3, 3)
    optimizer = kind(model.parameters(), lr=0.1, foreach=foreach)
    def work():
        if gradients:
            model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    return work

found = {f"loader {workers}": matched("SynchronizedDataLoaderPattern", lambda: load(workers))
         for workers in (0, 1)}
for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
    for gradients in (True, False):
        for foreach in (True, False):
            found[f"{kind.__name__} {gradients} {foreach}"] = matched(
                "OptimizerSingleTensorPattern", step(kind, gradients, foreach))
print(json.dumps(found))
"""

FAST = """
import json, os, tempfile, torch, warnings

def profiled(**options):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
                                profile_memory=True, **options) as profiler:
        torch.nn.Linear(3, 3)(torch.ones(2, 3))
    return profiler

def warned(ask):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask()
    return [str(one.message) for one in caught if "kpytrace" in str(one.message)]

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "out")
    plain = profiled()
    found = {"no stack": warned(plain.profiler.kineto_results.experimental_event_tree)}
    profiler = profiled(with_stack=True)
    found["categories"] = warned(profiler._memory_profile)
    found["stacks"] = warned(lambda: profiler.export_stacks(path))
    found["groups"] = warned(lambda: profiler.key_averages(group_by_stack_n=4))
    found["table"] = warned(lambda: profiler.key_averages(group_by_input_shape=True).table())
    found["file"] = warned(lambda: profiler.export_chrome_trace(path + ".json"))
print(json.dumps(found))
"""

ENDS = """
import json, os, tempfile, torch
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True) as profiler:
    torch.ones(3)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "trace.json")
    profiler.export_chrome_trace(path)
    with open(path) as file:
        events = json.load(file)["traceEvents"]
print(json.dumps([len(events) > 20, [event["name"] for event in events[-4:]]]))
"""


class Analyses(unittest.TestCase):
    @unittest.skipIf(support.torch_version() >= (2, 15), "torch.profiler._pattern_matcher was removed")
    def test_issue_23_patterns(self):
        """Calls that enclose no operator are kept if the patterns search for them."""
        theirs, ours, full = (support.program(PATTERNS, mode, forked=True, KPYTRACE_TEST_LONG="1").value
                              for mode in (None, "all", "full"))
        self.assertEqual([theirs["loader 0"], theirs["loader 1"]], [1, 0])
        self.assertEqual([theirs["SGD False True"], theirs["SGD False False"]], [0, 1])
        self.assertEqual(theirs, ours)
        self.assertEqual(theirs, full)

    def test_issue_23_fast_warns(self):
        fast, full = (support.program(FAST, mode, forked=True, KPYTRACE_TEST_LONG="1").value
                      for mode in ("fast", "full"))
        self.assertEqual(full, dict.fromkeys(full, []))
        for what, text in (("categories", "memory categories are wrong"),
                           ("stacks", "export_stacks() writes no stacks"),
                           ("groups", "key_averages() can't group by stacks")):
            self.assertEqual(len(fast[what]), 1, fast)
            self.assertIn(text, fast[what][0])
            self.assertIn("mode 'fast'", fast[what][0])
            self.assertIn("kpytrace.torch.install('full')", fast[what][0])
        self.assertEqual([fast["no stack"], fast["table"], fast["file"]], [[], [], []])

    def test_issue_23_kinetos_last_events(self):
        for mode in (None, "all", "full", "fast"):
            with self.subTest(mode):
                many, names = support.program(ENDS, mode, forked=True).value
                self.assertTrue(many)
                self.assertEqual(names, ["PyTorch Profiler (0)", "process_sort_index",
                                         "Iteration Start: PyTorch Profiler", "Record Window End"])


if __name__ == "__main__":
    unittest.main()
