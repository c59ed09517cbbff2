"""Python functions of every kind: each call is recorded once, below its caller."""

import contextlib
import functools
import sys
import unittest

from support import Case, RECOVERED, VERSION

INLINED = VERSION >= (3, 12)  # comprehensions of lists, sets and dicts have no frame (T42)


def leaf():
    pass


def middle():
    leaf()
    leaf()


def outer():
    middle()
    leaf()


def down(n):
    return down(n - 1) + 1 if n else 0


class Shape:
    def __init__(self, side):
        self.side = side

    @property
    def area(self):
        return self.square()

    @area.setter
    def area(self, value):
        self.side = value

    def square(self):
        return self.side * self.side

    @classmethod
    def unit(cls):
        return cls(1)

    @staticmethod
    def corners():
        return 4

    def __call__(self):
        return self.area

    def __len__(self):
        return self.corners()

    def __add__(self, other):
        return self.side + other.side

    def __lt__(self, other):
        return self.side < other.side

    def __getattr__(self, name):
        return name

    class Inner:
        def deep(self):
            class Innermost:
                def deeper(self):
                    leaf()
            Innermost().deeper()


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


class Calls(Case):
    def outline(self, work, text, **options):
        self.assert_outline(self.record(work, **options).of(work), text)

    def test_functions(self):
        self.outline(outer, """
            outer
              middle
                leaf
                leaf
              leaf
            """)

    def test_methods_properties_and_operators(self):
        def work():
            a = Shape(3)
            a.area
            a.area = 5
            Shape.unit()
            a.corners()
            a()
            a + a
            a < a
            a.anything
        self.outline(work, """
            work
              __init__
              area
                square
              area
              unit
                __init__
              corners
              __call__
                area
                  square
              __add__
              __lt__
              __getattr__
            """)

    def test_python_called_by_c(self):
        def work():
            shapes = [Shape(2), Shape(1)]
            len(shapes[0])
            sorted(shapes)
            list(map(lambda x: leaf(), shapes))
            max(shapes, key=Shape.square)
        self.outline(work, """
            work
              __init__
              __init__
              [len]
                __len__
                  corners
              [sorted]
                __lt__
              <lambda>
                leaf
              <lambda>
                leaf
              [max]
                square
                square
            """)

    def test_nested_classes(self):
        work = Shape.Inner().deep
        deep = self.record(work).of(Shape.Inner.deep)
        self.assert_outline(deep, """
            deep
              [__build_class__]
                Innermost
              deeper
                leaf
            """)

    def test_lambdas_closures_and_defaults(self):
        def work():
            factor = 2
            (lambda x, y=leaf(): x * factor)(3)

            def closure():
                return factor
            return closure()
        self.outline(work, """
            work
              leaf
              <lambda>
              closure
            """)

    def test_comprehensions(self):
        def work():
            [leaf() for _ in range(1)]
            {leaf() for _ in range(1)}
            {0: leaf() for _ in range(1)}
            list(leaf() for _ in range(1))
        expected = ["work"]
        for kind in ("<listcomp>", "<setcomp>", "<dictcomp>"):
            expected += ["  leaf"] if INLINED else [f"  {kind}", "    leaf"]
        expected += ["  <genexpr>", "    leaf", "  <genexpr>"]
        self.assertEqual(self.record(work).of(work).outline(), expected)

    def test_decorators(self):
        cached = functools.lru_cache(decorated(leaf))

        def work():
            decorated(leaf)()
            cached()
            cached()
            functools.partial(leaf)()
        calls = self.record(work).of(work)
        self.assertEqual([c.label for c in calls.children if c.kind == "python"],
                         ["decorated", "wrapper", "wrapper", "leaf"])
        self.assertEqual(calls.children[1].below(), ["leaf"])

    def test_context_managers(self):
        @contextlib.contextmanager
        def managed():
            leaf()
            yield 1
            leaf()

        def work():
            with managed():
                middle()
        recording = self.record(work)
        self.assertEqual(recording.count(managed.__wrapped__), 2, "two resumes")
        self.assertEqual([c.label for c in recording.of(work).children if c.kind == "python"],
                         ["helper", "__enter__", "middle", "__exit__"])

    def test_arguments_of_every_kind(self):
        def take(a, /, b, *args, c=1, **kwargs):
            leaf()

        def work():
            take(1, 2)
            take(1, b=2, c=3)
            take(*(1, 2, 3), **{"d": 4})
            take(1, *[2])
        self.assertEqual(self.record(work).of(work).labels(),
                         [(0, "work")] + [(1, "take"), (2, "leaf")] * 4)

    def test_recursion(self):
        limit = sys.getrecursionlimit()
        self.addCleanup(sys.setrecursionlimit, limit)
        # 3.10's interpreter uses about 500 bytes of C stack per call, and the stack has 8 MB.
        for depth in (1000, 20000 if VERSION >= (3, 11) else 10000):
            sys.setrecursionlimit(depth + 1000)
            recording = self.record(lambda: down(depth))
            calls = recording.all(down)
            self.assertEqual(self.result, depth)
            self.assertEqual(len(calls), depth + 1)
            self.assertEqual(recording.of(calls[0].parent.function).label, "<lambda>")
            for call, child in zip(calls, calls[1:]):
                self.assertIs(child.parent, call)
            self.assertEqual([c for c in calls if c.flags], [])

    def test_recursion_that_is_too_deep(self):
        recording = self.record(lambda: down(10**9))
        self.assertIsInstance(self.error, RecursionError)
        self.assertGreater(recording.count(down), 500)
        self.assertEqual([c for c in recording.calls if RECOVERED in c.flags], [])
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_mutual_recursion(self):
        def even(n):
            return n == 0 or odd(n - 1)

        def odd(n):
            return n != 0 and even(n - 1)
        recording = self.record(lambda: even(300))
        self.assertEqual((recording.count(even), recording.count(odd)), (151, 150))
        self.assertEqual(recording.all(even)[-1].depth - recording.all(even)[0].depth, 300)

    def test_many_calls_fill_many_chunks(self):
        recording = self.record(lambda: [leaf() for _ in range(20000)])
        self.assertEqual(recording.count(leaf), 20000)
        self.assertEqual(recording.stats["events_dropped"], 0)
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_exec_eval_and_import(self):
        def work():
            exec("leaf()", {"leaf": leaf})
            eval("leaf()", {"leaf": leaf})
        self.outline(work, """
            work
              [exec]
                <module>
                  leaf
              [eval]
                <module>
                  leaf
            """)
        (self.folder / "imported_by_test.py").write_text("def f(): pass\nf()\n")
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        self.addCleanup(sys.modules.pop, "imported_by_test", None)

        def load():
            import imported_by_test  # noqa: F401
        recording = self.record(load)
        function = recording.of("f")
        self.assertEqual(function.parent.label, "<module>")
        self.assertEqual(function.parent.parent.label, "[exec]")
        self.assertIs(recording.of(load).depth < function.depth, True)


if __name__ == "__main__":
    unittest.main()
