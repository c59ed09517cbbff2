"""The file of a native profile beside that of stock, field by field, both ways."""

import collections
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import nesting
import support
from native_names import ODD, plain

PROGRAM = str(pathlib.Path(__file__).with_name("native_file.py"))
PYTHON, OPERATORS = "python_function", ("cpu_op", "user_annotation")
# torch's functions that the mode replaces, so that they are not called.
REPLACED = re.compile(r"<built-in method (_add_metadata_json|_disable_profiler|_is_kineto_stopped|_kineto_step) ")
NUMBERED = {"External id", "Ev Idx", "Python id", "Python parent id"}


def run(kind):
    """Returns the files of a kind by name, and the folder."""
    with tempfile.TemporaryDirectory() as folder:
        reply = support.python(PROGRAM, kind, folder)
        if reply.returncode:
            raise AssertionError(reply.stdout + reply.stderr)
        found = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found[name.partition(".")[0]] = json.load(file)
        return found


def setUpModule():
    global stock, ours
    with ThreadPoolExecutor(2) as pool:
        stock, ours = pool.map(run, ("stock", "native"))


def of(trace, *categories):
    """The events of some categories in the order of their begin; at equal times the outer first."""
    found = [event for event in trace["traceEvents"] if event.get("cat") in categories and event["ph"] == "X"]
    return sorted(found, key=lambda event: (event["ts"], -event["dur"]))


def on_main(events):
    """Those of the profiler's own thread."""
    return [event for event in events if event["tid"] == event["pid"]]


def rows(events):
    """What is the same in each process."""
    return [(event["cat"], plain(event["name"]),
             {key: value for key, value in event["args"].items() if key not in NUMBERED}) for event in events]


def around(events):
    """The names of what is around each operator and annotation."""
    found, open_events = [], []
    for event in events:
        start = round(event["ts"] * 1000)
        open_events = [other for other in open_events if other[0] > start]
        found.append([name for _, name in open_events])
        open_events.append((start + round(event["dur"] * 1000), event["name"]))
    return found


def calls(trace):
    """The name of each Python call of the main thread, with its parent's name, without further parts of calls."""
    events = [event for event in on_main(of(trace, PYTHON)) if "Python id" in event["args"]]
    names = {event["args"]["Python id"]: plain(event["name"]) for event in events}
    firsts = {}
    for event in events:
        firsts.setdefault(event["args"]["Python id"], event)
    return [(names[number], names.get(event["args"].get("Python parent id")), event["args"].get("Python module id"))
            for number, event in sorted(firsts.items())]


def arrows(trace):
    """The two operators of each arrow, by their position among the operators."""
    at = {(event["tid"], event["ts"]): i for i, event in enumerate(of(trace, *OPERATORS))}
    ends = collections.defaultdict(dict)
    for event in trace["traceEvents"]:
        if event["ph"] in "sf":
            ends[event["id"]][event["ph"]] = at[event["tid"], event["ts"]], event["cat"], event.get("bp")
    return [ends[number] for number in sorted(ends)]


class SideBySide(unittest.TestCase):
    maxDiff = 4000

    def test_operators_and_annotations(self):
        for name in ("train", "alone", "values", "ranges", "ranges_alone", "fails", "described", "cycle_1", "cycle_2",
                     "distributed"):
            with self.subTest(name):
                theirs, own = (rows(on_main(of(kind[name], *OPERATORS))) for kind in (stock, ours))
                self.assertEqual(theirs, own)
                self.assertTrue(own)

    def test_inputs_and_keywords_of_ranges(self):
        """Those that the comparison above is about are there, and only with shapes."""
        found, without = ({event["name"]: event["args"] for event in of(ours[name], *OPERATORS)}
                          for name in ("ranges", "ranges_alone"))
        self.assertEqual(found["with an argument"]["Input Dims"], [[]])
        kernel = found["a kernel"]
        self.assertEqual((kernel["kernel_backend"], kernel["stream"], kernel["share"], kernel["symbols"]),
                         ("triton", 7, 0.5, ["s0", "s1"]))
        self.assertEqual(kernel["Input Dims"][7], [[2, 4], [2, 4]])
        for name in ("with an argument", "a kernel", "an annotation"):
            self.assertEqual(without[name].keys() - NUMBERED, {"Record function id"})

    def test_collectives(self):
        found = {event["name"]: event["args"] for event in of(ours["distributed"], *OPERATORS)}
        self.assertEqual(found["gloo:all_reduce"]["Input Dims"], [[3]])
        self.assertEqual(ours["distributed"]["distributedInfo"], stock["distributed"]["distributedInfo"])

    def test_nesting(self):
        for name in ("train", "alone", "fails"):
            theirs, own = (around(on_main(of(kind[name], *OPERATORS))) for kind in (stock, ours))
            self.assertEqual(theirs, own)
            self.assertEqual(nesting.crossing_in(ours[name]), [])

    def test_numbers(self):
        seen = set()
        for name, trace in ours.items():
            with self.subTest(name):
                own = [event["args"]["External id"] for event in of(trace, *OPERATORS)]
                self.assertEqual(own, list(range(own[0], own[0] + len(own))))
                self.assertTrue(seen.isdisjoint(own))  # of other profiles of the process
                seen.update(own)
                # torch goes on with the numbers of the last profile, and has others for each thread
                if name in stock and name not in ("threads", "distributed"):
                    theirs = [event["args"]["External id"] for event in of(stock[name], *OPERATORS)]
                    self.assertEqual(own, [number - theirs[0] + own[0] for number in theirs])
                indices = [event["args"]["Ev Idx"] for event in trace["traceEvents"]
                           if event.get("cat") in (PYTHON, *OPERATORS)]
                self.assertEqual(indices, list(range(len(indices))))

    def test_python_calls(self):
        for name in ("train", "values", "fails"):
            with self.subTest(name):
                theirs, own = ([row for row in calls(kind[name]) if not REPLACED.match(row[0])] for kind in (stock, ours))
                self.assertEqual(theirs, own)
                self.assertGreater(len(own), 40)
        for trace in ours.values():
            numbers = sorted({e["args"]["Python id"] for e in of(trace, PYTHON) if "Python id" in e["args"]})
            self.assertEqual(numbers, list(range(1, len(numbers) + 1)))

    def test_nothing_else(self):
        """The categories, and the keys of each kind of event."""
        def keys(trace):
            found = collections.defaultdict(set)
            for event in trace["traceEvents"]:
                kind = event["ph"], event.get("cat", event["name"])
                found[kind] |= {*event, *(f"args.{key}" for key in event.get("args", ()))}
            return dict(found)
        for name in ("train", "alone", "described"):
            theirs, own = keys(stock[name]), keys(ours[name])
            if ("X", PYTHON) in own:
                own["X", PYTHON] -= {"args.clamped", "args.continued"}
                theirs["X", PYTHON].discard("args.CallFrom")  # of torch 2.15
            self.assertEqual(theirs, own)

    def test_arrows(self):
        for name in ("train", "alone"):
            theirs, own = arrows(stock[name]), arrows(ours[name])
            self.assertEqual(theirs, own)
            self.assertGreater(len(own), 10)

    def test_head(self):
        for name in ("train", "alone", "described"):
            theirs, own = ({key: value for key, value in kind[name].items()
                            if key not in ("traceEvents", "traceName", "trace_id")} for kind in (stock, ours))
            self.assertEqual(theirs, own)
            self.assertEqual(len(ours[name]["trace_id"]), len(stock[name]["trace_id"]))
        self.assertEqual(ours["described"]["trace_id"], "my id")
        self.assertEqual((ours["described"]["text"], ours["described"]["value"]), ("plain", {"a": 1.5}))
        self.assertRegex(ours["train"]["traceName"], r"/train.json$")

    def test_rows_and_closing_events(self):
        def described(trace):
            found = []
            for event in trace["traceEvents"]:
                if event["ph"] in "Mi" or event.get("cat") == "Trace":
                    numbers = {event["pid"]: "pid"} if isinstance(event["pid"], int) else {}
                    row = {key: numbers.get(value, value) for key, value in event.items()
                           if key not in ("ts", "dur", "args")}
                    row["args"] = {key: numbers.get(value, value) for key, value in event.get("args", {}).items()}
                    if event["name"] == "thread_name":
                        row["args"] = "a name"
                    if row not in found:
                        found.append(row)
            return found
        self.assertEqual(described(stock["train"]), described(ours["train"]))
        last = [event["name"] for event in ours["train"]["traceEvents"][-4:]]
        self.assertEqual(last, [event["name"] for event in stock["train"]["traceEvents"][-4:]])

    def test_times(self):
        """All is inside the profile, and between the same bounds as the closing events say."""
        for trace in ours.values():
            [span] = of(trace, "Trace")
            end = span["ts"] + span["dur"]
            for event in of(trace, PYTHON, *OPERATORS):
                self.assertGreaterEqual(event["ts"], span["ts"])
                self.assertLessEqual(event["ts"] + event["dur"], end + 0.001)


class Differences(unittest.TestCase):
    """What docs/torch.md names."""

    def test_threads(self):
        """Operators of the threads that the profiler was started on, and Python calls of all."""
        for trace in (ours, stock):
            self.assertNotIn("in a thread", [event["name"] for event in of(trace["threads"], *OPERATORS)])
        self.assertEqual(sum(event["name"].endswith(": work") for event in of(ours["threads"], PYTHON)), 2)
        self.assertIn("worker", json.dumps([e for e in ours["threads"]["traceEvents"] if e["name"] == "thread_name"]))

    def test_odd_texts(self):
        trace = ours["odd"]
        self.assertEqual((trace["quoted"], trace["no json"]), (ODD, "{nope"))
        self.assertIn(ODD, [event["name"] for event in of(trace, "user_annotation")])
        self.assertTrue([event for event in of(trace, PYTHON) if event["name"].endswith(f": {ODD}")])

    def test_odd_keywords(self):
        """All texts are JSON, and a field of the event stays what it is. A text that does not fit is left out."""
        [args] = [event["args"] for event in of(ours["odd"], "cpu_op") if event["name"] == "keywords"]
        self.assertEqual((args[ODD], args["list"]), ("None", [ODD, ""]))
        self.assertEqual((args["whole"], args["far"], args["Input Dims"]), (2, "inf", [[2, 4]]))
        self.assertEqual((args["long"], args["path"]), (5000 * "é", "a\\b\n"))
        self.assertNotIn("longest", args)


if __name__ == "__main__":
    unittest.main()
