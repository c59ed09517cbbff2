"""One recording of a real program, in every format: each has the same calls. Perfetto's trace is read with
Perfetto's own descriptions of its messages, if `make readers` has fetched them."""

import collections
import gzip
import json
import os
import pathlib
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support
from support import READERS, Case, read_perfetto

import kpytrace



def recursive(depth):
    return depth and recursive(depth - 1)


def generator():
    for i in range(20):
        yield len(str(i))


def größe():
    return sorted(generator(), key=lambda size: -size)


def work():
    for _ in range(30):
        recursive(20)
        größe()


class Formats(Case):
    def setUp(self):
        super().setUp()
        self.trace = kpytrace.start(gc=True)
        threads = [threading.Thread(target=work, name=f"Worker-{i}") for i in range(3)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()
        kpytrace.stop()
        self.trace.write(self.path)
        self.chrome = self.read_trace()
        self.base = self.chrome["baseTimeNanoseconds"]

    def write(self, suffix):
        path = self.folder / f"trace{suffix}"
        self.assertEqual(self.trace.write(path), self.trace.summary.calls)
        return path

    def qualified(self, event):
        """Returns the name that the other formats have."""
        place, colon, name = event["name"].rpartition(": ")
        return f"{place}{colon}{event['args'].get('qualified name', name)}"

    def chrome_calls(self):
        """Returns (tid, name, start, end) of each call, sorted. Times are exact, with three decimals."""
        def ns(microseconds):
            return round(microseconds * 1000)
        return sorted((e["tid"], self.qualified(e), self.base + ns(e["ts"]), self.base + ns(e["ts"]) + ns(e["dur"]))
                      for e in self.chrome["traceEvents"] if e["ph"] == "X")

    def test_perfetto(self):
        if not os.path.exists(READERS):
            self.skipTest("no readers: run `make readers`")
        path = self.write(".pftrace")
        read = read_perfetto(path)
        self.assertEqual(sorted(tuple(c[:4]) for c in read["calls"]), self.chrome_calls())
        self.assertIn("Worker-2", read["threads"].values())
        self.assertEqual(read["process"], next(e["args"]["name"] for e in self.chrome["traceEvents"]
                                               if e["name"] == "process_name"))
        sources = {c[1].rpartition(": ")[2]: c[4] for c in read["calls"] if c[4]}
        self.assertEqual(sources["größe"], [__file__, "größe", größe.__code__.co_firstlineno])
        self.assertEqual(self.chrome_notes(), self.perfetto_notes(read))
        self.assertLess(path.stat().st_size, self.path.stat().st_size / 4)

    def chrome_notes(self):
        """Counts the values of each further argument."""
        usual = {"Python id", "Python parent id", "Ev Idx", "qualified name"}  # Perfetto has that in the source location
        return collections.Counter((key, value) for e in self.chrome["traceEvents"] if e["ph"] == "X"
                                   for key, value in e["args"].items() if key not in usual)

    def perfetto_notes(self, read):
        return collections.Counter(item for c in read["calls"] for item in c[5].items())

    def test_qualified_names_are_arguments_of_chrome_json(self):
        named = {(e["name"].rpartition(": ")[2], e["args"].get("qualified name")) for e in self.chrome["traceEvents"]
                 if e["ph"] == "X" and e["name"].startswith(__file__)}
        self.assertIn(("größe", None), named)
        if sys.version_info >= (3, 11):
            self.assertIn(("<lambda>", "größe.<locals>.<lambda>"), named)

    def speedscope_calls(self, file):
        """Returns the frames of each thread as (profile, name, start, end)."""
        frames, calls = file["shared"]["frames"], []
        for profile in file["profiles"]:
            self.assertEqual((profile["type"], profile["unit"]), ("evented", "nanoseconds"))
            stack, last = [], profile["startValue"]
            for event in profile["events"]:
                self.assertGreaterEqual(event["at"], last)
                last = event["at"]
                if event["type"] == "O":
                    stack.append(event)
                else:
                    self.assertEqual((event["type"], event["frame"]), ("C", stack[-1]["frame"]))
                    start = stack.pop()["at"]
                    calls.append((profile["name"], frames[event["frame"]]["name"], self.base + start,
                                  self.base + last))
            self.assertEqual((stack, last), ([], profile["endValue"]))
        return sorted(calls)

    def test_speedscopes_own_schema(self):
        schema = pathlib.Path(READERS).parent.parent / "speedscope.json"
        if not schema.exists() or not os.path.exists(READERS):
            self.skipTest("there is no schema of speedscope: `make readers` fetches it with npm")
        check = "import json, jsonschema, sys; jsonschema.validate(*(json.load(open(f, encoding='utf-8'))" \
                " for f in sys.argv[1:]))"
        path = self.write(".speedscope.json")
        reply = subprocess.run([READERS, "-c", check, path, schema], capture_output=True, text=True)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        wrong = json.loads(path.read_text(encoding="utf-8"))
        del wrong["shared"]
        path.write_text(json.dumps(wrong), encoding="utf-8")
        reply = subprocess.run([READERS, "-c", check, path, schema], capture_output=True, text=True)
        self.assertIn("'shared' is a required property", reply.stderr)

    def test_speedscope(self):
        threads = {e["tid"]: e["args"]["name"] for e in self.chrome["traceEvents"] if e["name"] == "thread_name"}
        expected = sorted((threads[tid], *rest) for tid, *rest in self.chrome_calls())
        file = self.read_trace(self.write(".speedscope.json"))
        self.assertEqual(self.speedscope_calls(file), expected)
        self.assertIn({"name": f"{__file__}({größe.__code__.co_firstlineno}): größe", "file": __file__,
                       "line": größe.__code__.co_firstlineno}, file["shared"]["frames"])

    def test_collapsed(self):
        lines = self.write(".collapsed").read_text(encoding="utf-8").splitlines()
        stacks = dict(line.rsplit(" ", 1) for line in lines)
        self.assertEqual(len(stacks), len(lines), "each stack once")
        deepest = max(stacks, key=lambda stack: stack.count(": recursive"))
        self.assertEqual(deepest.count(": recursive"), 21)
        roots = [e for e in self.chrome["traceEvents"] if e["ph"] == "X" and e["args"]["Python parent id"] is None]
        self.assertAlmostEqual(sum(map(int, stacks.values())), sum(e["dur"] for e in roots), delta=len(lines) / 2 + 9)

    def test_every_format_can_be_compressed(self):
        for suffix in (".pftrace", ".speedscope.json", ".collapsed"):
            with self.subTest(suffix=suffix):
                plain = self.write(suffix).read_bytes()
                packed = gzip.decompress(self.write(suffix + ".gz").read_bytes())
                self.assertEqual(packed.replace(b".gz", b""), plain)


if __name__ == "__main__":
    if not support.BACKEND.exists():
        sys.exit(77)  # what ctest knows as skipped
    unittest.main()
