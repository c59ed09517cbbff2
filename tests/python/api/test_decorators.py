"""@kpytrace.span and @kpytrace.trace as decorators, with the semantics of functools.wraps; and traces that nest."""

import asyncio
import concurrent.futures
import functools
import inspect
import itertools
import pathlib
import pickle
import sys
import textwrap
import threading
import types
import typing
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case, run_python

import kpytrace


def plain(x: "int", *, y: "str" = "a") -> "list[int]":
    "Its text."
    return [x] * len(y)


plain.mark = "its own attribute"


async def coroutine(x: int) -> int:
    await asyncio.sleep(0)
    return x + 1


def generator(n: int) -> "typing.Iterator[int]":
    got = []
    try:
        for i in range(n):
            try:
                got.append((yield i))
            except KeyError as error:
                got.append(error.args[0])
    finally:
        got.append("closed")
    return got


async def async_generator(n: int, seen: list) -> "typing.AsyncIterator[int]":
    try:
        for i in range(n):
            await asyncio.sleep(0)
            try:
                seen.append((yield i))
            except KeyError as error:
                seen.append(error.args[0])
    finally:
        await asyncio.sleep(0)
        seen.append("closed")


@kpytrace.span("pickled")
def pickled(x):
    return x


class Account:
    @kpytrace.span("method")
    def method(self, x):
        return self, x

    @kpytrace.span("outside")
    @classmethod
    def outside(cls, x):
        return cls, x

    @classmethod
    @kpytrace.span("inside")
    def inside(cls, x):
        return cls, x

    @kpytrace.span("static")
    @staticmethod
    def static(x):
        return x

    @property
    @kpytrace.span("property")
    def value(self):
        return 5

    @kpytrace.span("text")
    def __repr__(self):
        return "an account"


class Heir(Account):
    pass


def naive(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Decorators(Case):
    def decorators(self):
        yield kpytrace.span("s")
        yield kpytrace.trace(self.path)
        yield lambda function: kpytrace.span("s")(kpytrace.trace(self.path)(function))

    def both(self, *functions):
        for decorator, function in itertools.product(self.decorators(), functions):
            with self.subTest(function=function.__name__):
                yield function, decorator(function)

    def test_attributes_of_a_decorated_function(self):
        """Attributes that pytest and other frameworks read from a decorated test."""
        for function, made in self.both(plain, coroutine, generator, async_generator):
            like = naive(function)
            self.assertIs(inspect.unwrap(made), function)
            self.assertEqual(inspect.signature(made), inspect.signature(function))
            self.assertEqual(inspect.getsource(made), inspect.getsource(function))
            self.assertEqual(inspect.getfile(inspect.unwrap(made)), __file__)
            self.assertEqual(typing.get_type_hints(made), typing.get_type_hints(function))
            for name in (*functools.WRAPPER_ASSIGNMENTS, "__annotations__"):
                self.assertEqual(getattr(made, name, None), getattr(like, name, None), name)
            self.assertEqual({**vars(made), "__wrapped__": 0}, {**vars(like), "__wrapped__": 0})
            made.another = 1
            self.assertFalse(hasattr(function, "another"))
            self.assertFalse(hasattr(function, "__wrapped__"))
            for kind in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
                self.assertEqual(kind(made), kind(function), kind)
        self.assertIs(pickle.loads(pickle.dumps(pickled)), pickled)

    def test_what_unittest_and_doctest_find(self):
        import doctest

        @kpytrace.span("s")
        def documented():
            """
            >>> 1 + 1
            2
            """
        self.assertEqual([len(test.examples) for test in doctest.DocTestFinder().find(documented, globs={})], [1])

        class Suite(unittest.TestCase):
            @kpytrace.span("s")
            def test_one(self):
                pass

            @unittest.skip("not now")
            @kpytrace.span("s")
            def test_two(self):
                raise AssertionError
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(Suite).run(result)
        self.assertEqual((len(result.skipped), result.failures, result.errors), (1, [], []))

    def test_calls(self):
        for _, made in self.both(plain):
            self.assertEqual(made(1, y="abc"), [1, 1, 1])
            with self.assertRaises(TypeError):
                made()

    def test_methods(self):
        one = Heir()
        self.assertEqual((one.method(1), Account.method(one, 2)), ((one, 1), (one, 2)))
        for of in (one, Heir):
            self.assertEqual((of.outside(1), of.inside(2), of.static(3)), ((Heir, 1), (Heir, 2), 3))
        self.assertEqual((one.value, repr(one)), (5, "an account"))
        self.assertEqual(Account.outside.__qualname__, "Account.outside")
        self.assertEqual(str(inspect.signature(one.outside)), "(x)")
        with kpytrace.trace(self.path):
            one.method(1), one.outside(1), one.inside(1), one.static(1), one.value, repr(one)
        spans = [e["name"] for e in self.calls() if e.get("cat") == "user_annotation"]
        self.assertEqual(sorted(spans), sorted(["method", "outside", "inside", "static", "property", "text"]))

    def test_coroutines(self):
        class Callable:
            async def __call__(self, x):
                return await coroutine(x)
        for _, made in self.both(coroutine):
            self.assertEqual(asyncio.run(made(1)), 2)

            async def many(made=made):
                return await asyncio.gather(*(made(i) for i in range(20)))
            self.assertEqual(asyncio.run(many()), list(range(1, 21)))
        for made in map(kpytrace.span("s"), (functools.partial(coroutine, 1), functools.partial(Callable(), 1))):
            self.assertTrue(inspect.iscoroutinefunction(made))
            self.assertEqual(asyncio.run(made()), 2)

    def test_coroutines_of_generators(self):
        @kpytrace.span("s")
        @types.coroutine
        def old(x):
            yield
            return x

        async def awaiting():
            return await old(3)
        self.assertEqual(asyncio.run(awaiting()), 3)

    def test_generators(self):
        for _, made in self.both(generator):
            self.assertEqual(list(made(3)), [0, 1, 2])
            g = made(9)
            self.assertEqual((next(g), g.send("a"), g.throw(KeyError("b")), next(g)), (0, 1, 2, 3))
            g.close()
            with self.assertRaises(StopIteration):
                next(g)
            g = made(1)
            next(g)
            with self.assertRaises(StopIteration) as ended:
                g.send("a")
            self.assertEqual(ended.exception.value, ["a", "closed"])
            with self.assertRaises(ZeroDivisionError):
                g = made(3)
                next(g)
                g.throw(ZeroDivisionError)

    def test_async_generators(self):
        async def use(made):
            seen = []
            self.assertEqual([i async for i in made(3, seen)], [0, 1, 2])
            self.assertEqual(seen, [None, None, None, "closed"])
            seen.clear()
            g = made(9, seen)
            self.assertEqual((await g.asend(None), await g.asend("a"), await g.athrow(KeyError("b"))), (0, 1, 2))
            await g.aclose()
            self.assertEqual(seen, ["a", "b", "closed"])
            with self.assertRaises(StopAsyncIteration):
                await g.asend(None)
            seen.clear()
            with self.assertRaises(ZeroDivisionError):
                g = made(3, seen)
                await g.asend(None)
                await g.athrow(ZeroDivisionError)
            self.assertEqual(seen, ["closed"])
            task = asyncio.create_task(made(3, seen).asend(None))
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        for _, made in self.both(async_generator):
            asyncio.run(use(made))
        with kpytrace.trace(self.path):
            asyncio.run(use(kpytrace.span("asynchronous")(async_generator)))
        self.assertIn("asynchronous", [e["name"] for e in self.read_trace()["traceEvents"]])

    def test_a_function_that_calls_itself(self):
        """The outermost call records all calls, and writes the file once, at its end."""
        @kpytrace.trace(self.path, c_calls=False)
        def fib(n):
            written.append(self.path.exists())
            return n if n < 2 else fib(n - 1) + fib(n - 2)

        for _ in range(2):
            written = []
            self.assertEqual(fib(8), 21)
            self.assertEqual(sum(name.endswith(": fib") for name in self.names()), 67)
            self.assertEqual(written, [False] * 67)
            self.path.unlink()
        self.assertIsNone(kpytrace._api.trace._active)

    def test_one_that_threads_call(self):
        @kpytrace.trace(self.path)
        def work(x):
            barrier.wait()
            return x

        barrier = threading.Barrier(8)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(work, range(8))), list(range(8)))
        self.assertIn(": work", " ".join(self.names()))
        self.assertIsNone(kpytrace._api.trace._active)


def outer():
    return middle()


def middle():
    return len("")


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Nesting(Case):
    def has(self, path, *names):
        found = {e["name"].rpartition(": ")[2] for e in self.calls(path)}
        return [name for name in names if name in found]

    def test_each_records_from_its_beginning_to_its_end(self):
        inside = self.folder / "inside.json"
        with kpytrace.trace(self.path):
            outer()
            with kpytrace.trace(inside), kpytrace.span("in both"):
                middle()
            kpytrace.mark("after")
        self.assertEqual(self.has(self.path, "outer", "middle", "in both"), ["outer", "middle", "in both"])
        self.assertEqual(self.has(inside, "outer", "middle", "in both"), ["middle", "in both"])
        marks = [[e["name"] for e in self.read_trace(path)["traceEvents"] if e["ph"] == "i"]
                 for path in (self.path, inside)]
        self.assertEqual(marks, [["after"], []])

    def test_they_may_end_in_any_order(self):
        first, second = kpytrace.trace(self.path).__enter__, kpytrace.trace(self.folder / "second.json").__enter__
        first, second = first(), second()
        span = kpytrace.span("across").begin()
        first.stop()
        middle()
        self.assertIs(kpytrace._api.trace._active, second)
        span.end()
        second.stop()
        self.assertEqual(self.has(self.folder / "second.json", "across", "middle"), ["across", "middle"])
        self.assertIsNone(kpytrace._api.trace._active)
        self.read_trace()

    def test_a_block_that_is_dropped_ends(self):
        t = kpytrace.trace(self.path).__enter__()
        self.assertIs(kpytrace._api.trace._active, t)
        del t
        self.assertIsNone(kpytrace._api.trace._active)
        kpytrace.start()
        kpytrace.stop()

    def test_inside_of_a_program_that_is_recorded(self):
        """The program runs as it does alone, and both files are complete."""
        (self.folder / "program.py").write_text(textwrap.dedent("""
            import kpytrace
            def inner(): pass
            def before(): pass
            @kpytrace.trace("decorated.json")
            def decorated(n): return n and decorated(n - 1)
            before()
            with kpytrace.trace("block.json"): inner()
            kpytrace.start("started.json"); inner(); print(kpytrace.stop().path)
            decorated(3)
            try: kpytrace.start(); kpytrace.start()
            except RuntimeError as error: print(error)
            """))
        run = run_python("-m", "kpytrace", "run", "-o", "run.json", "program.py", cwd=self.folder)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("a trace is running already", run.stdout)
        alone = run_python("program.py", cwd=self.folder)
        self.assertEqual((alone.stdout, alone.returncode), (run.stdout, 0), alone.stderr)
        self.assertEqual(self.has(self.folder / "run.json", "before", "inner", "decorated"),
                         ["before", "inner", "decorated"])
        for name in ("block", "started"):
            self.assertEqual(self.has(self.folder / f"{name}.json", "before", "inner"), ["inner"])
        self.assertEqual(sum(name.endswith(": decorated") for name in self.names(self.folder / "decorated.json")), 4)


if __name__ == "__main__":
    unittest.main()
