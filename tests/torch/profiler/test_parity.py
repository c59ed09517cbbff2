"""The same programs under torch's own tracer and under kpytrace, field by field. The numbers are those of
docs/torch.md."""

import pathlib
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

KINDS = ("stock", "all", "full")


def setUpModule():
    global stock, ours, full
    with ThreadPoolExecutor(2) as pool:
        stock, ours, full = pool.map(support.scenarios, KINDS)


class Case(unittest.TestCase):
    maxDiff = 4000

    def assertSame(self, name, *path):
        """Checks that the scenario has the same result under both."""
        theirs, own = stock[name], ours[name]
        self.assertNotIsInstance(theirs if not isinstance(theirs, dict) else theirs.get("error"), str)
        for key in path:
            theirs, own = theirs[key], own[key]
        self.assertEqual(theirs, own)

    def assertSameInFull(self, name, *path):
        theirs, own = stock[name], full[name]
        for key in path:
            theirs, own = theirs[key], own[key]
        self.assertEqual(theirs, own)


class Names(Case):
    def test_T1_T3_T10_T15_T16_names_fields_and_ids(self):
        theirs, own = stock["names"]["rows"], ours["names"]["rows"]
        self.assertGreater(len(theirs), 40)
        self.assertEqual(theirs, own)

    def test_T2_resumes(self):
        """Each resume is an event, with the line at which the generator resumes."""
        def resumes(found):
            return [name for depth, name in found["names"]["work"] if name.endswith(": generate")]
        self.assertEqual(resumes(stock), resumes(ours))
        self.assertEqual(len(resumes(ours)), 3)
        self.assertGreater(len(set(resumes(ours))), 1)

    def test_T4_types_are_no_calls(self):
        for found in (stock, ours):
            names = [name for _, name in found["names"]["work"]]
            self.assertFalse([name for name in names if "class" in name or "'int'" in name])

    def test_T5_T6_modules(self):
        self.assertSame("modules")
        self.assertSameInFull("modules")
        first = [name for name, _ in ours["modules"][0]]
        self.assertEqual(first.count("nn.Module: Net_0"), 2)
        self.assertIn("nn.Module: RecursiveScriptModule_0", first)
        self.assertIn("nn.Module: CallsSuper_0", first)
        self.assertNotIn("nn.Module: Skips_0", first)
        self.assertEqual(ours["modules"][1][0], ["nn.Module: Net_0", 0])

    def test_T7_optimizer_step(self):
        self.assertSame("training", "steps")
        self.assertSameInFull("training", "optimizers")
        self.assertRegex(ours["training"]["steps"][0],
                         r"torch/optim/optimizer.py\(\d+\): _optimizer_step_code")

    def test_T8_paths(self):
        for name in (row[0] for row in ours["names"]["rows"]):
            self.assertFalse(name.startswith("/"), name)

    def test_T9_odd_names(self):
        self.assertSame("odd_names")

    def test_T42_comprehensions(self):
        listed = [name for _, name in ours["names"]["work"] if "<listcomp>" in name]
        self.assertEqual(len(listed), 1 if sys.version_info < (3, 12) else 0)


class Fields(Case):
    def test_T11_T12_verbose(self):
        self.assertSame("verbose")
        self.assertSameInFull("verbose", "stacks")
        self.assertTrue(ours["verbose"]["stacks"]["aten::addmm"])
        self.assertTrue(ours["verbose"]["table"])

    def test_T12_groups(self):
        self.assertSame("averages")
        self.assertSameInFull("averages")

    def test_T13_events(self):
        self.assertSame("events")
        self.assertEqual(ours["events"]["stacks"], [])

    def test_T14_header(self):
        self.assertSame("header")
        self.assertSameInFull("header")
        self.assertEqual(ours["header"]["with_stack"], 1)


class StartAndStop(Case):
    def test_T18_T20_T23_running_calls(self):
        self.assertSame("running")
        self.assertEqual(ours["running"]["ends"], 1)
        self.assertIn("nn.Module: Inside_0", ours["running"]["open"])
        self.assertIn("_disable_profiler", ours["running"]["last"])

    def test_T17_equal_starts(self):
        """Calls that were already running: parents are numbered first. With torch's own tracer no two begin
        at the same time."""
        self.assertEqual(stock["equal_starts"], [False, True])
        self.assertEqual(ours["equal_starts"], [True, True])
        self.assertEqual(full["equal_starts"], [True, True])

    def test_T19_last_return(self):
        """The call lasts less than a microsecond; a wait of 100 milliseconds follows it."""
        self.assertGreater(stock["last_return"], 100_000)
        self.assertLess(ours["last_return"], 50_000)
        self.assertLess(full["last_return"], 50_000)

    def test_T19_return_before_silence(self):
        for found in (stock, ours, full):
            self.assertLess(max(found["return_before_silence"]), 100_000)

    def test_T21_depth(self):
        self.assertLess(stock["deep"], 128)
        self.assertEqual(ours["deep"], 201)

    def test_T22_running_c_call(self):
        self.assertSame("running_c_call")

    def test_T24_to_T27_threads(self):
        theirs, own = stock["threads"], ours["threads"]
        self.assertEqual(theirs["inner"], ["early"])
        self.assertEqual(own["inner"], ["early", "late"])
        self.assertEqual(theirs["sleeper"], [0])
        self.assertEqual(own["sleeper"], ["sleeper"], "an idle thread keeps its own tid")
        main = dict(own["numbers"])["main"]  # where there is a GPU one more thread has a number, before the main one
        self.assertIn(main, (2, 3))
        self.assertEqual(theirs["numbers"], [["?", 0], ["early", 1], ["main", main]])
        self.assertEqual(own["numbers"],
                         [["early", 1], ["late", main + 1], ["main", main], ["sleeper", 0]])

    def test_T28_exceptions(self):
        """Through C and Python: each call has its parent, ends before it, and before its next sibling."""
        self.assertSame("unwinding")
        self.assertSameInFull("unwinding")
        self.assertEqual((ours["unwinding"]["late"], ours["unwinding"]["overlaps"]), ([], []))
        names = [name.rpartition(": ")[2] for _, name in ours["unwinding"]["calls"]]
        self.assertEqual([names.count(name) for name in ("deepest", "top", "bottom", "inner")],
                         [11, 6, 6, 5])

    def test_T28_exceptions_of_c(self):
        def part(found):
            return [row for row in found["names"]["work"] if row[0] <= 2]
        self.assertEqual([name for _, name in part(stock) if "raises" in name or "fails" in name],
                         [name for _, name in part(ours) if "raises" in name or "fails" in name])


class Tree(Case):
    def compare_callers(self, theirs, own):
        self.assertEqual([row[:2] for row in theirs], [row[:2] for row in own])
        self.assertGreater(len(own), 30)

    def test_T29_callers(self):
        """The caller of each call is the nearest Python call around it, at the line where it is."""
        theirs, own = stock["training"]["callers"], ours["training"]["callers"]
        some = full["training"]["callers"]
        self.compare_callers(theirs, own)
        around = [row for row, same in zip(theirs, own) if same[2]]
        self.compare_callers(around, [row for row in some if row[2]])
        self.assertEqual(ours["training"]["wrong"], [])
        self.assertEqual(full["training"]["wrong"], [])

    def test_T30_T31_objects(self):
        self.assertSame("training", "modules")
        self.assertSame("training", "optimizers")
        self.assertSameInFull("training", "modules")
        self.assertTrue(ours["training"]["optimizers"][0][0][2])

    def test_T32_lifetimes(self):
        self.assertSame("lifetimes")
        self.assertEqual(ours["lifetimes"], 0)

    def test_operators_are_under_the_same_calls(self):
        self.assertSame("training", "ops")
        self.assertSameInFull("training", "ops")

    def test_memory_categories(self):
        self.assertSame("memory_categories")
        self.assertSameInFull("memory_categories")


class Configuration(Case):
    def test_T33_switched_off(self):
        self.assertSame("switched_off")
        self.assertEqual(ours["switched_off"], {"with_modules": 0, "no stack": 0})

    def test_T34_collections(self):
        self.assertSame("collections")
        self.assertSameInFull("collections")
        self.assertEqual(ours["collections"]["callbacks"], [1, 0])

    @unittest.skipIf(support.torch_version() < (2, 13), "torch before 2.13 has no option trace_only: a TypeError")
    def test_T35_trace_only(self):
        self.assertSame("trace_only")
        self.assertSameInFull("trace_only")
        self.assertEqual((len(ours["trace_only"]["warnings"]), ours["trace_only"]["inner"]), (1, 1))

    def test_T36_schedule(self):
        self.assertSame("schedule")

    def test_T37_toggle(self):
        self.assertSame("toggled")

    def test_T38_profile_functions(self):
        self.assertEqual(stock["profile_functions"], {"inside": "TraceContext", "kept": False})
        self.assertTrue(ours["profile_functions"]["kept"])


class Bugs(Case):
    """Programs that torch's own tracer records wrongly."""

    def test_names_of_freed_functions(self):
        """pytorch#121219, #113564, #136040. torch's own tracer may be right by chance, if their memory is
        not reused."""
        self.assertEqual(ours["freed_names"], 200)
        self.assertEqual(ours["overwritten_names"], 200)
        # In torch 2.11 the file alone has names, and they may be right by luck.
        if (2, 13) <= support.torch_version() < (2, 15):
            self.assertLess(stock["overwritten_names"], 200)

    def test_quotes_in_names(self):
        """The file is JSON, with another quote character where torch writes the name; torch's objects have
        the name of the file."""
        self.assertIsNone(stock["quoted"])
        for found, quote in (ours, "'"), (full, '"'):
            modules = [name for name in found["quoted"] if name.startswith("nn.Module")]
            functions = [name for name in found["quoted"] if name not in modules]
            self.assertEqual(set(modules), {f"nn.Module: three{quote}two_0"})
            for name in functions:
                self.assertRegex(name, rf"^a{quote}b\.py\(\d+\): one{quote}two$")
            self.assertTrue(functions)

    def test_reused_addresses(self):
        wanted = [f"nn.Module: {cls}_{n}" for n in range(3) for cls in "AB"]
        self.assertEqual(ours["reused_addresses"], wanted)
        self.assertEqual(full["reused_addresses"], wanted)
        self.assertNotEqual(stock["reused_addresses"], wanted)

    def test_nothing_crosses_an_annotation(self):
        """pytorch#174555, HTA#274."""
        self.assertNotEqual(stock["crossings"], [])
        self.assertEqual(ours["crossings"], [])
        self.assertEqual(full["crossings"], [])

    def test_nothing_crosses_a_fast_record_function(self):
        """torch.compile marks its phases with it."""
        self.assertNotEqual(stock["fast_spans"]["crossings"], [])
        for found in (ours, full):
            self.assertEqual(found["fast_spans"]["crossings"], [])
            self.assertEqual(found["fast_spans"]["operators"], stock["fast_spans"]["operators"])

    def test_nothing_crosses_an_annotation_that_ends_elsewhere(self):
        """The annotation ends on a thread that torch does not profile, so torch does not record its end."""
        for found in (ours, full):
            for name in ("ends_elsewhere", "outlives", "begins_elsewhere", "two"):
                own, theirs = found["asynchronous"][name], stock["asynchronous"][name]
                self.assertEqual(own["crossings"], [], name)
                self.assertEqual(own["annotations"], theirs["annotations"])
                self.assertEqual(own["inners"], theirs["inners"])
        self.assertNotEqual(stock["asynchronous"]["two"]["crossings"], [])

    def test_nothing_crosses_an_annotation_that_a_future_ends(self):
        """The annotation ends on a thread with a copy of torch's state, so torch records its end."""
        theirs = stock["asynchronous"]["future"]
        self.assertNotEqual(theirs["crossings"], [])
        for found in (ours, full):
            own = found["asynchronous"]["future"]
            self.assertEqual(own["crossings"], [])
            self.assertEqual(own["annotations"], theirs["annotations"])
            self.assertEqual(own["inners"], theirs["inners"])


if __name__ == "__main__":
    unittest.main()
