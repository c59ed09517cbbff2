"""Commands read traces in Chrome's JSON format, of kpytrace and of other tools, as they read .kpt files."""

import gzip
import json
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import Case, run_python

import kpytrace


def leaf():
    pass


def work():
    for _ in range(30):
        leaf()


VIZTRACER = {"traceEvents": [
    {"ph": "M", "pid": 9, "tid": 9, "name": "process_name", "args": {"name": "MainProcess"}},
    {"ph": "M", "pid": 9, "tid": 9, "name": "thread_name", "args": {"name": "MainThread"}},
    {"pid": 9, "tid": 9, "ts": 102.5, "ph": "X", "dur": 2.25, "name": "inner (/app/m.py:7)", "cat": "FEE"},
    {"pid": 9, "tid": 9, "ts": 101, "ph": "X", "dur": 5, "name": "outer (/app/m.py:3)", "cat": "FEE"},
    {"pid": 9, "tid": 9, "ts": 103, "ph": "X", "dur": 1, "name": "builtins.len", "cat": "FEE"},
    {"pid": 9, "tid": 9, "ts": 103, "ph": "C", "name": "queue", "args": {"n": 3}},
    {"pid": 9, "tid": 9, "ts": 103, "ph": "i", "name": "hello", "s": "t", "args": {"k": 1}},
    {"pid": 9, "tid": 9, "ts": 103, "ph": "s", "id": 1, "name": "arrow"}],
    "viztracer_metadata": {"overflow": False, "producer": "viztracer"}}
TORCH = {"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": 1790000000000000000, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 5, "tid": 6, "ts": 2.5, "dur": 4.0, "args": {"Ev Idx": 1}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 5, "tid": 6, "ts": 1, "dur": 9},
    {"ph": "X", "cat": "python_function", "name": "train.py(12): step", "pid": 5, "tid": 6, "ts": 2, "dur": 5},
    {"ph": "X", "cat": "kernel", "name": "add_kernel", "pid": 0, "tid": 7, "ts": 4, "dur": 6},
    {"ph": "X", "cat": "kernel", "name": "mul_kernel", "pid": 0, "tid": 7, "ts": 7, "dur": 8},
    {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 0,
     "dur": 99}]}


class Inputs(Case):
    def record(self):
        self.kpt, self.json = self.folder / "trace.kpt", self.folder / "trace.json"
        with kpytrace.trace(self.kpt) as trace:
            work()
            thread = threading.Thread(target=work, name="second")
            thread.start()
            thread.join()
            kpytrace.mark("done", n=1)
        trace.write(self.json)

    def command(self, *words, status=0):
        reply = run_python("-m", "kpytrace", *map(str, words), cwd=self.folder)
        self.assertEqual(reply.returncode, status, reply.stderr)
        return reply

    def write(self, name, trace):
        path = self.folder / name
        text = json.dumps(trace) if not isinstance(trace, str) else trace
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    def top(self, path):
        """Returns the calls, own and total times by function, in ns as far as `top` shows them."""
        rows = self.command("top", "-n", "0", path).stdout.splitlines()[1:]
        return sorted(rows)


class Ours(Inputs):
    def test_all_commands_show_what_they_show_of_the_kpt_file(self):
        self.record()
        packed = self.folder / "packed.json.gz"
        packed.write_bytes(gzip.compress(self.json.read_bytes()))
        rows = self.top(self.kpt)
        for path in (self.json, packed):
            self.assertEqual(self.top(path), rows)
            self.assertIn("second", self.command("info", path).stdout)
            self.assertIn("calls", self.command("report", path, "-o", "r.html").stderr)
            changes = json.loads(self.command("diff", "--json", self.kpt, path).stdout)
            self.assertEqual({change["difference"] for change in changes}, {0})
            self.command("merge", self.kpt, path, "-o", "merged.json")

    def test_the_calls_keep_their_times_to_the_nanosecond(self):
        self.record()
        again = self.folder / "again.json"
        self.command("convert", self.json, again)
        def key(e):
            return e["tid"], e["ts"], -e["dur"], e["name"]
        before, after = ([(e["name"], e["tid"], e["ts"], e["dur"]) for e in sorted(self.calls(path), key=key)]
                         for path in (self.json, again))
        bases = [self.read_trace(path)["baseTimeNanoseconds"] for path in (self.json, again)]
        self.assertEqual(bases[0], bases[1])
        self.assertEqual(before, after)
        marks = [e for e in self.read_trace(again)["traceEvents"] if e["ph"] == "i"]
        self.assertEqual([(m["name"], m["args"]) for m in marks], [("done", {"n": 1})])

    def test_a_file_that_is_cut_off_is_read_up_to_there(self):
        self.record()
        text = self.json.read_bytes()
        for name, bytes_ in (("cut.json", text[:len(text) // 2]), ("cut.json.gz", gzip.compress(text)[:2000])):
            with self.subTest(name):
                (self.folder / name).write_bytes(bytes_)
                reply = self.command("top", name)
                self.assertIn("cut off, or damaged at byte", reply.stderr)
                self.assertIn("leaf", reply.stdout)
                self.assertEqual(self.command("top", "-q", name).stderr, "")


class Others(Inputs):
    def test_viztracer(self):
        path = self.write("result.json", VIZTRACER)
        reply = self.command("top", path)
        self.assertIn("1 of 8 events are arrows", reply.stderr)
        rows = [line.split() for line in reply.stdout.splitlines()[1:]]
        self.assertEqual([(row[0], " ".join(row[1:3]), " ".join(row[10:])) for row in rows if len(row) > 9],
                         [("1", "2.750 µs", "/app/m.py(3): outer"), ("1", "1.250 µs", "/app/m.py(7): inner"),
                          ("1", "1.000 µs", "builtins.len")])
        self.assertIn("MainThread", self.command("info", path).stdout)
        self.command("convert", path, self.path)
        events = self.read_trace()["traceEvents"]
        self.assertEqual([e["args"] for e in events if e["ph"] == "C"], [{"value": 3}])

    def test_torch(self):
        path = self.write("torch.json.gz", TORCH)
        names = json.loads(self.command("top", "--ops", "--json", path).stdout)
        self.assertEqual({(row["name"], row["total_ns"]) for row in names},
                         {("aten::add", 4000), ("ProfilerStep#1", 9000)})
        self.command("convert", path, self.path)
        self.assertEqual(self.read_trace()["baseTimeNanoseconds"], 1790000000000000000)
        kernels = {e["name"]: (e["ts"], e["dur"]) for e in self.calls() if e["name"].endswith("kernel")}
        self.assertEqual(kernels, {"add_kernel": (4, 6), "mul_kernel": (7, 8)})  # they overlap: two lanes
        threads = [e["args"]["name"] for e in self.read_trace()["traceEvents"] if e["name"] == "thread_name"]
        self.assertIn("0: thread 7 (2)", threads)
        self.assertNotIn("PyTorch Profiler", "".join(self.names()))

    def test_begin_and_end_events_and_a_bare_list(self):
        path = self.write("list.json", '[{"ph":"B","name":"a","pid":1,"tid":1,"ts":1},'
                          '{"ph":"B","name":"b","pid":1,"tid":1,"ts":2},{"ph":"E","pid":1,"tid":1,"ts":4},'
                          '{"ph":"E","pid":1,"tid":1,"ts":7},')  # as Chrome allows it to end
        self.command("convert", "-q", path, self.path)
        self.assertEqual({(e["name"], e["dur"]) for e in self.calls()}, {("a", 6), ("b", 2)})


class Refused(Inputs):
    def test_what_is_no_trace(self):
        for name, text, said in (("x.json", "{}", "no list of events"), ("x.json", "[", None), ("x.txt", "hello", "not a .kpt"),
                                 ("x.pftrace", "\x0a\x0b", "kpytrace view --perfetto"),
                                 ("x.html", "<!doctype html>", "kpytrace view"), ("x.json.gz", "", "not a .kpt")):
            with self.subTest(name=name, text=text):
                path = self.folder / name
                path.write_bytes(text.encode())
                reply = self.command("top", path, status=2 if said and "list" not in said else 1 if said else 0)
                self.assertNotIn("Traceback", reply.stderr)
                self.assertIn(said or "cut off", reply.stderr)


class Outputs(Inputs):
    def test_an_unknown_suffix_lists_the_known_ones(self):
        self.record()
        for words in (("convert", self.kpt, "out.foo"), ("merge", self.kpt, "-o", "out.json.xz"),
                      ("run", "-o", "out.trace", "-c", "pass")):
            with self.subTest(words):
                reply = run_python("-m", "kpytrace", *map(str, words), cwd=self.folder)
                self.assertIn(".kpt, .json, .pftrace", reply.stderr)
                self.assertNotEqual(reply.returncode, 0)
                self.assertEqual(list(self.folder.glob("out*")), [])
        reply = run_python("-m", "kpytrace", "table", "-o", "t.csv", str(self.kpt), cwd=self.folder)
        self.assertIn("NAME.parquet", reply.stderr)
        with self.assertRaisesRegex(ValueError, "no format has the suffix '.foo'"):
            kpytrace.trace(self.folder / "out.foo")

    def test_a_hyphen_is_stdout(self):
        self.record()
        written = json.loads(self.command("convert", self.kpt, "-").stdout)
        self.assertEqual(len([e for e in written["traceEvents"] if e["ph"] == "X"]), len(self.calls(self.json)))
        self.assertTrue(self.command("report", "-o", "-", self.kpt).stdout.startswith("<!doctype html>"))
        reply = self.command("run", "-q", "-o", "-", "-c", "pass")
        self.assertTrue(json.loads(reply.stdout)["traceEvents"])

    def test_a_short_option_may_have_its_value_in_the_same_word(self):
        self.command("run", "-oout.kpt", "-c", "pass")
        self.assertEqual(len(self.command("top", "-q", "-n1", "out.kpt").stdout.splitlines()), 2)


if __name__ == "__main__":
    unittest.main()
