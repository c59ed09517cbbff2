"""The lines of callers, which a host that marks points receives, compared with the line that Python itself reports
at each call."""

import sys
import threading
import unittest

from host_case import HostCase, WITHOUT_HOST, abi_host


def short():
    pass


class Callers(HostCase):
    def setUp(self):
        super().setUp()
        self.lines = []
        self.tracer = self.make(filters=WITHOUT_HOST)

    def where(self, *ignored):
        self.lines.append(sys._getframe(1).f_lineno)
        return self

    __enter__ = __next__ = where

    def __exit__(self, *exception):
        self.where()

    def __iter__(self):
        return self

    @property
    def attribute(self):
        return sys._getframe(1).f_lineno

    def every_way(self):
        """Calls a function in every way. The calls of where() are compared."""
        self.where()
        self.where(
            1,
            self.where(),
        ).where()
        with self:
            self.where()
        for _, item in zip(range(2), self):
            item.where()
        [self.where() for _ in range(2)]
        sorted([2, 1, 3],
               key=lambda item: self.where(item) and 0)
        list(map(self.where,
                 [1, 2]))
        exec("\n\nself.where()", {"self": self})
        try:
            self.where(1 / 0)
        except ZeroDivisionError: self.where()
        finally: self.where()

    def delivered(self):
        self.tracer.stop()
        delivery = self.tracer.deliver(abi_host.ORDER_START)
        return [(delivery.names[a.name].function.text, a.value2) for a in delivery.activities]

    def of(self, function, found):
        return [line for name, line in found if name == function]

    def test_python_functions(self):
        self.tracer.mark()
        self.every_way()
        self.assertEqual(self.of("where", self.delivered()), self.lines)
        self.assertGreater(len(set(self.lines)), 12)

    def test_not_without_points(self):
        self.every_way()
        self.assertEqual(set(self.of("where", self.delivered())), {0})

    def test_c_functions(self):
        def body():
            len([])
            (ord(
                "a"),
             abs(1))
        self.tracer.mark()
        body()
        first = body.__code__.co_firstlineno
        found = dict(self.delivered())
        self.assertEqual([found[name] - first for name in ("len", "ord", "abs")], [1, 2, 4])

    def test_generators(self):
        def generate():
            yield
            yield

        def body():
            one = generate()
            next(one)
            next(
                one)
            one.close()
        self.tracer.mark()
        body()
        first = body.__code__.co_firstlineno
        found = self.of("generate", self.delivered())
        self.assertEqual([line - first for line in found[:2]], [2, 3])

    def test_properties(self):
        def body():
            return [self.attribute,
                    self.attribute]
        self.tracer.mark()
        self.assertEqual(body(), self.of("attribute", self.delivered()))

    def test_other_threads(self):
        """A mark also affects threads that already record."""
        ready, go = threading.Event(), threading.Event()

        def work():
            ready.set()
            go.wait()
            self.where()
        thread = threading.Thread(target=work)
        thread.start()
        ready.wait()
        self.tracer.mark()
        go.set()
        thread.join()
        self.assertEqual(self.of("where", self.delivered()), self.lines)

    def test_functions_that_come_and_go(self):
        """Functions at one address, with different lines."""
        self.tracer.mark()
        for n in range(300):
            space = {"self": self}
            exec("\n" * n + "def call():\n self.where()", space)
            space["call"]()
        self.assertEqual(self.of("where", self.delivered()), self.lines)
        self.assertEqual(self.lines, list(range(2, 302)))

    def test_with_a_guard(self):
        """The guard detects short calls, also with the lines of callers between their events."""
        self.tracer = self.make(overhead_permille=100)
        self.tracer.mark()
        for _ in range(30_000):
            short()
        self.tracer.stop()
        self.assertEqual(self.tracer.stats()["functions_disabled"], 1)

    def test_watched_calls(self):
        host = self.new_host(watched=lambda watch, instance, call_id: 5)
        self.tracer = self.make(host=host, filters=WITHOUT_HOST,
                                watches=[(7, Callers.where)])
        self.tracer.mark()
        self.every_way()
        self.assertEqual(self.of("where", self.delivered()), self.lines)


if __name__ == "__main__":
    unittest.main()
