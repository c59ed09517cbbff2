"""kpytrace.traceback: gathered stacks, and their text. Needs the backend for this Python."""

import copy
import gc
import json
import pathlib
import pickle
import random
import sys
import traceback
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case, TAG, run_python

from kpytrace import traceback as tb

WHY_SKIPPED = f"there is no backend for CPython {TAG} beside the plugin"
POSITIONS = sys.version_info >= (3, 11)
KEYS = ["name", "filename", "line", "qualname", "first_line", "end_line", "column", "end_column", "kind"]


def deep(n, function):
    return function() if n == 0 else deep(n - 1, function)


def here():
    return tb.gather()


def both():
    return tb.gather(), traceback.extract_stack()


def both_with_positions():
    """Also returns (line, end line, column, end column) of each frame around."""
    where, frame, found = tb.gather(), sys._getframe(1), []
    while frame:
        found.append(list(frame.f_code.co_positions())[frame.f_lasti // 2])
        frame = frame.f_back
    return where, found


def names(where):
    return [frame["name"] for frame in where.symbolize()]


def outer_of(frames):
    """Returns all frames but the innermost, as (file, line, name)."""
    return [(frame["filename"], frame["line"], frame["name"]) for frame in frames[1:]]


def code_with(name, filename="<made>"):
    """Returns a function of this name in this file, which gathers."""
    scope = {"gather": tb.gather}
    exec(compile("def f():\n    return gather()\n", filename, "exec"), scope)
    function = scope["f"]
    function.__code__ = function.__code__.replace(co_name=name)
    return function


@unittest.skipUnless(BACKEND.exists(), WHY_SKIPPED)
class Gathering(unittest.TestCase):
    def test_it_is_the_stack_innermost_first(self):
        where, expected = deep(3, both)
        frames = where.symbolize()
        self.assertEqual(names(where)[:5], ["both", "deep", "deep", "deep", "deep"])
        self.assertEqual(outer_of(frames),
                         [(f.filename, f.lineno, f.name) for f in reversed(expected[:-1])])
        self.assertEqual(frames[0]["line"], both.__code__.co_firstlineno + 1)
        self.assertEqual(frames[0]["first_line"], both.__code__.co_firstlineno)
        self.assertEqual({frame["kind"] for frame in frames}, {"python"})

    @unittest.skipUnless(POSITIONS, "this Python has no columns")
    def test_columns(self):
        where, expected = deep(3, both_with_positions)
        frames = where.symbolize()
        self.assertEqual([(f["line"], f["end_line"], f["column"], f["end_column"])
                          for f in frames[1:]], expected)
        text = pathlib.Path(__file__).read_text().splitlines()[frames[0]["line"] - 1]
        column = text.index("tb.gather()")
        self.assertEqual((frames[0]["column"], frames[0]["end_column"]),
                         (column, column + len("tb.gather()")))

    def test_a_statement_of_several_lines(self):
        where = [
            1,
            here(),
        ][1]
        line = test_line(self)
        self.assertEqual(where.symbolize()[1]["line"], line + 3)

    def test_offsets_of_instructions(self):
        def look():
            frame, found = sys._getframe(1), []
            where = tb.gather()
            while frame:
                found.append(frame.f_lasti)
                frame = frame.f_back
            return where, found
        where, expected = deep(3, look)
        self.assertEqual([frame["offset"] for frame in where.symbolize()[1:]], expected)

    def test_qualnames(self):
        frame = self.inside().symbolize()[0]
        self.assertEqual(frame["name"], "inside")
        if POSITIONS:  # older code has none
            self.assertEqual(frame["qualname"], "Gathering.inside")

    def inside(self):
        return tb.gather()

    def test_flags(self):
        self.assertEqual(tb.gather(False).symbolize(), [])
        self.assertEqual(tb.gather(python=False, script=True).symbolize(), [])
        self.assertEqual(names(tb.gather(True, False, False, 1)), ["test_flags"])
        self.assertFalse(tb.gather(False).cut)

    def test_depth(self):
        whole = deep(5, here)
        self.assertFalse(whole.cut)
        cut = deep(5, lambda: tb.gather(depth=3))
        self.assertEqual(names(cut), ["<lambda>", "deep", "deep"])
        self.assertTrue(cut.cut)
        enough = deep(5, lambda: tb.gather(depth=len(whole.symbolize())))
        self.assertEqual((len(names(enough)), enough.cut), (len(names(whole)), False))

    def test_skip(self):
        where = deep(2, lambda: tb.gather(skip=2))
        self.assertEqual(names(where)[:3], ["deep", "deep", "test_skip"])
        self.assertEqual(names(deep(2, lambda: tb.gather(skip=1, depth=2))), ["deep", "deep"])
        self.assertEqual(tb.gather(skip=10000).symbolize(), [])
        self.assertEqual(json.loads(where.json()), where.symbolize())

    def test_wrong_arguments(self):
        for kind, args, kwargs in (
                (TypeError, (True, False, False, 0, 0, 0), {}), (TypeError, (), {"native": True}),
                (TypeError, (True,), {"python": True}), (TypeError, (), {"depth": "3"}),
                (ValueError, (), {"depth": -1}), (ValueError, (), {"depth": 2**31}),
                (ValueError, (), {"skip": 1, "cpp": True}), (OverflowError, (), {"depth": 2**70})):
            with self.subTest(args=args, kwargs=kwargs), self.assertRaises(kind):
                tb.gather(*args, **kwargs)

    def test_native_frames(self):
        def inside():
            return tb.gather(cpp=True), tb.gather()
        where, python = deep(2, inside)
        frames = where.symbolize()
        native = [frame for frame in frames if frame["kind"] == "cpp"]
        self.assertTrue(native)
        self.assertTrue(all(frame["address"] > 0 for frame in native))
        self.assertEqual([frame["name"] for frame in frames if frame["kind"] == "python"],
                         names(python))
        self.assertEqual({*frames[frames.index(native[0])]}, {*KEYS, "address"})
        alone = tb.gather(python=False, cpp=True).symbolize()
        self.assertEqual({frame["kind"] for frame in alone}, {"cpp"})

    def test_deep_recursion(self):
        self.addCleanup(sys.setrecursionlimit, sys.getrecursionlimit())
        sys.setrecursionlimit(20000)
        where = deep(5000, here)
        self.assertEqual(names(where).count("deep"), 5001)

    def test_down_and_up_again(self):
        """Gathers on the way, below the deepest mark: each is the current stack."""
        chance, way, gathered = random.Random(1), [], []

        def one(depth):
            step(depth)

        def other(depth):
            step(depth)

        def step(depth):
            for _ in range(1 + 3 * (depth in (700, 1400))):
                if chance.random() < 0.3:
                    gathered.append((tb.gather(), list(way)))
                if depth < 1500:
                    way.append(chance.choice((one, other)))
                    way[-1](depth + 1)
                    way.pop()
                tb.gather()
        self.addCleanup(sys.setrecursionlimit, sys.getrecursionlimit())
        sys.setrecursionlimit(10000)
        step(0)
        for where, expected in gathered[::20]:
            found = [frame["name"] for frame in where.symbolize()]
            self.assertEqual(found[1:2 * len(expected):2], [f.__name__ for f in reversed(expected)])
            self.assertEqual(set(found[:2 * len(expected):2]), {"step"} if expected else set())

    def test_generators(self):
        def numbers():
            yield tb.gather()
            yield from others()

        def others():
            yield tb.gather()
        first, second = numbers()
        self.assertEqual(names(first)[:2], ["numbers", "test_generators"])
        self.assertEqual(names(second)[:3], ["others", "numbers", "test_generators"])

    def test_only_gather_makes_them(self):
        self.assertRaises(TypeError, tb.Traceback)


def test_line(case):
    """The line that a test's function begins at."""
    return getattr(case, case._testMethodName).__func__.__code__.co_firstlineno


@unittest.skipUnless(BACKEND.exists(), WHY_SKIPPED)
class Reading(unittest.TestCase):
    def test_keys(self):
        for frame in here().symbolize():
            self.assertEqual(list(frame), [*KEYS, "offset"])

    def test_what_is_equal_is_one_object(self):
        one, two = (deep(2, here) for _ in range(2))
        other = deep(3, here)
        first, again, equal, longer = tb.symbolize([one, one, two, other])
        self.assertIs(first, again)
        self.assertIs(first, equal)
        self.assertIsNot(first, longer)
        self.assertIs(first[0], longer[0])
        self.assertIs(first[0]["filename"], first[1]["filename"])
        self.assertIs(one.symbolize(), one.symbolize())

    def test_a_prefix_is_another_list(self):
        def three():
            return tb.gather(), tb.gather(depth=2), tb.gather(skip=1)
        whole, cut, skipped = tb.symbolize(deep(3, three))
        self.assertEqual([frame["name"] for frame in cut], ["three", "deep"])
        self.assertEqual(whole[1:], skipped)
        self.assertIs(whole[1], skipped[0])

    def test_any_sequence(self):
        where = here()
        expected = where.symbolize()
        self.assertEqual(tb.symbolize(()), [])
        self.assertEqual(tb.symbolize(iter([where])), [expected])
        self.assertEqual(tb.symbolize({where: 1}), [expected])

    def test_wrong_elements(self):
        for wrong in ([None], [here(), 3], "text", [object()], [[here()]], [tb.Traceback]):
            for function in (tb.symbolize, tb.symbolize_json):
                with self.subTest(wrong=wrong), self.assertRaises(TypeError):
                    function(wrong)
        for wrong in (None, 3, here()):
            self.assertRaises(TypeError, tb.symbolize, wrong)
        self.assertRaises(TypeError, tb.format, None)
        with self.assertRaisesRegex(TypeError, "item 1 .*NoneType"):
            tb.symbolize([here(), None])

    def test_json(self):
        gathered = [here(), deep(4, here), tb.gather(False), here()]
        self.assertEqual(json.loads(tb.symbolize_json(gathered)), tb.symbolize(gathered))
        self.assertEqual(json.loads(gathered[1].json()), gathered[1].symbolize())
        self.assertEqual(tb.symbolize_json([]), "[]")

    def test_names_that_are_no_text(self):
        odd = code_with("we\ud800ird\x00\"", "o\udcffdd\n\\.py")()
        plain = here()
        lists = tb.symbolize([odd, plain])
        self.assertEqual((lists[0][0]["name"], lists[0][0]["filename"]),
                         ("we\\ud800ird\x00\"", "o\\udcffdd\n\\.py"))
        self.assertEqual(lists[0][0]["line"], 2)
        self.assertEqual(lists[1], plain.symbolize())
        self.assertEqual(json.loads(tb.symbolize_json([odd, plain])), lists)
        self.assertIn("we\\ud800ird", str(odd))

    def test_long_and_empty_names(self):
        for name in ("", "x" * 100000, "ü€𝒳"):
            self.assertEqual(names(code_with(name, name or "<made>")())[0], name)

    def test_format(self):
        where, expected = deep(2, both)
        # Ours have columns, which Python marks in a line of their own.
        for text, plain in zip(where.format()[:-1], traceback.format_list(expected[:-1])):
            for line in plain.splitlines():
                self.assertIn(line.strip(), text)
        self.assertEqual(len(where.format()), len(expected))
        self.assertEqual(tb.format(where), where.format())
        self.assertEqual(str(where), "".join(where.format()))
        self.assertIn("return tb.gather()", where.format()[-1])

    def test_summary(self):
        where, expected = deep(2, both)
        summary = where.summary()
        self.assertIsInstance(summary, traceback.StackSummary)
        self.assertEqual([(f.filename, f.lineno, f.name) for f in summary][:-1],
                         [(f.filename, f.lineno, f.name) for f in expected][:-1])
        with unittest.mock.patch("linecache.getline", side_effect=AssertionError("looked up")), \
                unittest.mock.patch("linecache.getlines", side_effect=AssertionError("looked up")):
            where.summary()

    def test_no_pickle_but_copies(self):
        where = here()
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with self.assertRaisesRegex(TypeError, "can't be pickled"):
                pickle.dumps(where, protocol)
        self.assertIs(copy.copy(where), where)
        self.assertIs(copy.deepcopy([where])[0], where)

    def test_counters(self):
        gc.collect()
        tb.free_dead()
        before = tb.stats()
        self.assertEqual(set(before), {"stacks", "dead", "places", "bytes_held"})
        kept = [deep(n, here) for n in range(50)]
        self.assertGreater(tb.stats()["stacks"], before["stacks"])
        self.assertGreater(tb.stats()["bytes_held"], 0)
        del kept
        gc.collect()
        self.assertEqual(tb.free_dead(), 0)
        self.assertEqual(tb.stats()["dead"], 0)
        self.assertLessEqual(tb.stats()["stacks"], before["stacks"])


class Package(Case):
    def test_it_is_imported_when_it_is_used(self):
        reply = run_python("-c", "import sys, kpytrace\n"
                           "print([m for m in sys.modules if m.startswith('kpytrace.trace')])\n"
                           "import kpytrace.traceback as t\nprint(kpytrace.traceback is t)")
        self.assertEqual(reply.stdout, "[]\nTrue\n", reply.stderr)
        reply = run_python("-c", "import kpytrace; print(kpytrace.traceback.gather.__name__)")
        self.assertEqual(reply.stdout, "gather\n", reply.stderr)

    def test_no_backend(self):
        import kpytrace
        import shutil

        alone = shutil.copy(kpytrace.plugin_path(), self.folder)
        reply = run_python("-c", f"""
import kpytrace
from kpytrace import traceback as tb
native = kpytrace._api.native
real, native.plugin_file = native.plugin_file, lambda: {str(alone)!r}
for call in (tb.gather, tb.stats, tb.free_dead, lambda: tb.origins(type("A", (), {{}})).__enter__()):
    try:
        print(call())
    except RuntimeError as error:
        print("RuntimeError", "libkpytrace_cpython" in str(error), error)
""")
        self.assertEqual(reply.stdout.count("RuntimeError True"), 4, reply.stdout + reply.stderr)


if __name__ == "__main__":
    unittest.main()
