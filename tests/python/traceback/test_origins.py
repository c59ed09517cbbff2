"""kpytrace.traceback.origins: where objects were made."""

import gc
import pathlib
import pickle
import sys
import threading
import unittest
import weakref

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, TAG

from kpytrace import traceback as tb

WHY_SKIPPED = f"there is no backend for CPython {TAG} beside the plugin"


class Plain:
    pass


class WithInit:
    """Its text."""

    def __init__(self, value, *, more=0):
        self.value, self.more = value, more

    def __eq__(self, other):  # so it has no hash
        return True


class WithNew:
    def __new__(cls, value):
        made = super().__new__(cls)
        made.value = value
        return made


class Derived(WithInit):
    def __init__(self):
        super().__init__(3)


class Fails:
    def __init__(self):
        raise ValueError("on purpose")


class Slots:
    __slots__ = ("value",)


def make(cls, *args):
    return cls(*args)


@unittest.skipUnless(BACKEND.exists(), WHY_SKIPPED)
class Origins(unittest.TestCase):
    def names(self, made, count=1):
        return [frame["name"] for frame in tb.origins.of(made).symbolize()[:count]]

    def test_where_it_was_made(self):
        with tb.origins(WithInit, Plain) as origins:
            one, two = make(WithInit, 1), Plain()
        self.assertEqual(self.names(one, 2), ["make", self._testMethodName])
        self.assertEqual(self.names(two), [self._testMethodName])
        self.assertEqual((one.value, one.more), (1, 0))
        self.assertIs(origins.of(one), tb.origins.of(one))

    def test_restored(self):
        before = vars(WithInit)["__init__"]
        with tb.origins(WithInit, Plain):
            self.assertEqual(WithInit.__init__.__qualname__, before.__qualname__)
            self.assertIs(WithInit.__init__.__wrapped__, before)
        self.assertIs(vars(WithInit)["__init__"], before)
        self.assertNotIn("__init__", vars(Plain))
        self.assertIsNone(tb.origins.of(WithInit(1)))

    def test_restored_after_an_error(self):
        before = vars(WithInit)["__init__"]
        with self.assertRaises(KeyError), tb.origins(WithInit):
            raise KeyError
        self.assertIs(vars(WithInit)["__init__"], before)
        with self.assertRaises(TypeError), tb.origins(WithInit, set):
            self.fail("never")
        self.assertIs(vars(WithInit)["__init__"], before)

    def test_arguments(self):
        with tb.origins(WithInit, WithNew, Plain, Fails):
            self.assertEqual(WithInit(1, more=2).more, 2)
            self.assertEqual(WithNew(7).value, 7)
            self.assertRaises(TypeError, WithInit)
            self.assertRaises(TypeError, Plain, 1)
            self.assertRaises(ValueError, Fails)
        self.assertRaises(TypeError, Plain, 1)
        self.assertEqual(WithNew(7).value, 7)

    def test_derived(self):
        with tb.origins(WithInit):
            only_base = make(Derived)
        self.assertEqual(self.names(only_base, 2), ["__init__", "make"])
        with tb.origins(WithInit, Derived):
            both = make(Derived)
        self.assertEqual(self.names(both), ["make"])

    def test_weak(self):
        with tb.origins(Plain):
            made = Plain()
            dead = weakref.ref(made)
            held = len(tb._origins)
            del made
            gc.collect()
            self.assertIsNone(dead())
            self.assertEqual(len(tb._origins), held - 1)

    def test_a_reused_address_is_another_object(self):
        with tb.origins(Plain):
            number = id(Plain())
        for _ in range(1000):
            other = Plain()
            if id(other) == number:
                break
        self.assertIsNone(tb.origins.of(other))

    def test_unknown_objects(self):
        for made in (3, None, Plain(), Plain):
            self.assertIsNone(tb.origins.of(made))

    def test_what_can_not_be_watched(self):
        self.assertRaises(TypeError, tb.origins, 3)
        self.assertRaisesRegex(TypeError, "weak references", tb.origins, Slots)
        self.assertRaisesRegex(TypeError, "weak references", tb.origins, int)
        with self.assertRaisesRegex(TypeError, "can't be watched"):
            tb.origins(set).__enter__()

    def test_one_in_another(self):
        before = vars(WithInit)["__init__"]
        outer, inner = tb.origins(WithInit), tb.origins(WithInit)
        with outer:
            with inner:
                made = WithInit(1)
            self.assertEqual(self.names(made), [self._testMethodName])
            self.assertIsNotNone(tb.origins.of(WithInit(1)))
        self.assertIs(vars(WithInit)["__init__"], before)

    def test_ended_in_another_order(self):
        before = vars(WithInit)["__init__"]
        self.addCleanup(setattr, WithInit, "__init__", before)
        one, two = tb.origins(WithInit), tb.origins(WithInit)
        one.__enter__()
        two.__enter__()
        one.__exit__(None, None, None)
        self.assertIsNotNone(tb.origins.of(WithInit(1)))
        two.__exit__(None, None, None)
        self.assertIsNone(tb.origins.of(WithInit(1)))

    def test_used_twice_at_once(self):
        origins = tb.origins(Plain)
        with origins, self.assertRaises(RuntimeError):
            origins.__enter__()
        with origins:
            self.assertIsNotNone(origins.of(Plain()))

    def test_threads(self):
        found = []

        def work():
            objects = [make(Plain) for _ in range(200)]
            found.extend((self.names(one), one) for one in objects)
        with tb.origins(Plain):
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual([names for names, _ in found], [["make"]] * 800)

    def test_the_next_in_line_is_the_objects(self):
        class Base:
            def __init__(self):
                self.base = 1

        class Left(Base):
            pass

        class Right(Base):
            def __init__(self):
                super().__init__()
                self.right = 1

        class Both(Left, Right):
            pass

        with tb.origins(Left):
            made = Both()
        self.assertEqual(vars(made), {"base": 1, "right": 1})

    def test_pickling_is_as_before(self):
        with tb.origins(WithInit):
            made = pickle.loads(pickle.dumps(WithInit(5)))
        self.assertEqual(made.value, 5)


if __name__ == "__main__":
    unittest.main()
