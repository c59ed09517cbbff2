"""kpytrace keeps nothing alive: functions, code, classes and instances die as they would without it."""

import gc
import sys
import types
import unittest
import weakref

from host_case import Host
import kpytrace
from support import Case, FREE_THREADED, define

SOURCE = """
class Made:
    def method(self): return len("x")
    def __len__(self): return 5
    @classmethod
    def build(cls): return cls()
    def generate(self):
        yield 1
        yield 2
def made():
    return (lambda: sorted([2, 1], key=lambda x: -x))()
"""


class Lifetimes(Case):
    def setUp(self):
        super().setUp()
        self.addCleanup(gc.enable)
        gc.collect()
        gc.disable()

    def test_functions_and_code(self):
        with kpytrace.trace(self.path):
            scope = {}
            made = define(SOURCE, "made", scope=scope)
            made()
            dead = [weakref.ref(made), weakref.ref(made.__code__)]
            del made, scope["made"]
            if FREE_THREADED:  # there the collector counts these references
                gc.collect()
            self.assertEqual([ref() for ref in dead], [None, None])

    def test_instances_classes_and_generators(self):
        with kpytrace.trace(self.path, gc=True):
            made = define(SOURCE, "Made")
            instance = made.build()
            instance.method()
            len(instance)
            generator = instance.generate()
            next(generator)
            dead = [weakref.ref(instance), weakref.ref(generator)]
            del instance, generator
            self.assertEqual([ref() for ref in dead], [None, None], "on time, without a collection")
            dead = [weakref.ref(made), weakref.ref(made.method), weakref.ref(made.method.__code__)]
            del made
            gc.collect()
            self.assertEqual([ref() for ref in dead], [None, None, None])

    def test_self_of_c_methods(self):
        class List(list):
            pass
        with kpytrace.trace(self.path):
            items = List()
            items.append(5)
            items.sort(key=lambda x: x)
            dead = weakref.ref(items)
            del items
            self.assertIsNone(dead())
            kind = type("Gone", (list,), {})
            kind().append(5)
            dead = weakref.ref(kind)
            del kind
            gc.collect()
            self.assertIsNone(dead())

    def test_arguments_and_results(self):
        class Thing:
            pass

        def take(thing):
            return thing
        with kpytrace.trace(self.path):
            thing = Thing()
            take(thing)
            id(thing)
            dead = weakref.ref(thing)
            del thing
            self.assertIsNone(dead())

    def test_exceptions_and_their_frames(self):
        class Odd(Exception):
            pass
        dead = []

        def fail():
            error = Odd()
            dead.append(weakref.ref(error))
            try:
                raise error
            finally:
                del error
        with kpytrace.trace(self.path):
            for _ in range(3):
                try:
                    fail()
                except Odd:
                    pass
            self.assertEqual([ref() for ref in dead], [None] * 3)

    def test_references_are_not_leaked(self):
        def leaf():
            pass

        def work():
            for _ in range(2000):
                leaf()
                len("")
                try:
                    [].pop()
                except IndexError:
                    pass
            return list(i for i in range(100))
        watched = [leaf, leaf.__code__, work.__code__, len, list, IndexError, None, True, sys]
        self.record(work)
        before = [sys.getrefcount(thing) for thing in watched]
        for _ in range(3):
            self.record(work)
        after = [sys.getrefcount(thing) for thing in watched]
        for thing, old, new in zip(watched, before, after):
            self.assertLess(abs(new - old), 200, thing)

    def test_objects_do_not_pile_up(self):
        def work():
            for n in range(200):
                define(f"def f_{n}(): pass", f"f_{n}")()
            gc.collect()

        def codes():
            gc.collect()
            return sum(isinstance(o, (types.FunctionType, types.FrameType))
                       for o in gc.get_objects())
        self.record(work)
        before = codes()
        self.record(work)
        self.assertLess(codes() - before, 50)

    def test_a_deep_walk_keeps_no_frame(self):
        class Thing:
            pass
        dead = []

        def down(n):
            thing = Thing()
            dead.append(weakref.ref(thing))
            if n:
                down(n - 1)
            else:
                kpytrace.start(self.path)
        down(100)
        self.assertEqual([ref() for ref in dead if ref()], [])
        kpytrace.stop()

    def test_memory_is_given_back(self):
        """Destroying a tracer frees its memory."""
        def work():
            for _ in range(10_000):
                len("")
        host = Host()
        tracer = host.make()
        work()
        tracer.stop()
        self.assertGreater(tracer.stats()["bytes_held"], 10_000 * 16)
        tracer.destroy()
        host.detach()


if __name__ == "__main__":
    unittest.main()
