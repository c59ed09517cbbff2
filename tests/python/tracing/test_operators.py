"""Operators and ranges of a host, among the calls of its threads."""

import ctypes
import threading
import unittest

import support
import host_case
from host_case import abi_host
from abi_host import DELIVER_PARTS, DELIVER_RANGES, KIND_OPERATOR, KIND_RANGE_BEGIN, KIND_RANGE_END
from operator_case import NATIVE, OperatorCase


def as_python_call(prototype, function):
    """Returns FUNCTION as one that is called with the GIL held."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    return ctypes.PYFUNCTYPE(prototype._restype_, *prototype._argtypes_)(address)


def inner():
    return len("")


class Operators(OperatorCase):
    def test_it_is_a_call_among_the_calls(self):
        tracer = self.start()
        name = tracer.name_operator("aten::add")

        def outer():
            token = tracer.begin_operator(name)
            inner()
            tracer.end_operator(token)
            inner()
        outer()
        recording = self.stop()
        self.assertEqual(recording.of(outer).python_outline(), ["outer", "  aten::add", "    inner", "  inner"])
        operator = recording.of(outer).children[0]
        while operator.function != "aten::add":  # calls of ctypes are around it
            operator = operator.children[0] if operator.children else recording.all("aten::add")[0]
        self.assertEqual(operator.args.kind, KIND_OPERATOR)
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_what_is_known_of_it(self):
        tracer = self.start()
        add, node = tracer.name_operator("aten::add"), tracer.name_operator("AddBackward0", abi_host.SCOPE_BACKWARD)
        self.assertEqual(tracer.name_operator("aten::add"), add)
        self.assertNotEqual(tracer.name_operator("aten::add", abi_host.SCOPE_BACKWARD), add)
        known = [(0, 0, 0), (1, 0, 0), (8, 2, 5), (2**32 - 1, 2**20 - 1, 2**64 - 1), (2**32, 2**20, 1),
                 (2**63, 2**40, 3)]
        for sequence_plus_1, forward_thread, record_id in known:
            tracer.end_operator(tracer.begin_operator(
                node, sequence_plus_1=sequence_plus_1, forward_thread=forward_thread, record_id=record_id))
        tracer.stop()
        for order in abi_host.ORDER_THREAD, abi_host.ORDER_TIME, abi_host.ORDER_START:
            with self.subTest(order=order):
                delivery = tracer.deliver(order=order)
                nodes = [a for a in delivery.activities
                         if a.kind == KIND_OPERATOR and a.phase != abi_host.PHASE_BEGIN]
                self.assertEqual([(a.value0, a.value1, a.value2) for a in nodes], known)
                self.assertEqual({delivery.names[a.name].scope for a in nodes}, {abi_host.SCOPE_BACKWARD})

    def test_what_is_refused(self):
        tracer = self.start()
        name = tracer.name_operator("aten::add")
        for fields in ({}, {"name": name, "text": b"x"}, {"text": b"x", "scope": 16}):
            with self.subTest(fields=fields), self.assertRaises(abi_host.Failed) as caught:
                tracer.begin_operator(**fields)
            self.assertEqual(caught.exception.status, -1)
        with self.assertRaises(abi_host.Failed) as caught:
            tracer.begin_operator(name, flags=2)
        self.assertEqual(caught.exception.status, -7)
        for text, scope in (("", 0), ("x", 16)):
            with self.assertRaises(abi_host.Failed):
                tracer.name_operator(text, scope)

    def test_an_operator_that_ends_in_a_later_run(self):
        tracer = self.start()
        name = tracer.name_operator("aten::add")
        token = tracer.begin_operator(name)
        tracer.stop()
        self.assertEqual(tracer.begin_operator(name), 0)
        tracer.restart()
        tracer.end_operator(token)
        recording = self.stop()
        operator, = recording.all("aten::add")
        self.assertIn(support.ENDED_BY_STOP, operator.flags)
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_an_old_end_after_a_new_begin(self):
        tracer = self.start()
        name = tracer.name_operator("aten::add")
        old = tracer.begin_operator(name)
        tracer.stop()
        tracer.restart()
        new = tracer.begin_operator(name)
        self.assertNotEqual(old, new)
        tracer.end_operator(old)
        self.assertNotEqual(tracer.begin_operator(name), 0)
        tracer.end_operator(new)
        tracer.end_operator(new)
        self.assertEqual(self.stop().stats["events_repaired"], 0)

    def test_the_end_of_none(self):
        tracer = self.start()
        tracer.end_operator(tracer.begin_operator(tracer.name_operator("aten::add")))
        tracer.end_operator(0)
        self.assertEqual(self.stop().stats["events_repaired"], 0)

    def test_a_destroyed_tracer_on_a_thread_that_has_recorded_for_it(self):
        tracer, other = self.start(), self.make(filters=host_case.WITHOUT_HOST)
        name = tracer.name_operator("aten::add")
        token = tracer.begin_operator(name)
        other.end_operator(other.begin_operator(name))
        tracer.stop()
        tracer.destroy()
        for use in (lambda: tracer.begin_operator(name), lambda: tracer.end_operator(token)):
            with self.assertRaises(abi_host.Failed) as caught:
                use()
            self.assertEqual(caught.exception.status, -4)
        other.end_operator(other.begin_operator(name))
        other.stop()
        self.assertEqual(len(other.recording().all("aten::add")), 2)

    def test_threads_without_python(self):
        self.start()
        self.assertEqual(self.run_native(threads=3, rounds=1000, depth=3), 3 * (1 + 2 * 1000))
        recording = self.stop()
        threads = [t for t in recording.threads if t.name == "operators"]
        self.assertEqual(len(threads), 3)
        for thread in threads:
            root, = thread.roots
            self.assertEqual(root.outline()[:5], ["op0", "  op1", "    op2", "  op1", "    op2"])
            self.assertEqual(len(thread.calls), 2001)
        self.assertEqual(recording.stats["events_repaired"], 0)


class EndsElsewhere(OperatorCase):
    """Operators and ranges that end on another thread, as those of TorchScript do that wait."""

    def run_far(self, rounds=1, other=0, plain=0, **fields):
        if "text" in fields:
            fields["text"] = abi_host.Str.of(fields["text"])
        op = abi_host.sized(abi_host.Operator, **fields)
        self.assertEqual(NATIVE.native_far_operators(ctypes.addressof(self.tracer.ops), self.tracer.handle,
                                                     ctypes.addressof(op), rounds, other, plain), rounds)

    def test_an_operator_ends_at_the_next_event_of_its_thread(self):
        tracer = self.start()
        far, add = tracer.name_operator("aten::far"), tracer.name_operator("aten::add")

        def work():
            for _ in range(3):
                self.run_far(name=far)
                inner()
                tracer.end_operator(tracer.begin_operator(add))
        work()
        recording = self.stop()
        operators = recording.all("aten::far")
        self.assertEqual([(len(call.children), call.flags) for call in operators], [(0, frozenset())] * 3)
        self.assertEqual(recording.stats["events_repaired"], 0)

    def far_ones_in_a_ring(self, **fields):
        """Returns how many of 4,000 that have ended are in a ring that holds only later chunks."""
        tracer = self.start(ring_bytes=256 << 10, on_full=abi_host.FULL_RING)
        # All in one call, whose end would close what is open in it.
        self.run_far(4_000, tracer.name_operator("aten::add"), 50_000, **fields)
        tracer.stop()
        found = tracer.deliver(flags=DELIVER_RANGES)
        names = [found.names[a.name].function.text for a in found.activities]
        self.assertGreater(names.count("aten::add"), 5_000)
        return names.count("far")

    def test_chunks_do_not_carry_on_operators_that_have_ended(self):
        name = self.start().name_operator("far")
        self.assertEqual(self.far_ones_in_a_ring(name=name), 0)

    def test_chunks_do_not_carry_on_ranges_that_have_ended(self):
        self.assertEqual(self.far_ones_in_a_ring(text=b"far"), 0)

    def test_a_range_has_its_time(self):
        tracer = self.start()
        self.run_far(text=b"far")
        inner()
        tracer.stop()
        delivery = tracer.deliver(order=abi_host.ORDER_TIME, flags=DELIVER_RANGES | DELIVER_PARTS)
        order = [a.kind if a.kind in (KIND_RANGE_BEGIN, KIND_RANGE_END) else delivery.names[a.name].function.text
                 for a in delivery.activities if a.phase != abi_host.PHASE_END]
        self.assertEqual(order.count(KIND_RANGE_END), 1)
        self.assertLess(order.index(KIND_RANGE_END), order.index("inner"))
        self.assertEqual(tracer.stats()["events_repaired"], 0)

    def test_a_range_of_a_thread_that_has_left_the_ring(self):
        tracer = self.start(ring_bytes=64 << 10, on_full=abi_host.FULL_RING)
        tokens = []
        thread = threading.Thread(target=lambda: tokens.append(tracer.begin_operator(text=b"far")))
        thread.start()
        thread.join()
        for _ in range(50_000):
            inner()
        tracer.end_operator(tokens[0])
        self.assertEqual([t.name for t in self.stop().threads if t.calls], ["MainThread"])

    def test_many_ranges_that_nest(self):
        """More than a stream remembers of a host's spans."""
        tracer = self.start(ring_bytes=512 << 10, on_full=abi_host.FULL_RING)
        for _ in range(2_000):
            tokens = [tracer.begin_operator(text=b"nested") for _ in range(40)]
            for token in reversed(tokens):
                tracer.end_operator(token)
        tracer.stop()
        found = tracer.deliver(flags=DELIVER_RANGES)
        count = sum(a.kind == KIND_RANGE_BEGIN for a in found.activities)
        self.assertGreater(count, 1_000)
        self.assertLess(tracer.stats()["bytes_held"], 1 << 20)


class Rings(OperatorCase):
    def test_no_operator_is_lost_without_being_counted(self):
        """Without the GIL, on threads that never had it."""
        self.start(ring_bytes=1 << 20, on_full=abi_host.FULL_RING)
        begun = self.run_native(threads=2, rounds=100_000, depth=3)
        self.assertEqual(begun, 2 * (1 + 2 * 100_000))
        recording = self.stop()
        self.assertLess(recording.stats["bytes_held"], 3 << 20)
        kept = [c for t in recording.threads if t.name == "operators" for c in t.calls]
        self.assertGreater(len(kept), 10_000)
        events = sum(2 for c in kept)
        self.assertLessEqual(events, 2 * begun)
        for thread in recording.threads:
            if thread.name == "operators":
                root = thread.roots[-1]
                self.assertEqual(root.function, "op0")  # it was open when the ring's oldest chunk began
                self.assertIn(support.BEGAN_BEFORE, root.flags)
        self.assertEqual(recording.stats["events_repaired"], 0)

    def test_calls_and_operators_that_are_open(self):
        tracer = self.start(ring_bytes=64 << 10, on_full=abi_host.FULL_RING)
        name = tracer.name_operator("aten::outer")

        def around():
            token = tracer.begin_operator(name, sequence_plus_1=7)
            within()
            tracer.end_operator(token)

        def within():
            for _ in range(100_000):
                inner()
        around()
        recording = self.stop()
        operator, = recording.all("aten::outer")
        self.assertIn(support.BEGAN_BEFORE, operator.flags)
        self.assertEqual(operator.args.value0, 7)
        self.assertEqual([c.function for c in operator.children if c.kind == "python"], [within.__name__] )
        parents = []
        call = operator
        while call.parent:
            call = call.parent
            parents.append(call.function)
        self.assertIn("around", parents[0])

    def test_the_innermost_call_is_open_too(self):
        """A chunk is begun by an operator with the GIL, after a call has been entered and left."""
        tracer = self.start(ring_bytes=64 << 10, on_full=abi_host.FULL_RING)
        begin = as_python_call(abi_host.BeginOperatorFn, tracer.later_ops.begin_operator)
        end = as_python_call(abi_host.EndOperatorFn, tracer.later_ops.end_operator)
        token = ctypes.c_uint64()
        op = abi_host.sized(abi_host.Operator, name=tracer.name_operator("aten::add"))

        def empty():
            pass

        def around():
            handle, at, out = tracer.handle, ctypes.addressof(op), ctypes.addressof(token)
            empty()
            for _ in range(20_000):
                begin(handle, at, out)
                end(handle, token.value)
        around()
        recording = self.stop()
        operators = recording.all("aten::add")
        self.assertLess(len(operators), 20_000)
        self.assertEqual({call.parent.function for call in operators}, {"around"})

    def test_names_of_ranges_leave_with_their_events(self):
        tracer = self.start(ring_bytes=256 << 10, on_full=abi_host.FULL_RING)
        for step in range(20_000):
            tracer.end_operator(tracer.begin_operator(text=b"ProfilerStep#%d" % step, scope=abi_host.SCOPE_USER))
        self.assertLess(tracer.stats()["bytes_held"], 1 << 20)
        tracer.stop()
        delivery = tracer.deliver(flags=DELIVER_RANGES)
        names = [n.display.text for n in delivery.names.values()]
        steps = [n for n in names if n.startswith("ProfilerStep#")]
        self.assertIn("ProfilerStep#19999", steps)
        self.assertLess(len(steps), 20_000)


class Ranges(OperatorCase):
    def outline(self, **options):
        """Returns the activities of the calling thread in the order of time, as texts."""
        delivery = self.tracer.deliver(order=abi_host.ORDER_TIME, flags=DELIVER_RANGES | DELIVER_PARTS, **options)
        texts, names = [], {}
        for a in delivery.activities:
            name = delivery.names[a.name].function.text
            if a.kind == KIND_RANGE_BEGIN:
                names[a.value0] = name
                texts.append(f"<{name}")
            elif a.kind == KIND_RANGE_END:
                texts.append(f"{names.pop(a.value0)}>")
            elif a.kind == abi_host.KIND_PYTHON:
                texts.append(f"+{name}" if a.phase == abi_host.PHASE_BEGIN else f"-{name}")
        return texts

    def test_a_range_that_crosses_calls(self):
        tracer = self.start()
        tokens = []

        def enter():
            tokens.append(tracer.begin_operator(text="größe".encode(), scope=abi_host.SCOPE_USER))

        def leave():
            tracer.end_operator(tokens.pop())

        def outer():
            enter()
            inner()
            leave()
        outer()
        tracer.stop()
        texts = self.outline()
        texts = texts[texts.index("+outer"):texts.index("-outer") + 1]
        self.assertEqual(texts, ["+outer", "+enter", "-enter", "<größe", "+enter", "-enter", "+inner", "-inner",
                                 "+leave", "-leave", "größe>", "-outer"])

    def test_what_is_known_of_a_range(self):
        """Its scope, whether it is asynchronous, and its number."""
        tracer = self.start()
        known = [(abi_host.SCOPE_FUNCTION, 0, 0), (abi_host.SCOPE_USER, 0, 5), (abi_host.SCOPE_USER, 1, 0),
                 (abi_host.SCOPE_BACKWARD, 1, 2**64 - 1)]
        for scope, flags, record_id in known:
            tracer.end_operator(tracer.begin_operator(text=b"range", scope=scope, flags=flags, record_id=record_id))
        tracer.stop()
        for order in abi_host.ORDER_THREAD, abi_host.ORDER_TIME, abi_host.ORDER_START:
            with self.subTest(order=order):
                delivery = tracer.deliver(order=order, flags=DELIVER_RANGES)
                begins = [a for a in delivery.activities if a.kind == KIND_RANGE_BEGIN]
                self.assertEqual([(a.value1 & 255, a.value1 >> 8, a.value2) for a in begins], known)
                self.assertEqual([delivery.names[a.name].scope for a in begins], [scope for scope, _, _ in known])

    def test_a_range_that_is_open_at_the_end(self):
        tracer = self.start()
        tracer.begin_operator(text=b"open")
        tracer.stop()
        self.assertEqual([t for t in self.outline() if t in ("<open", "open>")], ["<open", "open>"])

    def test_long_names_are_cut_between_characters(self):
        tracer = self.start()
        for text in ("é" * 200, "x" * 252, "x" * 253, "x" * 251 + "é", "\0" * 9):
            tracer.end_operator(tracer.begin_operator(text=text.encode()))
        tracer.stop()
        names = [t[1:] for t in self.outline() if t.startswith("<")]
        self.assertEqual(names, ["é" * 126, "x" * 252, "x" * 252, "x" * 251, "\0" * 9])

    def test_they_are_delivered_only_on_demand(self):
        tracer = self.start()
        tracer.end_operator(tracer.begin_operator(text=b"range"))
        tracer.stop()
        kinds = {a.kind for a in tracer.deliver().activities}
        self.assertFalse(kinds & {KIND_RANGE_BEGIN, KIND_RANGE_END})

    def test_by_start_they_are_whole(self):
        """Also if they cross each other, share a name, or are open at the end."""
        tracer = self.start()
        first, second = (tracer.begin_operator(text=text) for text in (b"crossed", b"same"))
        tracer.end_operator(first)
        third = tracer.begin_operator(text=b"same")
        tracer.end_operator(second)
        tracer.end_operator(third)
        tracer.begin_operator(text=b"open")
        tracer.stop()
        flags = DELIVER_RANGES | DELIVER_PARTS
        ends, begins = {}, []
        for a in tracer.deliver(order=abi_host.ORDER_TIME, flags=flags).activities:
            if a.kind == KIND_RANGE_BEGIN:
                begins.append(a)
                ends[id(a)] = None
            elif a.kind == KIND_RANGE_END:
                begin = next(b for b in reversed(begins) if b.value0 == a.value0 and ends[id(b)] is None)
                ends[id(begin)] = a.start_ns
        delivery = tracer.deliver(order=abi_host.ORDER_START, flags=flags)
        whole = [a for a in delivery.activities if a.kind == KIND_RANGE_BEGIN]
        self.assertEqual([(a.start_ns, a.end_ns) for a in whole], [(b.start_ns, ends[id(b)]) for b in begins])
        self.assertEqual(len(whole), 4)
        self.assertFalse([a for a in delivery.activities if a.kind == KIND_RANGE_END])
        starts = [a.start_ns for a in delivery.activities]
        self.assertEqual(starts, sorted(starts))


if __name__ == "__main__":
    unittest.main()
