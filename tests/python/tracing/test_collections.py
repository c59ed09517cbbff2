"""Garbage collections: events like calls, with their results, while a tracer records them (T34)."""

import gc
import unittest

from host_case import HostCase, abi_host
import kpytrace
from support import Case

try:
    import _testcapi
except ImportError:
    _testcapi = None


class Node:
    pass


def make_garbage(count):
    for _ in range(count):
        a, b = Node(), Node()
        a.other, b.other = b, a


def ours():
    """Returns how many of gc.callbacks belong to kpytrace."""
    return sum("kpytrace" in repr(callback) for callback in gc.callbacks)


class Collections(Case):
    def setUp(self):
        super().setUp()
        self.addCleanup(gc.enable)
        gc.collect()
        gc.disable()

    def test_generation_and_counts(self):
        def work():
            make_garbage(50)
            gc.collect(0)
            gc.collect(1)
            make_garbage(7)
            gc.collect()
        recording = self.record(work, gc=True)
        events = [c for c in recording.calls if c.kind == "gc"]
        self.assertEqual([c.args["generation"] for c in events][-1], 2)
        self.assertEqual(len(events), 3)
        self.assertGreaterEqual(sum(c.args["collected"] for c in events), 2 * 57)
        self.assertEqual({c.args["uncollectable"] for c in events}, {0})
        self.assertTrue(all(c.parent.label == "[collect]" for c in events))
        self.assertTrue(all(c.duration > 0 for c in events))

    @unittest.skipUnless(hasattr(_testcapi, "with_tp_del"), "Python has no such objects any more")
    def test_what_cannot_be_collected(self):
        class Stuck:
            def __tp_del__(self):
                pass
        kind = _testcapi.with_tp_del(Stuck)

        def work():
            for _ in range(3):
                stuck = kind()
                stuck.self = stuck
            del stuck
            gc.collect()
        recording = self.record(work, gc=True)
        for stuck in gc.garbage:
            stuck.self = None
        gc.garbage.clear()
        event, = (c for c in recording.calls if c.kind == "gc")
        self.assertGreaterEqual(event.args["uncollectable"], 3)

    def test_what_runs_in_a_collection_is_within(self):
        seen = []

        class Final:
            def __del__(self):
                seen.append(len("x"))

        def work():
            a = Final()
            a.self = a
            del a
            gc.collect()
        recording = self.record(work, gc=True)
        self.assertEqual(seen, [1])
        self.assertEqual(recording.of("__del__").parent.kind, "gc")
        self.assertEqual(recording.of("__del__").below(), ["[len]", "[list.append]"])

    def test_automatic_ones(self):
        def work():
            gc.enable()
            make_garbage(30_000)
            gc.disable()
        recording = self.record(work, gc=True)
        events = [c for c in recording.calls if c.kind == "gc"]
        self.assertGreater(len(events), 0)
        self.assertGreater(sum(c.args["collected"] for c in events), 1000)

    def test_without_the_option_there_are_none(self):
        recording = self.record(gc.collect)
        self.assertEqual([c for c in recording.calls if c.kind == "gc"], [])
        with kpytrace.trace():
            self.assertEqual(ours(), 0)

    def test_the_callback_is_there_while_it_runs(self):
        before = list(gc.callbacks)
        with kpytrace.trace(gc=True):
            self.assertEqual(ours(), 1)
        self.assertEqual(gc.callbacks, before)

    def test_the_program_empties_the_callbacks(self):
        before = list(gc.callbacks)
        with kpytrace.trace(gc=True):
            gc.callbacks.clear()
            gc.collect()
        gc.callbacks[:] = before
        with kpytrace.trace(gc=True):
            self.assertEqual(ours(), 1)
        self.assertEqual(gc.callbacks, before)


class Registered(HostCase):
    def collections(self, tracer):
        delivery = tracer.deliver()
        return [(a.value0, a.value1, a.value2) for a in delivery.activities
                if a.kind == abi_host.KIND_GC]

    def setUp(self):
        super().setUp()
        self.addCleanup(gc.enable)
        gc.collect()
        gc.disable()

    def test_again_is_no_change(self):
        tracer = self.make()
        gc.collect()
        for _ in range(3):
            tracer.register_gc_callback()
            self.assertEqual(ours(), 1)
        make_garbage(5)
        gc.collect()
        tracer.stop()
        self.assertEqual(ours(), 0)
        (generation, collected, uncollectable), = self.collections(tracer)
        self.assertEqual((generation, uncollectable), (2, 0))
        self.assertGreaterEqual(collected, 10)

    def test_restart_restores_it(self):
        tracer = self.make()
        tracer.register_gc_callback()
        gc.collect()
        tracer.stop()
        gc.collect()
        self.assertEqual(ours(), 0)
        tracer.restart()
        self.assertEqual(ours(), 1)
        gc.collect()
        tracer.stop()
        self.assertEqual(len(self.collections(tracer)), 2)

    def test_requested_while_stopped(self):
        tracer = self.make()
        tracer.stop()
        tracer.register_gc_callback()
        self.assertEqual(ours(), 0)
        tracer.restart()
        gc.collect()
        tracer.stop()
        self.assertEqual(len(self.collections(tracer)), 1)

    def test_each_tracer_for_itself(self):
        first, second, third = self.make(), self.make(), self.make()
        first.register_gc_callback()
        gc.collect()
        third.register_gc_callback()
        gc.collect()
        first.stop()
        gc.collect()
        self.assertEqual(ours(), 1)
        second.stop()
        third.stop()
        self.assertEqual(ours(), 0)
        self.assertEqual([len(self.collections(t)) for t in (first, second, third)], [2, 0, 2])

    def test_the_last_that_wants_it_ends(self):
        """The last tracer that records collections ends, while another tracer runs that does not."""
        plain, wants = self.make(), self.make()
        wants.register_gc_callback()
        wants.stop()
        gc.collect()
        plain.stop()
        self.assertEqual(ours(), 0)
        self.assertEqual(self.collections(plain), [])


if __name__ == "__main__":
    unittest.main()
