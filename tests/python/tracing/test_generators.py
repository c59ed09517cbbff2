"""Generators, coroutines and async generators: each resume is a separate span (T2)."""

import asyncio
import sys
import types
import unittest

import ground_truth
from support import Case, RECOVERED


def leaf():
    pass


def count(n):
    for i in range(n):
        leaf()
        yield i
    return "done"


def delegate(n):
    return (yield from count(n))


def careful():
    try:
        yield 1
        yield 2
    except ValueError:
        leaf()
        yield 3
    finally:
        leaf()


@types.coroutine
def pause():
    return (yield "paused")


async def add(a, b):
    await pause()
    return a + b


async def twice():
    return await add(1, 2) + await add(3, 4)


async def stream(n):
    for i in range(n):
        await pause()
        yield i


async def collect():
    seen = []
    async for i in stream(2):
        seen.append(i)
    return seen


def drive(coroutine):
    """Runs a coroutine to its end."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value


class Generators(Case):
    def check(self, work, text):
        """Compares the Python calls below WORK."""
        recording = self.record(work)
        self.assertIsNone(self.error)
        work = recording.of(work)
        self.assert_outline(work, text, python_only=True)
        self.assertEqual([c for _, c in work.walk() if RECOVERED in c.flags], [])
        self.assertEqual(recording.stats["events_repaired"], 0)
        return recording

    def test_each_resume_is_a_span(self):
        def work():
            for _ in count(2):
                leaf()
        self.check(work, """
            work
              count
                leaf
              leaf
              count
                leaf
              leaf
              count
            """)

    def test_the_line_is_where_the_generator_resumed(self):
        def generate():
            yield 1
            yield 2

        def work():
            return list(generate())
        recording = self.record(work)
        first = generate.__code__.co_firstlineno
        lines = [call.args.get("line", first) for call in recording.all(generate)]
        self.assertEqual(len(lines), 3)
        self.assertTrue(all(first <= line <= first + 2 for line in lines), lines)

    def test_yield_from(self):
        def work():
            return list(delegate(2))
        self.check(work, """
            work
              delegate
                count
                  leaf
              delegate
                count
                  leaf
              delegate
                count
            """)

    def test_values_go_both_ways(self):
        def echo():
            got = yield "ready"
            while got:
                got = yield got * 2
            return "end"

        def work():
            g = echo()
            seen = [next(g), g.send(2), g.send(3)]
            try:
                g.send(0)
            except StopIteration as stop:
                return seen + [stop.value]
        self.check(work, "work\n" + "  echo\n" * 4)
        self.assertEqual(self.result, ["ready", 4, 6, "end"])

    def test_throw(self):
        def work():
            g = careful()
            seen = [next(g), g.throw(ValueError())]
            try:
                g.throw(KeyError())
            except KeyError:
                seen.append("key error")
            return seen
        self.check(work, """
            work
              careful
              careful
                leaf
              careful
                leaf
            """)
        self.assertEqual(self.result, [1, 3, "key error"])

    def test_lines(self):
        """The line at which each resumes, relative to the function's first line. A new generator has no line."""
        def work():
            g = careful()
            next(g)
            next(g)
            g.throw(ValueError())
            list(g)
            both = twice()
            both.send(None)
            both.send(None)
            self.assertRaises(StopIteration, both.send, None)
        for calls in self.record(work), self.record(work):
            def lines(function):
                first = function.__code__.co_firstlineno
                return [c.args.get("line", first) - first for c in calls.all(function)]
            self.assertEqual(lines(careful), [0, 2, 3, 6])
            self.assertEqual(lines(twice), [0, 1, 1])

    def test_throw_into_one_that_has_not_begun(self):
        def work():
            try:
                count(1).throw(ValueError("early"))
            except ValueError as error:
                return str(error)
        self.record(work)
        self.assertEqual(self.result, "early")

    def test_close(self):
        kept = []
        def work():
            g = careful()
            next(g)
            g.close()
            count(3).close()
            h = count(3)
            next(h)
            if sys.version_info < (3, 11):
                kept.append(h)  # 3.10 reports the close in a del to a C hook, but not to a Python hook
            del h
        recording = self.record(work)
        self.assertEqual(recording.count(careful), 2)
        self.assertEqual(recording.all(careful)[1].below(), ["leaf"])
        # Whether a generator that has not begun, or has no handler, is run to be closed differs between micro
        # versions.
        truth = ground_truth.Truth()
        truth.record(work)
        expected, = (ground_truth.below(t, "work") for t in truth.threads.values())
        self.assertEqual(recording.of(work).labels(), expected)
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_throw_through_yield_from(self):
        def inner():
            try:
                yield 1
            finally:
                leaf()

        def outer():
            try:
                yield from inner()
            except ValueError:
                yield "caught"

        def work():
            g = outer()
            return next(g), g.throw(ValueError())
        self.check(work, """
            work
              outer
                inner
              inner
                leaf
              outer
            """)  # the interpreter throws directly into the innermost generator
        self.assertEqual(self.result, (1, "caught"))

    def test_exceptions_inside(self):
        def fails():
            yield 1
            leaf()
            raise ValueError("inside")

        def work():
            try:
                return list(fails())
            except ValueError as error:
                return str(error)
        self.check(work, """
            work
              fails
              fails
                leaf
            """)
        self.assertEqual(self.result, "inside")

    def test_generators_that_resume_each_other(self):
        def ping(n):
            for i in range(n):
                yield i

        def pong(g):
            for i in g:
                leaf()
                yield i

        def work():
            return sum(pong(pong(ping(1))))
        self.check(work, """
            work
              pong
                pong
                  ping
                  leaf
                leaf
              pong
                pong
                  ping
            """)

    def test_coroutines(self):
        def work():
            return drive(twice())
        self.check(work, """
            work
              drive
                twice
                  add
                    pause
                twice
                  add
                    pause
                  add
                    pause
                twice
                  add
                    pause
            """)
        self.assertEqual(self.result, 10)

    def test_async_generators(self):
        def work():
            return drive(collect())
        self.check(work, """
            work
              drive
                collect
                  stream
                    pause
                collect
                  stream
                    pause
                  stream
                    pause
                collect
                  stream
                    pause
                  stream
            """)
        self.assertEqual(self.result, [0, 1])

    def test_async_generators_closed_and_thrown_into(self):
        async def guarded():
            try:
                yield 1
                yield 2
            except ValueError:
                yield 3
            finally:
                leaf()

        async def use():
            g = guarded()
            seen = [await g.__anext__(), await g.athrow(ValueError())]
            await g.aclose()
            return seen

        def work():
            return drive(use())
        recording = self.record(work)
        self.assertEqual(self.result, [1, 3])
        self.assertEqual(recording.count(guarded), 3)
        self.assertEqual(recording.count(leaf), 1)
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_asyncio(self):
        seen = []

        async def worker(name, queue):
            while True:
                item = await queue.get()
                if item is None:
                    return name
                await asyncio.sleep(0)
                leaf()
                seen.append(item)

        async def main():
            queue = asyncio.Queue()
            tasks = [asyncio.ensure_future(worker(i, queue)) for i in range(3)]
            for item in range(10):
                await queue.put(item)
            for _ in tasks:
                await queue.put(None)
            cancelled = asyncio.ensure_future(asyncio.sleep(10))
            await asyncio.sleep(0.001)
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
            try:
                await asyncio.wait_for(asyncio.Event().wait(), 0.001)
            except asyncio.TimeoutError:
                seen.append("timeout")
            return sorted(await asyncio.gather(*tasks))

        recording = self.record(lambda: asyncio.run(main()))
        self.assertEqual(self.result, [0, 1, 2])
        self.assertEqual(sorted(seen, key=str), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, "timeout"])
        self.assertEqual(recording.count(leaf), 10)
        self.assertTrue(all(c.parent.label == "worker" for c in recording.all(leaf)))
        self.assertGreaterEqual(recording.count(worker), 13)
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_open_generators_do_not_hold_up_a_stop(self):
        g = delegate(3)
        recording = self.record(lambda: next(g))
        self.assertEqual(recording.count(count), 1)
        recording = self.record(lambda: list(g))
        self.assertEqual(self.result, [1, 2])
        self.assertEqual(recording.count(count), 3)
        self.assertEqual([c for c in recording.all(count) if c.flags], [])


if __name__ == "__main__":
    unittest.main()
