"""kpytrace et: execution traces as files. The traces here are made by hand, as torch's observer writes them;
tests/torch has real ones."""

import contextlib
import copy
import gzip
import io
import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case, TAG, run_python

from kpytrace._cli import commands
from kpytrace._et.check import ATTRS, check
from kpytrace._et.compare import Difference
from kpytrace._et.convert import plain, timeline
from kpytrace._et.link import link
from kpytrace._et.trace import ROOT, SCHEMA, THREAD, Damaged, Trace

EMPTY = {"values": [], "shapes": [], "types": [], "strides": []}
ONE = {"values": [[4, 5, 0, 6, 4, "cpu"], 1, [True, 2.5]], "shapes": [[2, 3], [], [[], []]],
       "types": ["Tensor(float)", "Int", "GenericList[Bool,Double]"], "strides": [[3, 1], [], [[], []]]}


def node(number, name, parent, rf_id=0, inputs=EMPTY, own=None, **attrs):
    values = {"rf_id": rf_id, "fw_parent": 0, "seq_id": -1, "scope": 0, "tid": 1, "fw_tid": 0, **attrs}
    listed = [{"name": name, "type": kind, "value": values.get(name, "" if kind == "string" else 0)}
              for name, kind in ATTRS]
    if own:
        listed.append({"name": "kpytrace", "type": "map", "value": own})
    return {"id": number, "name": name, "ctrl_deps": parent, "inputs": copy.deepcopy(inputs),
            "outputs": copy.deepcopy(EMPTY), "attrs": listed}


def good():
    return {"schema": SCHEMA, "pid": 7, "time": "2026-01-01 00:00:00", "start_ts": 1, "finish_ts": 2,
            "nodes": [node(2, THREAD, 1), node(6, "aten::empty", 3, 12, ONE, {"os_tid": 9, "start_ns": 1500,
                                                                            "dur_ns": 500, "stack": 1}),
                      node(3, "aten::randn", 2, 11, ONE, {"os_tid": 9, "start_ns": 1000, "dur_ns": 2000}),
                      node(1, ROOT, 1)],
            "kpytrace": {"complete": True, "frames": [["outer", "a.py", 3], ["inner", "b.py", 8]],
                         "stacks": [[-1, 0], [0, 1]]}}


PROFILE = {"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::randn", "pid": 7, "tid": 9, "ts": 1.0, "dur": 2.0,
     "args": {"Record function id": 11, "External id": 101}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::other", "pid": 7, "tid": 9, "ts": 9.0, "dur": 2.0,
     "args": {"Record function id": 13, "External id": 103}},
    {"ph": "X", "cat": "kernel", "name": "a kernel", "pid": 0, "tid": 7, "ts": 4.0, "dur": 1.0,
     "args": {"External id": 101, "stream": 7, "device": 0, "correlation": 55}}]}


class Check(unittest.TestCase):
    def wrong(self, change):
        data = good()
        change(data)
        return list(check(Trace(data)))

    def test_a_good_one(self):
        self.assertEqual(list(check(Trace(good()))), [])

    def test_each_thing_that_can_be_wrong(self):
        def attr(data, index, value):
            data["nodes"][1]["attrs"][index]["value"] = value
        for change, text in (
                (lambda d: d.update(schema="1.0"), "the schema is"),
                (lambda d: d.pop("finish_ts"), "finish_ts"),
                (lambda d: d["nodes"].pop(), "the root is missing"),
                (lambda d: d["nodes"][1].update(id=3), "two nodes have this id"),
                (lambda d: d["nodes"][1].update(id="3"), "an id must be a number"),
                (lambda d: d["nodes"][1].update(id=[6]), "an id must be a number"),
                (lambda d: d["nodes"][1].pop("id"), "an id must be a number"),
                (lambda d: d["nodes"][1].update(id=0), "an id must be a number"),
                (lambda d: d["nodes"][1].pop("name"), "node 6: it has no name"),
                (lambda d: d["nodes"][1].pop("ctrl_deps"), "its parent, None, is not a number"),
                (lambda d: d.update(kpytrace=[]), "does not have kpytrace's format"),
                (lambda d: d["nodes"][1]["attrs"][-1].update(value="x"), "its kpytrace, 'x', is not a map"),
                (lambda d: d["nodes"][1]["attrs"][-1]["value"].update(dur_ns="x"), "its dur_ns, 'x', is not a number"),
                (lambda d: d["nodes"][1]["inputs"].update(values=1), "is not a list"),
                (lambda d: d["nodes"][1]["inputs"]["types"].__setitem__(1, 5), "is not of type 5"),
                (lambda d: d["nodes"][1].pop("inputs"), "are not values"),
                (lambda d: d["nodes"][1]["attrs"][-1].pop("type"), "kpytrace has no type"),
                (lambda d: attr(d, 0, []), "its rf_id, [], is not a number"),
                (lambda d: d["nodes"][1].update(ctrl_deps=77), "its parent, 77, is not in the trace"),
                (lambda d: d["nodes"][1].update(ctrl_deps=6), "its own parent"),
                (lambda d: d["nodes"][2].update(ctrl_deps=6), "its parents form a cycle"),
                (lambda d: d["nodes"][1]["inputs"]["types"].pop(), "lists of different lengths"),
                (lambda d: d["nodes"][1].update(outputs={}), "are not values"),
                (lambda d: d["nodes"][1]["inputs"]["values"].__setitem__(0, [1, 2]), "is not of type Tensor(float)"),
                (lambda d: d["nodes"][1]["inputs"]["values"].__setitem__(1, "1"), "is not of type Int"),
                (lambda d: d["nodes"][1]["attrs"].pop(0), "do not begin with"),
                (lambda d: attr(d, 0, -1), "is not of type uint64"),
                (lambda d: attr(d, 6, 5), "is not of type string"),
                (lambda d: attr(d, 0, 11), "has its rf_id"),
                (lambda d: attr(d, 1, 99), "its fw_parent, 99")):
            found = self.wrong(change)
            self.assertTrue(any(text in line for line in found), (text, found))


class Use(unittest.TestCase):
    def test_stacks(self):
        trace = Trace(good())
        self.assertEqual(trace.stack(trace.nodes[1]), [("inner", "b.py", 8), ("outer", "a.py", 3)])
        self.assertEqual(trace.stack(trace.nodes[2]), [])

    def test_link(self):
        trace = Trace(good())
        links = link(trace, PROFILE)
        self.assertEqual((links.linked, links.kernels), (1, 1))
        self.assertEqual([n.name for n in links.only_in_trace], ["aten::empty"])
        self.assertEqual([e["name"] for e in links.only_in_profile], ["aten::other"])
        self.assertEqual(trace.nodes[2].attrs["kineto"], {
            "ts": 1.0, "dur": 2.0, "pid": 7, "tid": 9, "cat": "cpu_op", "ext_id": 101,
            "kernels": [{"name": "a kernel", "ts": 4.0, "dur": 1.0, "device": 0, "stream": 7,
                         "correlation": 55}]})
        self.assertEqual(list(check(trace)), [])
        with self.assertRaisesRegex(Damaged, "not a Chrome trace"):
            link(trace, {"a": 1})

    def test_difference(self):
        after = good()
        after["nodes"].insert(0, node(8, "aten::empty", 3, 14, EMPTY))
        after["nodes"][2]["attrs"][-1]["value"]["dur_ns"] = 5000
        found = Difference(Trace(good()), Trace(after))
        self.assertEqual([(c.name, c.before, c.after) for c in found.changes], [("aten::empty", 0, 1)])
        self.assertEqual(found.same, 2)
        self.assertEqual(found.durations[0], ("aten::empty", 500, 5000))
        self.assertFalse(Difference(Trace(good()), Trace(good())))

    def test_without_ours(self):
        trace = Trace(good())
        link(trace, PROFILE)
        bare = plain(trace)
        self.assertNotIn("kpytrace", json.dumps(bare))
        self.assertEqual([len(n["attrs"]) for n in bare["nodes"]], [len(ATTRS)] * 4)
        with self.assertRaisesRegex(Damaged, "no times"):
            timeline(Trace(bare))

    def test_timeline(self):
        events = timeline(Trace(good()))["traceEvents"]
        self.assertEqual([(e["name"], e["ts"], e["dur"], e["tid"]) for e in events],
                         [("aten::randn", 1.0, 2.0, 9), ("aten::empty", 1.5, 0.5, 9)])
        self.assertEqual(events[1]["args"]["Python stack"], ["b.py(8): inner", "a.py(3): outer"])

    def test_a_timeline_has_nanoseconds(self):
        data = good()
        starts = 1_790_000_000_123_456_789, 1_790_000_000_123_456_788
        for at, start in zip((1, 2), starts):
            data["nodes"][at]["attrs"][-1]["value"].update(start_ns=start, dur_ns=1)
        made = json.loads(json.dumps(timeline(Trace(data))))
        self.assertEqual(made["baseTimeNanoseconds"], 1_790_000_000_000_000_000)
        self.assertEqual([(e["name"], e["ts"], e["dur"]) for e in made["traceEvents"]],
                         [("aten::randn", 123456.788, 0.001), ("aten::empty", 123456.789, 0.001)])
        self.assertIn('"ts": 123456.788,', json.dumps(timeline(Trace(data))))


class Commands(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "a.json").write_text(json.dumps(good()))
        (self.folder / "p.json").write_text(json.dumps(PROFILE))

    def et(self, *words):
        done = run_python("-m", "kpytrace", "et", *words, cwd=self.folder)
        return done.returncode, done.stdout, done.stderr

    def test_each(self):
        status, out, _ = self.et("info", "a.json")
        self.assertEqual(status, 0)
        self.assertIn("4: 2 operators", out)
        self.assertEqual(self.et("check", "a.json")[:2], (0, ""))
        status, _, err = self.et("link", "a.json", "p.json", "l.json.gz")
        self.assertEqual(status, 0)
        self.assertIn("1 operators linked, with 1 kernels; 1 only in the execution trace, 1 only in", err)
        with gzip.open(self.folder / "l.json.gz") as file:
            self.assertEqual(json.load(file)["nodes"][2]["attrs"][-1]["name"], "kineto")
        self.assertEqual(self.et("diff", "a.json", "l.json.gz", "-t")[0], 0)
        self.assertEqual(self.et("convert", "--plain", "l.json.gz", "b.json")[0], 0)
        self.assertEqual(self.et("diff", "a.json", "b.json")[0], 0)
        self.assertEqual(self.et("convert", "a.json", "a.chrome.json")[0], 0)
        self.assertEqual(len(json.loads((self.folder / "a.chrome.json").read_text())["traceEvents"]), 2)

    @unittest.skipUnless(BACKEND.exists(), f"there is no backend for CPython {TAG} beside the plugin")
    def test_recover_of_nothing(self):
        """recover() of a file that is not a journal fails and writes no file. tests/torch has real journals."""
        self.assertEqual(self.et("recover", "none.json")[0], 2)
        for content in (b"", b"kpytrace", bytes(10000)):
            (self.folder / "x.json.journal").write_bytes(content)
            status, out, err = self.et("recover", "x.json")
            self.assertEqual((status, out), (1, ""))
            self.assertIn("is not a journal", err)
            self.assertFalse((self.folder / "x.json").exists())

    def test_what_is_wrong(self):
        bad = good()
        bad["nodes"][1]["ctrl_deps"] = 77
        (self.folder / "bad.json").write_text(json.dumps(bad))
        (self.folder / "cut.json").write_text(json.dumps(good())[:-30])
        (self.folder / "open.json").write_text(json.dumps({**good(), "kpytrace": {"complete": False, "journal": "open.json.journal"}}))
        (self.folder / "other.json").write_text("[1]")
        status, out, _ = self.et("check", "bad.json")
        self.assertEqual(status, 1)
        self.assertIn("77", out)
        status, out, _ = self.et("diff", "a.json", "bad.json")
        self.assertEqual(status, 0)
        for words, code, text in (
                (["check", "cut.json"], 1, "is incomplete"), (["info", "open.json"], 1, "et recover"),
                (["info", "other.json"], 1, "not an execution trace"), (["info", "none.json"], 1, "No such file"),
                (["convert", "a.json", "b.txt"], 1, ".chrome.json"), (["link", "a.json", "p.json"], 2, "usage"),
                (["info", "a.json", "-n", "x"], 2, "must be a number"), (["make"], 2, "unknown command")):
            status, out, err = self.et(*words)
            self.assertEqual((status, out), (code, ""), words)
            self.assertIn(text, err)
        self.assertEqual(sorted(p.name for p in self.folder.glob("*.tmp")), [])
        self.assertEqual(self.et("--help")[0], 0)

    def test_names_that_can_not_be_printed_are_escaped(self):
        odd = good()
        odd["nodes"][1]["name"] = "caf\u00e9 \ud800"
        (self.folder / "odd.json").write_text(json.dumps(odd))
        for words, status in ((["info", "odd.json"], 0), (["diff", "a.json", "odd.json"], 1)):
            done = run_python("-m", "kpytrace", "et", *words, cwd=self.folder, env={"PYTHONIOENCODING": "ascii"})
            self.assertEqual((done.returncode, done.stderr), (status, ""))
            self.assertIn("caf\\xe9 \\ud800", done.stdout)

    def test_what_is_damaged_is_one_line_that_names_the_file(self):
        def other(change):
            data = good()
            change(data["nodes"][1])
            return json.dumps(data).encode()
        packed = gzip.compress(json.dumps(good()).encode())
        for name, content in {
                "flipped.json.gz": packed[:40] + bytes(8) + packed[48:], "short.json.gz": packed[:-20],
                "deep.json": b"[" * 200000, "text.json": b"\xff\xfe{}", "list.json": b'{"schema": "1", "nodes": [1]}',
                "map.json": b'{"schema": "1", "nodes": {"a": 1}}', "attrs.json": other(lambda n: n.update(attrs=1)),
                "attrs_map.json": other(lambda n: n.update(attrs={})),
                "name.json": other(lambda n: n.pop("name")), "own.json": other(lambda n: n["attrs"][-1].update(value="x")),
                "scope.json": other(lambda n: n["attrs"][3].update(value=[])),
                "start.json": other(lambda n: n["attrs"][-1]["value"].update(start_ns=10 ** 400)),
                "long.json": other(lambda n: n["attrs"][-1]["value"].update(dur_ns=10 ** 400)),
                "types.json": other(lambda n: n["inputs"].pop("types")),
                "stack.json": json.dumps({**good(), "kpytrace": {"stacks": [1, [0, 7]]}}).encode(),
                "args.json": json.dumps({"traceEvents": [*PROFILE["traceEvents"][:2], {
                    "ph": "X", "cat": "kernel", "args": None}]}).encode()}.items():
            (self.folder / name).write_bytes(content)
        for words in ([command, *files] for name in (
                "flipped.json.gz", "short.json.gz", "deep.json", "text.json", "list.json", "map.json", "attrs.json",
                "attrs_map.json", "name.json", "own.json", "scope.json", "start.json", "long.json") for command, *files in (
                    ("info", name), ("diff", "a.json", name), ("convert", name, "o.chrome.json"),
                    ("link", name, "p.json", "o.json"))):
            with self.subTest(words):
                self.check_line(words)
        for words in (["diff", "a.json", "types.json"], ["convert", "types.json", "o.chrome.json"],
                      ["convert", "stack.json", "o.chrome.json"], ["link", "a.json", "flipped.json.gz", "o.json"],
                      ["link", "a.json", "map.json", "o.json"]):
            with self.subTest(words):
                self.check_line(words)
        self.check_line(["check", "attrs_map.json"])
        self.assertEqual(self.et("link", "a.json", "args.json", "o.json")[0], 0)
        for name in ("name.json", "own.json", "scope.json", "types.json"):
            status, out, err = self.et("check", name)
            self.assertEqual((status, out[:7]), (1, "node 6 " if name != "name.json" else "node 6:"), err)

    def check_line(self, words):
        """Runs the command in this process."""
        command, *files = words
        damaged = next(self.folder / file for file in files if file not in ("a.json", "p.json"))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = commands.main(["et", command, *(str(self.folder / file) for file in files)])
        self.assertEqual((status, out.getvalue(), len(err.getvalue().splitlines())), (1, "", 1), err.getvalue())
        self.assertTrue(err.getvalue().startswith(f"kpytrace: {damaged}"), err.getvalue())
        self.assertEqual(list(self.folder.glob("o.*")), [])


ODD = (None, True, 0, -1, 2 ** 64, 10 ** 400, 1.5, float("nan"), float("inf"), "", "x", "\ud800", [], {}, [[]], [1], [None],
       [{}], {"name": "x"}, {"name": [], "value": 1}, 3, 6)


def places(value, path=()):
    """Returns the paths of all its members."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(value[key], (*path, key))


def mutated(data, chosen):
    """Returns a copy in which one to three members are changed, duplicated or removed."""
    data = copy.deepcopy(data)
    for _ in range(chosen.choice((1, 1, 2, 3))):
        if not data:
            break
        *path, last = chosen.choice(list(places(data)))
        at = data
        for key in path:
            at = at[key]
        how = chosen.random()
        if how < 0.7:
            at[last] = copy.deepcopy(chosen.choice(ODD))
        elif how < 0.85 or isinstance(at, dict):
            at.pop(last)
        else:
            at.insert(last, copy.deepcopy(at[last]))
    return data


class Mutated(Case):
    def test_every_command_ends_with_a_status(self):
        chosen = random.Random(23)
        names = {name: str(self.folder / f"{name}.json") for name in ("a", "p", "m", "q", "o", "o.chrome")}
        files = {"a": good(), "p": PROFILE}
        for turn in range(60):
            files.update(m=mutated(good(), chosen), q=mutated(PROFILE, chosen))
            for name, data in files.items():
                (self.folder / f"{name}.json").write_text(json.dumps(data))
            for words in (["info", "m"], ["check", "m"], ["diff", "-t", "a", "m"], ["convert", "m", "o.chrome"],
                          ["convert", "--plain", "m", "o"], ["link", "m", "p", "o"], ["link", "a", "q", "o"]):
                with self.subTest(turn=turn, words=words), contextlib.redirect_stdout(io.StringIO()), \
                        contextlib.redirect_stderr(io.StringIO()):
                    self.assertIn(commands.main(["et", *(names.get(word, word) for word in words)]), (0, 1))


if __name__ == "__main__":
    unittest.main()
