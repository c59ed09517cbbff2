"""The identities of tensors and operators, as tensors die and change, and operators are defined again. The
tenth entry in docs/execution_trace.md of errors of torch's observer."""

import gc
import unittest
import weakref

import et
import torch
from kpytrace.torch import ExecutionTraceObserver


class Identities(et.WithFolder):
    def test_ids_are_not_used_again(self):
        kept = torch.ones(3)

        def work():
            for _ in range(5000):
                torch.sin(kept)

        trace = et.record(self.path, work, python_stacks=False)
        nodes = et.named(trace, "aten::sin")
        for place in (0, 1):
            self.assertEqual(len({node["outputs"]["values"][0][place] for node in nodes}), 5000)
            self.assertEqual(len({node["inputs"]["values"][0][place] for node in nodes}), 1)

    def test_a_live_tensor_keeps_its_id(self):
        """A live tensor keeps its id among many that die, and after its cache entry was evicted."""
        base, kept = torch.ones(3), {}

        def work():
            for turn in range(4000):
                made = torch.sin(base)
                if turn % 3 == 0: kept[turn] = made
                if turn % 7 == 0: kept.pop(turn // 2, None)
            for tensor in kept.values():
                torch.neg(tensor)

        trace = et.record(self.path, work, python_stacks=False)
        made = [node["outputs"]["values"][0][:2] for node in et.named(trace, "aten::sin")]
        used = [node["inputs"]["values"][0][:2] for node in et.named(trace, "aten::neg")]
        self.assertEqual(used, [made[turn] for turn in kept])
        self.assertEqual(len({one for ids in made for one in ids}), 8000)

    def test_what_changes_in_place(self):
        """The cached description of a tensor is used only while it is valid."""
        tensor, other = torch.ones(2, 6), torch.zeros(4)
        changes = [lambda: None, lambda: tensor.t_(), lambda: tensor.resize_(3, 3),
                   lambda: tensor.squeeze_().unsqueeze_(0), lambda: tensor.set_(other),
                   lambda: tensor.set_(other, 1, (2,), (1,)),
                   lambda: setattr(tensor, "data", torch.ones(5, dtype=torch.float64)),
                   lambda: tensor.resize_(2, 1, 2, 1, 2, 1), lambda: None]
        seen = []

        def work():
            for change in changes:
                change()
                for _ in range(2):
                    torch.sin(tensor)
                    seen.append((list(tensor.shape), list(tensor.stride()), tensor.storage_offset(),
                                 tensor.numel(), tensor.element_size()))

        trace = et.record(self.path, work)
        recorded = [(inputs["shapes"][0], inputs["strides"][0], *inputs["values"][0][2:5])
                for inputs in (node["inputs"] for node in et.named(trace, "aten::sin"))]
        self.assertEqual(recorded, seen)
        ids = [node["inputs"]["values"][0][:2] for node in et.named(trace, "aten::sin")]
        self.assertEqual(len({one for one, _ in ids}), 1)
        self.assertEqual(len({storage for _, storage in ids}), 3)

    def test_tensors_are_freed_and_swapped(self):
        observer = ExecutionTraceObserver().register_callback(self.path)
        observer.start()
        one, other = torch.ones(2), torch.zeros(2)
        torch.utils.swap_tensors(one, other)
        self.assertEqual(one.tolist(), [0, 0])
        gone = []
        for _ in range(10):
            tensor = torch.ones(4) * 2
            weakref.finalize(tensor, gone.append, 1)
            del tensor
        gc.collect()
        self.assertEqual(len(gone), 10)
        observer.unregister_callback()
        et.load(self.path)

    def test_operators_that_go_and_others_where_they_were(self):
        """The cache of operators is keyed by the address of the name, at which another operator may be defined."""
        names, expected = ("one_operator_of_this_test_whose_name_is_long", "short"), []
        kinds = [("", "Tensor", lambda x, by=0: x),
                 (", int more=0", "(Tensor, Tensor)", lambda x, by=0, more=0: (x, x))]

        def define(name, overload, number):
            more, returned, function = kinds[number % 2]
            library = torch.library.Library("kpt_test", "FRAGMENT")
            library.define(f"{name}.{overload}(Tensor x, int by={number}{more}) -> {returned}")
            library.impl(f"{name}.{overload}", function, "CPU")
            operator = getattr(getattr(torch.ops.kpt_test, name), overload)
            for _ in range(2):
                operator(torch.ones(2))
                expected.append((str(operator._schema), 2 + number % 2, 1 + number % 2))
            library._destroy()

        def work():
            for number in range(200):
                define(names[number // 100], f"overload_{number % 100 // 2:02}", number)

        trace = et.record(self.path, work)
        recorded = [(et.attr(node, "op_schema"), len(node["inputs"]["values"]), len(node["outputs"]["values"]))
                for node in trace["nodes"] if node["name"].startswith("kpt_test::")]
        self.assertEqual(recorded, expected)


if __name__ == "__main__":
    unittest.main()
