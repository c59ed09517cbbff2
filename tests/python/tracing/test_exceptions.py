"""Exceptions: the call of each frame that an exception leaves ends there, and a pending exception is never
changed. A program has the same result with and without the tracer."""

import contextlib
import traceback
import unittest

from support import Case, RECOVERED, define


def leaf():
    pass


def fail(error=ValueError):
    raise error("on purpose")


def through(n):
    if n:
        through(n - 1)
    else:
        fail()


class Exceptions(Case):
    def check(self, work, text):
        recording = self.record(work)
        self.assertIsNone(self.error)
        self.assert_outline(recording.of(work), text)
        self.check_repairs(recording)
        return recording

    def check_repairs(self, recording):
        self.assertEqual([c for c in recording.calls if RECOVERED in c.flags], [])
        self.assertEqual(recording.stats["events_repaired"], 0)

    def same(self, work):
        """Checks that WORK returns the same with and without the tracer, with and without a filter."""
        expected = work()
        for options in ({}, {"exclude": __file__}, {"c_calls": False}, {"gc": True}):
            self.check_repairs(self.record(work, **options))
            self.assertIsNone(self.error)
            self.assertEqual(self.result, expected, options)
        return expected

    def test_through_python_frames(self):
        def work():
            try:
                through(2)
            except ValueError:
                leaf()
        self.check(work, """
            work
              through
                through
                  through
                    fail
              leaf
            """)

    def test_through_c_frames(self):
        def work():
            try:
                sorted([3, 2, 1], key=lambda x: fail())
            except ValueError:
                leaf()
            try:
                len(5)
            except TypeError:
                leaf()
            try:
                [].pop()
            except IndexError:
                leaf()
            try:
                {}.pop(*["missing"])
            except KeyError:
                leaf()
        recording = self.record(work)
        self.assertEqual(recording.of(work).outline()[:9], [
            "work", "  [sorted]", "    <lambda>", "      fail", "  leaf", "  [len]", "  leaf",
            "  [list.pop]", "  leaf"])
        self.assertEqual(recording.count("[dict.pop]"), 1)
        self.assertEqual(recording.of("[dict.pop]").below(), [])
        self.assertEqual([c.parent.label for c in recording.all(leaf)], ["work"] * 4)

    def test_that_leave_the_whole_program(self):
        recording = self.record(lambda: through(3))
        self.assertIsInstance(self.error, ValueError)
        frames = [frame.name for frame in traceback.extract_tb(self.error.__traceback__)]
        self.assertEqual(frames, ["record", "<lambda>"] + ["through"] * 4 + ["fail"])
        self.check_repairs(recording)
        self.assertEqual([c.flags for c in recording.all(through)], [frozenset()] * 4)

    def test_of_every_kind(self):
        class Odd(BaseException):
            pass

        def work():
            for kind in (Odd, KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration):
                try:
                    fail(kind)
                except BaseException as error:
                    assert type(error) is kind
        self.check(work, "work\n" + "  fail\n" * 5)

    def test_finally_and_exit(self):
        class Manager:
            def __init__(self, swallow):
                self.swallow = swallow

            def __enter__(self):
                return self

            def __exit__(self, kind, error, where):
                leaf()
                return self.swallow

        def inner():
            try:
                with Manager(False):
                    fail()
            finally:
                leaf()

        def work():
            with Manager(True):
                inner()
            leaf()
        self.check(work, """
            work
              __init__
              __enter__
              inner
                __init__
                __enter__
                fail
                __exit__
                  leaf
                leaf
              __exit__
                leaf
              leaf
            """)

    def test_replaced_in_flight(self):
        def replace():
            try:
                fail()
            finally:
                fail(KeyError)

        def work():
            try:
                replace()
            except KeyError as error:
                return type(error.__context__).__name__
        self.check(work, "work\n  replace\n    fail\n    fail")
        self.assertEqual(self.result, "ValueError")

    def test_in_flight_are_not_disturbed(self):
        def finals():
            seen = []
            try:
                try:
                    fail()
                finally:
                    seen += [len(str(n)) for n in range(3)]
                    leaf()
                    with contextlib.suppress(KeyError):
                        {}["none"]
            except ValueError as error:
                seen += [str(error), error.__context__, error.__cause__]
            return seen

        def chained():
            try:
                try:
                    fail()
                except ValueError as error:
                    leaf()
                    raise KeyError("second") from error
            except KeyError as error:
                return repr(error), repr(error.__cause__), error.__suppress_context__

        def closing():
            seen = []

            def generate():
                try:
                    yield 1
                except GeneratorExit:
                    leaf()
                    seen.append("closed")
                    raise
                finally:
                    sorted([2, 1], key=lambda x: leaf() or x)
                    seen.append("final")
            g = generate()
            next(g)
            try:
                fail()
            except ValueError:
                g.close()
                seen.append("still here")
            h = generate()
            next(h)
            try:
                h.throw(fail.__class__)
            except TypeError as error:
                seen.append(type(error).__name__)
            return seen

        def finalizers():
            seen = []

            class Final:
                def __del__(self):
                    leaf()
                    seen.append(len("x"))
            try:
                held = Final()
                fail()
            except ValueError as error:
                del held
                seen.append(str(error))
            return seen

        def exits():
            seen = []
            with contextlib.ExitStack() as stack:
                stack.callback(seen.append, 1)
                stack.enter_context(contextlib.suppress(ValueError))
                stack.push(lambda *error: seen.append(error[0].__name__))
                fail()
            return seen

        def looked_up():
            class Lazy:
                def __getattr__(self, name):
                    leaf()
                    raise AttributeError(name)
            return [hasattr(Lazy(), "a"), getattr(Lazy(), "b", 5), list(iter(map(len, ["ab"])))]

        for program in (finals, chained, closing, finalizers, exits, looked_up):
            with self.subTest(program.__name__):
                self.same(program)
        self.assertEqual(self.same(finals)[-3:], ["on purpose", None, None])

    def test_first_sight_of_a_function_in_a_handler(self):
        """Naming a function allocates, on 3.11 and before with an exception pending."""
        def work():
            seen = []
            for n in range(300):
                late = define(f"def late_{n}():\n try: raise KeyError({n})\n finally: len('x')",
                              f"late_{n}", f"<late {n}>")
                try:
                    late()
                except KeyError as error:
                    seen.append(error.args[0])
            return seen == list(range(300))
        self.assertTrue(self.same(work))
        recording = self.record(work)
        for n in range(300):
            self.assertEqual(recording.of(f"late_{n}").below(), ["[len]"])


if __name__ == "__main__":
    unittest.main()
