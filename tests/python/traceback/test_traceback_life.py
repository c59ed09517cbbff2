"""Tracebacks and the lifetimes of code, threads, collections and processes."""

import gc
import pathlib
import sys
import threading
import unittest
import weakref

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, FREE_THREADED, TAG, run_python

from kpytrace import traceback as tb

WHY_SKIPPED = f"there is no backend for CPython {TAG} beside the plugin"


def make_function(name, lines=0, body="return gather()"):
    """Returns a function that dies with its last reference."""
    scope = {"gather": tb.gather}
    exec("\n" * lines + f"def {name}():\n    {body}\n", scope)
    return scope.pop(name)


def first(where):
    frame = where.symbolize()[0]
    return frame["name"], frame["line"]


@unittest.skipUnless(BACKEND.exists(), WHY_SKIPPED)
class Code(unittest.TestCase):
    def test_code_dies_on_time_and_is_still_known(self):
        function = make_function("short_lived", 7)
        where, code = function(), weakref.ref(function.__code__)
        self.assertIsNotNone(code())
        del function
        gc.collect()
        self.assertIsNone(code(), "a traceback keeps code alive")
        self.assertEqual(first(where), ("short_lived", 9))

    def test_a_reused_address_is_another_function(self):
        gathered, seen, again = [], set(), 0
        for i in range(500):
            function = make_function(f"f{i}", i % 50)
            gathered.append(function())
            again += id(function.__code__) in seen
            seen.add(id(function.__code__))
            del function
        self.assertEqual([first(where) for where in gathered],
                         [(f"f{i}", i % 50 + 2) for i in range(500)])
        if not again:
            self.skipTest("no address was used twice, as under a sanitizer")

    def test_a_reused_address_in_one_place_of_the_stack(self):
        """The same caller at the same instruction, and a callee at the same address."""
        found = []
        for i in range(200):
            found.append(make_function(f"g{i}")())
        self.assertEqual([first(where)[0] for where in found], [f"g{i}" for i in range(200)])
        self.assertEqual({where.symbolize()[1]["name"] for where in found}, {self._testMethodName})

    def test_a_callback_of_dying_code_may_gather(self):
        """torch's own unwinder hangs here: it frees code under its lock."""
        found = []
        kept = []
        for i in range(20):
            function = make_function(f"dying{i}")
            kept.append(function())
            weak = weakref.ref(function.__code__, lambda _: found.append(tb.gather()))
            kept.append(weak)
            del function
        gc.collect()
        kept.clear()
        tb.gather()
        tb.free_dead()
        self.assertEqual(len(found), 20)
        self.assertEqual({first(where)[0] for where in found}, {"<lambda>"})

    def test_a_finalizer_may_gather_and_symbolize(self):
        found = []

        class Loop:
            def __init__(self):
                self.me = self

            def __del__(self):
                found.append(tb.gather().symbolize()[0]["name"])
        for _ in range(10):
            Loop()
        gc.collect()
        self.assertEqual(found, ["__del__"] * 10)

    def test_collections_while_it_symbolizes(self):
        """A garbage collection inside symbolize runs finalizers that symbolize."""
        class Loop:
            def __init__(self):
                self.me = self

            def __del__(self):
                tb.symbolize([tb.gather()])
        self.addCleanup(gc.set_threshold, *gc.get_threshold())
        gathered = [make_function(f"h{i}")() for i in range(300)]
        gc.set_threshold(1)
        for _ in range(20):
            Loop()
            lists = tb.symbolize(gathered)
        self.assertEqual([frames[0]["name"] for frames in lists], [f"h{i}" for i in range(300)])


@unittest.skipUnless(BACKEND.exists(), WHY_SKIPPED)
class Objects(unittest.TestCase):
    def test_the_collector_knows_it(self):
        where = tb.gather()
        self.assertTrue(gc.is_tracked(where))
        self.assertTrue(any(one is where for one in gc.get_objects()))
        self.assertIn(tb.Traceback, gc.get_referents(where))
        self.assertNotIn(sys._getframe().f_code, gc.get_referents(where))
        words = where.symbolize()
        self.assertTrue(any(one is words for one in gc.get_referents(where)))

    def test_a_cycle_through_it_is_collected(self):
        where = tb.gather()
        where.symbolize().append(where)
        dead = weakref.ref(where)
        gc.disable()
        self.addCleanup(gc.enable)
        del where
        self.assertIsNotNone(dead())
        gc.collect()
        self.assertIsNone(dead())

    def test_it_dies_at_once_without_a_cycle(self):
        where = tb.gather()
        dead = weakref.ref(where)
        del where
        if FREE_THREADED:
            gc.collect()
        self.assertIsNone(dead())

    def test_memory_that_is_used_again_is_a_new_object(self):
        numbers, kept = set(), []
        for i in range(200):
            where = make_function(f"again{i}", body="return gather(skip=0)")()
            numbers.add(id(where))
            kept.append(weakref.ref(where))
            self.assertEqual(first(where)[0], f"again{i}")
            self.assertTrue(gc.is_tracked(where))
            del where
            self.assertIsNone(kept[-1]())
        many = [tb.gather() for _ in range(100)]
        self.assertEqual(len({id(where) for where in many}), 100)
        self.assertLessEqual({first(where)[0] for where in many},
                             {self._testMethodName, "<listcomp>"})
        if not FREE_THREADED:
            self.assertLess(len(numbers), 200, "this shows nothing")

    def test_no_frame_and_no_local_is_kept(self):
        class Local:
            pass

        def inside():
            local = Local()
            return tb.gather(), weakref.ref(local)
        where, local = inside()
        gc.collect()
        self.assertIsNone(local())
        self.assertEqual(first(where)[0], "inside")

    def test_references_are_counted(self):
        function = make_function("counted")
        kept = function()
        before = sys.getrefcount(function.__code__), sys.getrefcount(tb.Traceback)
        for _ in range(1000):
            tb.symbolize([function(), kept])
        gc.collect()
        after = sys.getrefcount(function.__code__), sys.getrefcount(tb.Traceback)
        self.assertLessEqual(after[0], before[0] + 5)
        self.assertLessEqual(after[1], before[1] + 5)

    def test_memory_is_given_back(self):
        def fill():
            gathered = []

            def down(n):
                gathered.append(tb.gather())
                if n:
                    down(n - 1)
            for _ in range(20):
                down(200)
            del gathered[:]
        fill()
        tb.free_dead()
        before = tb.stats()
        for _ in range(20):
            fill()
        tb.free_dead()
        after = tb.stats()
        self.assertLessEqual(after["bytes_held"], before["bytes_held"] * 1.1 + 65536)
        self.assertEqual(after["dead"], 0)

    def test_a_pending_exception_stays(self):
        with self.assertRaises(ZeroDivisionError) as caught:
            try:
                raise ZeroDivisionError("on purpose")
            finally:
                where = tb.gather()
                where.symbolize()
        self.assertIsNone(caught.exception.__context__)
        try:
            raise KeyError("x")
        except KeyError as error:
            tb.symbolize([tb.gather()])
            self.assertIs(sys.exc_info()[1], error)


@unittest.skipUnless(BACKEND.exists(), WHY_SKIPPED)
class Threads(unittest.TestCase):
    def test_each_has_its_own(self):
        found, go = {}, threading.Barrier(4)

        def in_thread(name):
            function = make_function(name)
            go.wait()
            for _ in range(200):
                where = function()
            found[name] = where
        threads = [threading.Thread(target=in_thread, args=(f"thread{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del threads
        gc.collect()
        for name, where in found.items():
            names = [frame["name"] for frame in where.symbolize()]
            self.assertEqual(names[:3], [name, "in_thread", "run"])
            self.assertNotIn(self._testMethodName, names)

    def test_all_at_once(self):
        """Gathers, frees and reads in several threads, which start and end."""
        wrong = []

        def down(n, name):
            return make_function(name)() if n == 0 else down(n - 1, name)

        def in_thread(number):
            kept = []
            for i in range(60):
                kept.append((f"t{number}_{i}", down(i % 17, f"t{number}_{i}")))
                if i % 7 == 0:
                    tb.free_dead(5)
                if i % 20 == 19:
                    lists = tb.symbolize([where for _, where in kept])
                    wrong.extend(name for (name, _), frames in zip(kept, lists)
                                 if frames[0]["name"] != name)
                    del kept[::2]
        for _ in range(5):
            threads = [threading.Thread(target=in_thread, args=(i,)) for i in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])

    def test_freed_in_another_thread(self):
        kept = [make_function(f"other{i}")() for i in range(100)]
        thread = threading.Thread(target=kept.clear)
        thread.start()
        thread.join()
        self.assertEqual(tb.free_dead(), 0)
        self.assertEqual(first(make_function("later")())[0], "later")


class Processes(unittest.TestCase):
    def run_code(self, code, expected):
        reply = run_python("-X", "dev", "-W", "ignore", "-c",
                           "from kpytrace import traceback as tb\n" + code)
        self.assertEqual((reply.returncode, reply.stdout, reply.stderr), (0, expected, ""))

    setUp = unittest.skipUnless(BACKEND.exists(), WHY_SKIPPED)(lambda self: None)

    def test_exit_with_live_tracebacks(self):
        self.run_code("""
import atexit, os, sys
class Late:
    # Python ends: what is gathered now may be empty, but what was can be read.
    def __del__(self, gather=tb.gather, symbolize=tb.symbolize, write=os.write, where=tb.gather()):
        names = [frame["name"] for frame in symbolize([gather(), where])[1]]
        write(1, repr(names).encode() + b"\\n")
sys.kept = [tb.gather() for _ in range(1000)]
late = Late()
atexit.register(lambda: print(tb.gather().symbolize()[0]["name"], flush=True))
""", "<lambda>\n['Late', '<module>']\n")

    def test_exit_while_a_thread_gathers(self):
        self.run_code("""
import threading
def work():
    kept = []
    while True:
        kept.append(tb.gather())
        began.set()
        if len(kept) > 100: tb.symbolize(kept); kept.clear()
began = threading.Event()
threading.Thread(target=work, daemon=True).start()
began.wait()
print("end")
""", "end\n")

    def test_exit_before_anything_is_gathered(self):
        self.run_code("print(tb.Traceback.__name__)", "Traceback\n")

    def test_fork(self):
        self.run_code("""
import os, threading
stop = []
def busy():
    while not stop:
        tb.symbolize([tb.gather() for _ in range(10)])
        tb.free_dead(3)
def parent():
    return tb.gather()
where = parent()
threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads: thread.start()
answers = []
for i in range(20):
    child = os.fork()
    if child == 0:
        def mine(): return tb.gather()
        good = (where.symbolize()[0]["name"] == "parent" and mine().symbolize()[0]["name"] == "mine"
                and "frames" not in tb.stats() and tb.free_dead() == 0)
        os._exit(0 if good else 1)
    answers.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.append(1)
for thread in threads: thread.join()
print(answers.count(0), where.symbolize()[0]["name"])
""", "20 parent\n")

    def test_fork_before_the_first_use(self):
        self.run_code("""
import os
child = os.fork()
if child == 0:
    os._exit(0 if tb.gather().symbolize()[0]["name"] == "<module>" else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), tb.gather().symbolize()[0]["name"])
""", "0 <module>\n")

    @unittest.skipIf(FREE_THREADED, "the module is another one there")
    def test_subinterpreters(self):
        """Subinterpreters that share the GIL: each has its own type, and the process has one tree."""
        self.run_code("""
import sys
try: import _interpreters as i
except ImportError: import _xxsubinterpreters as i
run = getattr(i, "exec", None) or i.run_string
kept = [tb.gather() for _ in range(50)]
for _ in range(3):
    made = i.create("legacy") if sys.version_info >= (3, 13) else i.create(isolated=False)
    failed = run(made, '''
import sys
from kpytrace import traceback as tb
def inside(): return tb.gather()
kept = [inside() for _ in range(50)]
print(tb.symbolize(kept)[0][0]["name"], flush=True)
sys.kept = kept
''')
    assert failed is None, failed
    i.destroy(made)
print(tb.symbolize(kept)[0][0]["name"] != "inside")
""", "inside\n" * 3 + "True\n")

    def test_threads_begin_at_once(self):
        """The object of the process is made once, by whichever thread is first."""
        self.run_code("""
import threading
go, found = threading.Barrier(8), []
def first():
    go.wait()
    found.append(tb.gather())
threads = [threading.Thread(target=first) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print([frames[0]["name"] for frames in tb.symbolize(found)] == ["first"] * 8)
""", "True\n")


if __name__ == "__main__":
    unittest.main()
