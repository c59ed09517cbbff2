"""The inputs of a host's operators and ranges."""

import ctypes
import unittest

from host_case import abi_host
from abi_host import KIND_OPERATOR, KIND_RANGE_BEGIN
from operator_case import OperatorCase


class Inputs(OperatorCase):
    def run_with(self, given):
        """Runs an operator with each of the inputs."""
        name = self.tracer.name_operator("aten::add")
        for inputs in given:
            self.tracer.end_operator(self.tracer.begin_operator(name, inputs=inputs, record_id=len(inputs) % 2))

    def delivered(self, order=abi_host.ORDER_THREAD, function=None):
        """Returns the inputs of each operator, in the order of their begins, and the names that have them."""
        delivery = self.tracer.deliver(order=order, flags=abi_host.DELIVER_INPUTS, function=function)
        kept = {i: n for i, n in delivery.names.items() if n.flags & abi_host.NAME_INPUTS}
        operators = [a for a in delivery.activities if a.kind == KIND_OPERATOR and a.phase != abi_host.PHASE_END]
        for name in kept.values():
            self.assertEqual((name.display.bytes, name.qualname.bytes, name.file.bytes), (b"", b"", b""))
        return [kept[a.line].function.bytes if a.line else b"" for a in operators], kept

    def test_each_operator_has_its_own(self):
        self.start()
        given = [b"", b"a", b"b", b"a", b"\0\0\0", b"\0\0", bytes(range(256)), b"a", b"x" * 16384, b"1234567",
                 b"12345678", b"", b"x" * 16384, b"x" * 16383]
        self.run_with(given)
        self.tracer.stop()
        for order in abi_host.ORDER_THREAD, abi_host.ORDER_TIME, abi_host.ORDER_START:
            with self.subTest(order=order):
                found, kept = self.delivered(order)
                self.assertEqual(found, given)
                self.assertEqual(len(kept), len(set(given) - {b""}))
        self.assertEqual(self.tracer.stats()["events_repaired"], 0)

    def test_too_many_bytes_are_cut(self):
        self.start()
        self.run_with([b"y" * 20_000])
        self.tracer.stop()
        self.assertEqual(self.delivered()[0], [b"y" * 16384])

    def test_equal_inputs_take_eight_bytes(self):
        def taken(inputs, count):
            self.start()
            before = self.tracer.stats()["events"]
            self.run_with(inputs for _ in range(count))
            self.tracer.stop()
            return self.tracer.stats()["events"] - before
        count = 5_000
        plain, same = taken(b"", count), taken(b"z" * 70, count)
        self.assertLess(same - plain, 1.1 * count)

    def test_they_are_delivered_only_on_demand(self):
        self.start()
        self.run_with([b"abc"])
        self.tracer.stop()
        delivery = self.tracer.deliver()
        self.assertFalse(any(n.flags & abi_host.NAME_INPUTS for n in delivery.names.values()))
        self.assertEqual({a.line for a in delivery.activities if a.kind == KIND_OPERATOR}, {0})

    def test_a_host_of_an_older_abi(self):
        tracer = self.start()
        op = abi_host.sized(abi_host.Operator, name=tracer.name_operator("aten::add"), inputs=abi_host.Str.of(b"abc"))
        op.struct_size = abi_host.Operator.inputs.offset
        token = ctypes.c_uint64()
        tracer._call(tracer.later_ops.begin_operator, ctypes.addressof(op), ctypes.addressof(token))
        tracer.end_operator(token.value)
        tracer.stop()
        self.assertEqual(self.delivered()[0], [b""])

    def test_what_is_refused(self):
        tracer = self.start()
        name = tracer.name_operator("aten::add")
        op = abi_host.sized(abi_host.Operator, name=name, inputs=abi_host.Str(None, 3))
        token = ctypes.c_uint64(1)
        with self.assertRaises(abi_host.Failed) as caught:
            tracer._call(tracer.later_ops.begin_operator, ctypes.addressof(op), ctypes.addressof(token))
        self.assertEqual((caught.exception.status, token.value), (-1, 0))

    def test_a_ring_forgets_them(self):
        tracer = self.start(ring_bytes=256 << 10, on_full=abi_host.FULL_RING)
        self.run_with(b"%06d" % i for i in range(50_000))
        self.assertLess(tracer.stats()["bytes_held"], 1 << 20)
        tracer.stop()
        found, kept = self.delivered()
        self.assertEqual(found, [b"%06d" % i for i in range(50_000 - len(found), 50_000)])
        self.assertLess(len(kept), 50_000)

    def test_of_an_operator_that_is_open_when_a_chunk_begins(self):
        """Both if its inputs are new in the chunk and if they are referred to."""
        tracer = self.start(ring_bytes=64 << 10, on_full=abi_host.FULL_RING)
        outer, name = tracer.name_operator("aten::outer"), tracer.name_operator("aten::inner")
        first = tracer.begin_operator(outer, inputs=b"inputs of both")
        second = tracer.begin_operator(outer, inputs=b"inputs of both", sequence_plus_1=9)
        for i in range(50_000):
            tracer.end_operator(tracer.begin_operator(name, inputs=b"%d" % (i % 100)))
        tracer.end_operator(second)
        tracer.end_operator(first)
        tracer.stop()
        found, kept = self.delivered()
        self.assertEqual(found[-2:] if found[0] != b"inputs of both" else found[:2], [b"inputs of both"] * 2)
        self.assertEqual(set(found) - {b"inputs of both"}, {b"%d" % i for i in range(100)})
        self.assertLessEqual(len(kept), 101)


class OfRanges(OperatorCase):
    def ranges(self, order=abi_host.ORDER_THREAD, flags=abi_host.DELIVER_INPUTS | abi_host.DELIVER_RANGES):
        """Returns the name, the inputs and the scope of each range, in the order of their begins."""
        delivery = self.tracer.deliver(order=order, flags=flags)
        names = {i: n.function.bytes for i, n in delivery.names.items()}
        return [(names[a.name], names[a.line] if a.line else b"", a.value1) for a in delivery.activities
                if a.kind == KIND_RANGE_BEGIN]

    def test_each_range_has_its_own(self):
        """Also one with the inputs of an operator, and one that lies in several batches."""
        self.start()
        operator = self.tracer.name_operator("aten::add")
        given = [(b"first", b"abc", 7), (b"no inputs", b"", 7), (b"n" * 252, b"x" * 16384, 0), (b"first", b"abc", 7),
                 (b"7 bytes", b"7 bytes", 1), (b"cut", b"y" * 20_000, 7), (b"as an operator", b"of an operator", 7)]
        for text, inputs, scope in given:
            self.tracer.end_operator(self.tracer.begin_operator(operator, inputs=b"of an operator"))
            self.tracer.end_operator(self.tracer.begin_operator(text=text, inputs=inputs, scope=scope, record_id=5))
        self.tracer.stop()
        wanted = [(text, inputs[:16384], scope) for text, inputs, scope in given]
        for order in abi_host.ORDER_THREAD, abi_host.ORDER_TIME, abi_host.ORDER_START:
            with self.subTest(order=order):
                self.assertEqual(self.ranges(order), wanted)
                self.assertEqual(self.ranges(order, abi_host.DELIVER_RANGES), [(a, b"", c) for a, _, c in wanted])
                delivery = self.tracer.deliver(order=order, flags=abi_host.DELIVER_INPUTS, batch_size=1)
                self.assertEqual(sum(n.flags & abi_host.NAME_INPUTS for n in delivery.names.values()), 1)
                delivery = self.tracer.deliver(order=order, batch_size=1,
                                               flags=abi_host.DELIVER_INPUTS | abi_host.DELIVER_RANGES)
                self.assertEqual(sum(n.flags & abi_host.NAME_INPUTS for n in delivery.names.values()), 5)
        self.assertEqual(self.tracer.stats()["events_repaired"], 0)

    def test_of_a_range_that_is_open_when_a_chunk_begins(self):
        """Both if its inputs are new in the chunk and if they are referred to."""
        tracer = self.start(ring_bytes=64 << 10, on_full=abi_host.FULL_RING)
        name = tracer.name_operator("aten::inner")
        first = tracer.begin_operator(text=b"outer", inputs=b"inputs of both", scope=7)
        second = tracer.begin_operator(text=b"inner", inputs=b"inputs of both", scope=7)
        for i in range(50_000):
            tracer.end_operator(tracer.begin_operator(name, inputs=b"%d" % (i % 100)))
        tracer.end_operator(second)
        tracer.end_operator(first)
        tracer.stop()
        self.assertEqual(self.ranges(), [(b"outer", b"inputs of both", 7), (b"inner", b"inputs of both", 7)])


if __name__ == "__main__":
    unittest.main()
