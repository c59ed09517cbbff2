"""The program's own marks, spans and counters, and functions that are decorated."""

import asyncio
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case, run_python

import kpytrace
from kpytrace._api import native


def inner():
    return len("")


def noting():
    kpytrace.mark("here", n=1, text='a"b\n', none=None, yes=True, real=1.5, odd=float("nan"),
                  other=[1, 2])
    with kpytrace.span("loading", files=12):
        inner()
    kpytrace.counter("queue", 7)
    kpytrace.counter("queue", 2.5)


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Notes(Case):
    def events(self, phase):
        return [e for e in self.read_trace()["traceEvents"] if e["ph"] == phase]

    def only(self, events):
        self.assertEqual(len(events), 1, events)
        return events[0]

    def call(self, name):
        return self.only([e for e in self.calls() if e["name"].endswith(f": {name}")])

    def within(self, inner, outer):
        return (outer["ts"] <= inner["ts"] and inner["tid"] == outer["tid"]
                and inner["ts"] + inner.get("dur", 0) <= outer["ts"] + outer["dur"])

    def test_spans_named_step_are_steps(self):
        path = self.path.with_suffix(".kpt")
        with kpytrace.trace(path):
            for _ in range(3):
                with kpytrace.span("step"):
                    noting()
        standalone = native.standalone
        handle, _, _ = standalone.open(native.load(), str(path), False)
        steps = standalone.steps(handle)
        standalone.close(handle)
        self.assertEqual([(number, name) for _, _, number, name in steps], [(0, "step"), (1, "step"), (2, "step")])
        for (start, end, *_), (later, *_) in zip(steps, steps[1:]):
            self.assertTrue(start < end <= later)
        with self.assertRaises(TypeError):
            standalone.steps(None)

    def test_each_kind_lies_where_it_was_made(self):
        with kpytrace.trace(self.path):
            noting()
        mark = self.only(self.events("i"))
        self.assertEqual(mark["name"], "here")
        self.assertEqual({k: mark["args"][k] for k in ("n", "text", "none", "yes", "real", "odd", "other")},
                         {"n": 1, "text": 'a"b\n', "none": None, "yes": True, "real": 1.5, "odd": "nan",
                          "other": "[1, 2]"})
        span = self.only([e for e in self.calls() if e["name"] == "loading"])
        self.assertEqual(span["args"]["files"], 12)
        self.assertTrue(self.within(mark, self.call("noting")))
        self.assertTrue(self.within(span, self.call("noting")))
        self.assertTrue(self.within(self.call("inner"), span))
        self.assertEqual([list(e["args"].values()) for e in self.events("C")], [[7], [2.5]])
        self.assertFalse([name for name in self.names() if "kpytrace/_api/annotations.py" in name])

    def test_without_a_trace_nothing_happens(self):
        noting()
        kpytrace.span("x").begin().end()
        kpytrace.span("x").end()

    def test_of_a_thread_that_is_not_recorded(self):
        """The note has its own time and thread."""
        with kpytrace.trace(self.path, this_thread=True):
            thread = threading.Thread(target=kpytrace.mark, args=("elsewhere",))
            thread.start()
            thread.join()
        mark = self.only(self.events("i"))
        self.assertNotEqual(mark["tid"], self.calls()[0]["tid"])
        times = [e["ts"] for e in self.calls()]
        self.assertTrue(min(times) - 1e6 <= mark["ts"] <= max(times) + 1e6)

    def test_a_span_over_two_threads_and_one_that_never_ends(self):
        with kpytrace.trace(self.path):
            span = kpytrace.span("handed over").begin()
            kpytrace.span("open").begin()
            thread = threading.Thread(target=span.end)
            thread.start()
            thread.join()
        whole = self.read_trace()["traceEvents"]
        begun = [e for e in whole if e["name"] == "handed over"]
        self.assertEqual(sorted(e["ph"] for e in begun), ["b", "e"])
        self.assertTrue([e for e in whole if e["name"] == "open"])

    def test_coroutines(self):
        async def step(name):
            with kpytrace.span(name):
                await asyncio.sleep(0.01)

        async def both():
            await asyncio.gather(step("one"), step("two"))

        with kpytrace.trace(self.path):
            asyncio.run(both())
        for name in ("one", "two"):
            begin, end = [e for e in self.read_trace()["traceEvents"] if e["name"] == name]
            self.assertGreater(abs(end["ts"] - begin["ts"]), 9000)

    def test_flows(self):
        with kpytrace.trace(self.path):
            kpytrace.mark("sent", flow=42)
            kpytrace.mark("received", flow=42)
        self.assertTrue(self.events("s"))
        self.assertTrue(self.events("f") or self.events("t"))

    def test_they_are_in_a_stream_and_in_its_copy(self):
        kpt = self.folder / "t.kpt"
        with kpytrace.trace(kpt):
            noting()
        for source, target in ((kpt, self.folder / "copy.kpt"), (self.folder / "copy.kpt", self.path)):
            reply = run_python("-m", "kpytrace", "convert", str(source), str(target))
            self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertEqual(self.only(self.events("i"))["name"], "here")
        self.assertTrue(self.within(self.call("inner"),
                                    self.only([e for e in self.calls() if e["name"] == "loading"])))

    def test_names_of_every_kind(self):
        names = ["", 'a"b\\c', "new\nline", "\x00\x01", "ünïcödé \U0001f40d", "\ud800", "x" * 100_000]
        with kpytrace.trace(self.path):
            for name in names:
                kpytrace.mark(name, **{"k\n\"": name})
                kpytrace.counter(name, 1)
                with kpytrace.span(name):
                    pass
        self.assertEqual(len(self.events("i")), len(names))
        self.assertEqual(len(self.events("C")), len(names))

    def test_values_that_have_no_repr(self):
        """A note never raises the exception of a value into the program."""
        class Strange:
            def __repr__(self):
                raise ZeroDivisionError
        with kpytrace.trace(self.path):
            kpytrace.mark("here", huge=10**5000, large=10**30, strange=Strange(), inside=[Strange()])
            with kpytrace.span("there", strange=Strange()):
                pass
        strange = "<Strange without a repr: ZeroDivisionError>"
        args = self.only(self.events("i"))["args"]
        self.assertEqual((args["large"], args["strange"], args["inside"]),
                         (10**30, strange, strange.replace("Strange", "list")))
        if sys.version_info >= (3, 11):
            self.assertEqual(args["huge"], "<int without a repr: ValueError>")
        self.assertEqual(self.only([e for e in self.calls() if e["name"] == "there"])["args"]["strange"], strange)

    def test_from_many_threads(self):
        def run(n):
            for i in range(200):
                with kpytrace.span(f"t{n}", i=i):
                    kpytrace.mark("m")

        with kpytrace.trace(self.path):
            threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(len(self.events("i")), 1600)
        self.assertEqual(sum(e.get("cat") == "user_annotation" for e in self.calls()), 1600)


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Decorators(Case):
    def test_functions_coroutines_and_generators(self):
        @kpytrace.span("plain", a=1)
        def plain(x):
            "its text"
            return x

        @kpytrace.span("coroutine")
        async def coroutine(x):
            await asyncio.sleep(0)
            return x

        @kpytrace.span("generator")
        def generator(x):
            got = yield x
            return got

        self.assertEqual((plain.__name__, plain.__doc__, plain.__wrapped__(3)), ("plain", "its text", 3))
        with kpytrace.trace(self.path):
            self.assertEqual(plain(1), 1)
            self.assertEqual(plain(2), 2)
            self.assertEqual(asyncio.run(coroutine(3)), 3)
            g = generator(4)
            self.assertEqual(next(g), 4)
            with self.assertRaises(StopIteration) as ended:
                g.send(5)
            self.assertEqual(ended.exception.value, 5)
        names = [e["name"] for e in self.read_trace()["traceEvents"]]
        self.assertEqual(names.count("plain"), 2)
        for name in ("coroutine", "generator"):
            self.assertTrue(names.count(name))
        with self.assertRaises(TypeError):
            kpytrace.span("x")(5)

    def test_trace(self):
        @kpytrace.trace(self.path, c_calls=False)
        def traced():
            return inner()

        for _ in range(2):
            self.assertEqual(traced(), 0)
            self.assertEqual(sum(name.endswith(": inner") for name in self.names()), 1)
        with kpytrace.trace() as used:
            pass
        with self.assertRaises(RuntimeError):
            used(inner)


if __name__ == "__main__":
    unittest.main()
