"""Watched calls: the host is called for each, with the object itself, and its answer is in the activity."""

import gc
import pathlib
import sys
import threading
import unittest
import weakref

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from host_case import HostCase, abi_host
from support import BEGAN_BEFORE, FREE_THREADED, WATCHED, define


class Module:
    def __init__(self, name):
        self.name = name

    def __call__(self, x):
        return self.forward(x)

    def forward(self, x):
        return x + len(self.name)


class Optimizer:
    def step(self):
        return 5


def plain():
    pass


class Watches(HostCase):
    def setUp(self):
        super().setUp()
        self.seen = []
        self.answers = {}
        self.watching = self.new_host(watched=self.on_watched)

    def on_watched(self, watch, instance, call_id):
        name = getattr(instance, "name", None)
        self.seen.append((watch, type(instance).__name__, name, call_id))
        return self.answers.get(name, 1000 + call_id)

    def record(self, work, *watches, **options):
        tracer = self.make(host=self.watching, watches=watches, **options)
        try:
            self.result = work()
        finally:
            tracer.stop()
        return tracer.recording()

    def watched(self, recording):
        """Returns (function, answer, call id) of the calls that are flagged as watched."""
        return [(c.function, c.args.value0, c.args.value1) for c in recording.calls
                if WATCHED in c.flags]

    def test_the_object_is_seen_and_the_answer_comes_back(self):
        a, b = Module("a"), Module("bb")
        self.answers = {"a": 7, "bb": 2**63 + 5}
        recording = self.record(lambda: [a(1), b(1), a(2)], (42, Module.__call__))
        self.assertEqual(self.result, [2, 3, 3])
        self.assertEqual(self.seen, [(42, "Module", "a", 1), (42, "Module", "bb", 2),
                                     (42, "Module", "a", 3)])
        self.assertEqual(self.watched(recording), [("__call__", 7, 1), ("__call__", 2**63 + 5, 2),
                                                   ("__call__", 7, 3)])
        self.assertEqual(recording.count(Module.forward), 3)
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_several_functions(self):
        a, o = Module("a"), Optimizer()
        recording = self.record(lambda: [a(1), o.step(), plain()], (1, Module.__call__),
                                (2, Optimizer.step), (3, plain))
        self.assertEqual([(w, t) for w, t, _, _ in self.seen],
                         [(1, "Module"), (2, "Optimizer"), (3, "NoneType")])
        self.assertEqual(self.watched(recording), [("__call__", 1001, 1), ("step", 1002, 2),
                                                   ("plain", 1003, 3)])

    def test_nested(self):
        class Outer(Module):
            def forward(self, x):
                return self.inner(x)
        outer = Outer("outer")
        outer.inner = Module("inner")
        recording = self.record(lambda: outer(1), (1, Module.__call__))
        self.assertEqual([name for _, _, name, _ in self.seen], ["outer", "inner"])
        first, second = (c for c in recording.calls if WATCHED in c.flags)
        self.assertEqual((first.args.value1, second.args.value1), (1, 2))
        self.assertGreater(second.depth, first.depth)

    def test_objects_are_not_kept(self):
        def work():
            refs = []
            for n in range(20):
                module = Module(str(n))
                module(n)
                refs.append(weakref.ref(module))
                del module
            return [ref() for ref in refs]
        self.record(work, (1, Module.__call__))
        self.assertEqual(self.result, [None] * 20)
        self.assertEqual([name for _, _, name, _ in self.seen], [str(n) for n in range(20)])

    def test_reused_addresses_of_objects(self):
        """Short-lived objects of two classes at one address: the host receives each as itself."""
        class Other(Module):
            pass

        def work():
            for n in range(100):
                (Module, Other)[n % 2](str(n))(1)
        self.record(work, (1, Module.__call__))
        self.assertEqual([(t, name) for _, t, name, _ in self.seen],
                         [(("Module", "Other")[n % 2], str(n)) for n in range(100)])

    def test_reused_addresses_of_code(self):
        """Watched functions die. Another function at the address of one of them is not watched."""
        names = [f"watched_{n}" for n in range(16)]  # several, so that the address of at least one is reused
        functions = [define(f"def {name}(): pass", name) for name in names]
        tracer = self.make(host=self.watching, watches=[(1, function) for function in functions])
        for function in functions:
            function()
        addresses = {id(function.__code__) for function in functions}
        del function, functions
        gc.collect()
        reused = 0
        for n in range(2000):
            other = define(f"def other_{n}(): pass", f"other_{n}")
            reused += id(other.__code__) in addresses
            other()
            del other
        tracer.stop()
        if not FREE_THREADED:  # it frees code later, and elsewhere
            self.assertGreater(reused, 0, "the test has no point otherwise")
        self.assertEqual(len(self.seen), len(names))
        self.assertEqual([c[0] for c in self.watched(tracer.recording())], names)

    def test_generators_and_exceptions(self):
        def generate(self):
            yield 1
            yield 2

        def fails(self):
            raise ValueError

        def work():
            total = sum(generate(Module("g")))
            try:
                fails(Module("f"))
            except ValueError:
                return total
        recording = self.record(work, (1, generate), (2, fails))
        self.assertEqual(self.result, 3)
        self.assertEqual((1, "Module", "g"), self.seen[0][:3])
        self.assertEqual(self.seen[-1][:3], (2, "Module", "f"))
        self.assertIn("fails", [f for f, _, _ in self.watched(recording)])

    def test_arguments_of_other_kinds(self):
        def star(*args):
            return args

        def keyword(*, me):
            return me

        def cell(me):
            return lambda: me

        def renamed(this, other=None):
            this = 5
            return this
        functions = [(1, star), (2, keyword), (3, cell), (4, renamed)]
        self.record(lambda: [star(Module("s")), keyword(me=Module("k")), cell(Module("c")),
                             renamed(Module("r"))], *functions)
        # A star argument and a keyword argument are not positional.
        self.assertEqual([row[:3] for row in self.seen],
                         [(1, "NoneType", None), (2, "NoneType", None), (3, "Module", "c"),
                          (4, "Module", "r")])

    def test_a_pending_exception_is_left_alone(self):
        a = Module("a")

        def work():
            seen = []
            try:
                try:
                    raise KeyError("first")
                finally:
                    seen.append(a(1))
            except KeyError as error:
                seen.append(error.args)
            return seen
        self.record(work, (1, Module.__call__))
        self.assertEqual(self.result, [2, ("first",)])

    def test_with_filters_bounds_and_threads(self):
        a = Module("a")

        def work():
            threads = [threading.Thread(target=lambda: [a(1) for _ in range(500)])
                       for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.answers = {"a": 9}
        recording = self.record(work, (1, Module.__call__), flags=abi_host.NO_C_CALLS)
        marked = self.watched(recording)
        self.assertEqual(len(marked), 1500)
        self.assertEqual({answer for _, answer, _ in marked}, {9})
        self.assertEqual(sorted(call_id for _, _, call_id in marked), list(range(1, 1501)))
        self.assertEqual(len(self.seen), 1500)

    def test_what_is_not_recorded_is_not_told(self):
        """An answer belongs to an activity. Without one the host is not called, and no other call gets the
        answer."""
        call = define("def call(self): return 1", "call", "<elsewhere>")

        def work():
            plain()
            call(Module("a"))
            plain()
        for options in ({"filters": [(abi_host.EXCLUDE, abi_host.FILE_PREFIX, "<elsewhere>")]},
                        {"max_depth": 1}):
            recording = self.record(work, (1, call), **options)
            self.assertEqual(self.seen, [])
            self.assertEqual(self.watched(recording), [])
            self.assertEqual(recording.count(work), 1)
            self.assertEqual(recording.stats["events_repaired"], 0)
        beside = self.make(host=self.watching, watches=[(2, call)])
        self.record(work, (1, call), max_depth=1)
        beside.stop()
        self.assertEqual([watch for watch, _, _, _ in self.seen], [2])
        self.assertEqual(len(self.watched(beside.recording())), 1)

    def test_every_tracer_hears_its_own(self):
        a = Module("a")
        first = self.make(host=self.watching, watches=[(1, Module.__call__)])
        second = self.make(host=self.watching, watches=[(2, Module.forward)])
        third = self.make()
        a(1)
        for tracer in (first, second, third):
            tracer.stop()
        self.assertEqual(sorted(w for w, _, _, _ in self.seen), [1, 2])
        self.assertEqual([f for f, _, _ in self.watched(first.recording())], ["__call__"])
        self.assertEqual([f for f, _, _ in self.watched(second.recording())], ["forward"])
        self.assertEqual(self.watched(third.recording()), [])

    def test_restarts_go_on_counting(self):
        a = Module("a")
        tracer = self.make(host=self.watching, watches=[(1, Module.__call__)])
        for _ in range(3):
            a(1)
            tracer.stop()
            a(1)
            tracer.restart()
        tracer.stop()
        self.assertEqual([call_id for _, _, _, call_id in self.seen], [1, 2, 3])
        self.assertEqual(self.watched(tracer.recording()),
                         [("__call__", 1000 + n, n) for n in (1, 2, 3)])

    def test_calls_that_are_open(self):
        """For calls that are open when the tracer starts, the host is called at the start, in every thread."""
        tracers, go, ready = [], threading.Event(), threading.Event()

        class Starting(Module):
            def forward(self, x):
                tracers.append(self.host.make(watches=[(1, Module.__call__)]))
                plain()
                return x

        class Waiting(Module):
            def forward(self, x):
                ready.set()
                go.wait()
                return x
        self.answers = {"starting": 5, "waiting": 6}
        Starting.host = self.watching
        other = threading.Thread(target=Waiting("waiting"), args=(1,))
        other.start()
        ready.wait()
        try:
            Starting("starting")(1)
        finally:
            go.set()
            other.join()
        tracers[0].stop()
        self.addCleanup(tracers[0].destroy)
        recording = tracers[0].recording()
        self.assertEqual(sorted(answer for _, answer, _ in self.watched(recording)), [5, 6])
        self.assertTrue(all(BEGAN_BEFORE in c.flags for c in recording.all(Module.__call__)))
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_in_a_ring(self):
        """An answer stays with its call when older calls are dropped."""
        a = Module("a")
        self.answers = {"a": 9}
        recording = self.record(lambda: [a(n) for n in range(8_000)], (1, Module.__call__),
                                ring_bytes=200_000, flags=abi_host.NO_C_CALLS)
        self.assertGreater(recording.stats["events_dropped"], 0)
        self.assertTrue(all(WATCHED in c.flags and c.args.value0 == 9
                            for c in recording.all(Module.__call__)), "open ones too")
        calls = [c for c in recording.all(Module.__call__) if BEGAN_BEFORE not in c.flags]
        self.assertGreater(len(calls), 1_000)
        self.assertEqual({(WATCHED in c.flags, c.args.value0) for c in calls}, {(True, 9)})
        ids = [c.args.value1 for c in calls]
        self.assertEqual(ids, sorted(set(ids)), "each has its own")
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_in_a_ring_beside_another_tracer(self):
        """At a new chunk of the ring, its host is called for the open calls, and may cause a collection, which the
        other tracer records. The call that filled the chunk is recorded after that, with a later time."""
        asked = []
        host = self.new_host(watched=lambda watch, instance, call_id: asked.append(1) or gc.collect(0) * 0)
        ring = self.make(host=host, watches=[(1, Module.__call__)], ring_bytes=200_000)
        other = self.make()
        other.register_gc_callback()

        def many(x):
            for _ in range(50_000):
                plain()

        module = Module("a")
        module.forward = many
        module(1)
        ring.stop()
        other.stop()
        self.assertGreater(len(asked), 10)
        self.assertEqual([t.recording().stats["events_repaired"] for t in (ring, other)], [0, 0])

    def test_every_chunk_boundary(self):
        """A call and its answer may be on different sides of the end of a chunk."""
        a = Module("a")

        def work():
            for n in range(3_000):
                a(n)
                for _ in range(n % 3):
                    plain()
        recording = self.record(work, (1, Module.__call__), flags=abi_host.NO_C_CALLS)
        self.assertEqual([call_id for _, _, call_id in self.watched(recording)],
                         list(range(1, 3_001)))
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_collections_within_the_callback(self):
        """Collections are recorded, and do not separate a call from its answer."""
        host = self.new_host(watched=lambda watch, instance, call_id: gc.collect() * 0 + 7)
        tracer = self.make(host=host, watches=[(1, plain)])
        tracer.register_gc_callback()
        for _ in range(5):
            plain()
        tracer.stop()
        for order in (abi_host.ORDER_THREAD, abi_host.ORDER_START):
            calls = [c.args for c in tracer.deliver(order).recording().all(plain)]
            self.assertEqual([(a.flags & abi_host.WATCHED_BIT, a.value0) for a in calls],
                             [(abi_host.WATCHED_BIT, 7)] * 5)
        self.assertEqual(tracer.stats()["events_repaired"], 0)

    def test_stop_within_the_callback(self):
        """The host may do anything there, also stop the tracer."""
        def on_watched(watch, instance, call_id):
            tracer.stop()
            return 5
        host = self.new_host(watched=on_watched)
        tracer = self.make(host=host, watches=[(1, plain)])
        plain()
        plain()
        self.assertEqual(tracer.stats()["state"], 2)


if __name__ == "__main__":
    unittest.main()
