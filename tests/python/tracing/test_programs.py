"""Random programs: kpytrace records the same calls that the interpreter reports through sys.setprofile, call by
call, in every thread, on every version.

KPYTRACE_TEST_LONG=1 runs many more. KPT_SEED=n begins with another seed; failures print the seed."""

import os
import random
import unittest

import ground_truth
from random_program import RandomProgram
from support import Case, LONG, RECOVERED, define

COUNT = 2000 if LONG else 150
FIRST = int(os.environ.get("KPT_SEED", "1"))

# Known differences between the two: only the calls below these functions, in which threading waits or not,
# depending on the order in which threads run. Differences of the interpreter between versions (comprehensions,
# closing of generators) are the same for both.
TIMING = ("start", "join")


def settled(labels):
    """Returns the labels without the calls that differ from run to run."""
    kept, skip = [], None
    for depth, label in labels:
        if skip is None or depth <= skip:
            skip = depth if label in TIMING else None
            kept.append((depth, label))
    return kept


class Programs(Case):
    maxDiff = 2000

    def program(self, seed, elsewhere=()):
        """Returns main() of program SEED. The code of the functions ELSEWHERE is in another file."""
        scope = {}
        main = define(RandomProgram(seed).source(), "main", f"<program {seed}>", scope)
        for name in elsewhere:
            code = scope[name].__code__
            scope[name].__code__ = code.replace(co_filename="<elsewhere>")
        return main

    def compare(self, seed, wanted=lambda *call: True, elsewhere=(), **options):
        """Runs program SEED twice, under the interpreter's hook and under OPTIONS. WANTED selects the calls that
        OPTIONS should record."""
        truth = ground_truth.Truth()
        truth.record(self.program(seed, elsewhere))
        recording = self.record(self.program(seed, elsewhere), **options)
        self.assertIsNone(self.error)
        main, = (ground_truth.below(t, "main") for t in truth.threads.values()
                 if ground_truth.below(t, "main"))
        self.assertEqual(settled(recording.of("main").labels()),
                         settled(ground_truth.pruned(main, wanted)))
        for name, labels in truth.threads.items():
            if name.startswith("random") and "max_depth" not in options:  # threading's calls count, too
                root = f"in_thread_{name.split()[1]}"
                call, = (c for c in recording.thread(name).calls if c.label == root)
                labels = ground_truth.below(labels, root)
                self.assertEqual(call.labels(), ground_truth.pruned(labels, wanted))
        self.assertEqual([c for c in recording.calls if RECOVERED in c.flags], [])
        self.assertEqual(recording.stats["events_repaired"], 0)
        self.assertEqual([c.name for c in recording.calls if " at 0x" in c.name], [])
        return len(main)

    def test_random_programs(self):
        calls = []
        for seed in range(FIRST, FIRST + COUNT):
            with self.subTest(seed=seed):
                calls.append(self.compare(seed))
        self.assertEqual(len(calls), COUNT)
        self.assertGreater(sum(calls) / COUNT, 30, "they do something")

    def test_filters(self):
        """With filters, the recording has the calls that the interpreter reports, without the excluded ones."""
        for seed in range(FIRST, FIRST + COUNT // 3):
            program = RandomProgram(seed)
            names = [*program.functions, *program.generators, *program.coroutines, "step", "drive"]
            gone = random.Random(seed).sample(names, len(names) // 2)
            depth = seed % 7 + 1
            with self.subTest(seed=seed):
                self.compare(seed, lambda label, levels, caller: label[0] != "[", c_calls=False)
                self.compare(seed, lambda label, levels, caller:
                             caller if label[0] == "[" else label not in gone,
                             elsewhere=gone, exclude="<elsewhere>")
                self.compare(seed, lambda label, levels, caller: levels < depth, max_depth=depth)

    def test_they_give_the_same_results_with_every_option(self):
        """Compares the results of runs with filters, bounds and rings."""
        rows = [{}, {"exclude": "<program*"}, {"c_calls": False}, {"max_depth": 3},
                {"ring_bytes": "100kB"}, {"max_events": 50}, {"gc": True},
                {"include": "module:nothing"}, {"min_duration_ns": 1000}]
        for seed in range(FIRST, FIRST + 20):
            source = RandomProgram(seed).source()
            results = []
            for options in [None, *rows]:
                scope = {"__name__": "random_one"}
                main = define(source, "main", f"<program {seed}>", scope)
                state = scope["f0"]

                def run():
                    counted = [0]
                    try:
                        state(counted, 0)
                    except Exception as error:
                        return counted, repr(error)
                    main()
                    return counted, None
                if options is None:
                    results.append(run())
                else:
                    self.record(run, **options)
                    self.assertIsNone(self.error, (seed, options))
                    results.append(self.result)
            self.assertEqual(results[1:], results[:1] * len(rows), seed)


if __name__ == "__main__":
    unittest.main()
