"""The first of several observers gets its operators through its tape, the others through calls. All have the same
recording."""

import os
import threading
import unittest
import weakref

import et
import torch
from kpytrace.torch import ExecutionTraceObserver


class Tapes(et.WithFolder):
    def recorded(self, work):
        """Returns WORK's nodes from the tape and from calls, without our own attribute."""
        paths = [os.path.join(self.folder, name) for name in ("written.json", "observed.json")]
        observers = [ExecutionTraceObserver().register_callback(path) for path in paths]
        for observer in observers:
            observer.start()
        work()
        for observer in reversed(observers):
            observer.stop()
        for observer in observers:
            observer.unregister_callback()
        return [[{**node, "attrs": [attr for attr in node["attrs"] if attr["name"] != "kpytrace"]}
                 for node in et.load(path)["nodes"]] for path in paths]

    def same(self, work):
        """Returns WORK's nodes after checking that both are the same."""
        written, observed = self.recorded(work)
        self.assertEqual(len(written), len(observed))
        for one, other in zip(written, observed):
            self.assertEqual(one, other)
        return written

    def sorted(self, work):
        """Returns WORK's nodes from the tape and from calls, sorted."""
        return [sorted((node["name"], str(node["inputs"]["shapes"]), str(node["outputs"]["types"]))
                       for node in nodes) for nodes in self.recorded(work)]

    def test_training(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16),
                                    torch.nn.Linear(16, 4))
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)

        def work():
            for _ in range(20):
                loss = torch.nn.functional.cross_entropy(model(torch.randn(3, 8)), torch.tensor([1, 2, 3]))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        self.assertGreater(len(self.same(work)), 3000)

    def test_tensors_that_change(self):
        def work():
            changing, other = torch.zeros(4, 4), torch.ones(100, dtype=torch.float64)
            for index in range(200):
                changing.add_(1)
                if index % 7 == 0:
                    changing.resize_(index % 5 + 1, 3)
                if index % 13 == 0:
                    changing.data = torch.zeros(2, dtype=torch.float64)
                    changing.set_(other)
                if index % 17 == 0:
                    changing = torch.zeros(4, 4)
                changing.t_() if changing.dim() == 2 else changing.unsqueeze_(0)
                changing.clone()
            return changing

        self.assertGreater(len(self.same(work)), 800)

    def test_values(self):
        tensor = torch.ones(2, 3)
        values = [None, True, 7, -2 ** 63, 2.5, "text", "", torch.device("meta"), {"a": 1}, (1, (tensor, "x")),
                  [1, 2], [[tensor], [tensor, tensor]], [tensor] * 4200, list(range(4200)), 1 + 2j,
                  torch.empty(0), torch.empty((), dtype=torch.int8), torch.empty(3, 2 ** 33, device="meta"),
                  torch.empty(1, 1, 1, 1, 1, 1, 1, 1, 1, 2), tensor.expand(4, 2, 3), tensor[:, 1:], tensor.t(),
                  tensor.to_sparse(), torch.view_as_complex(torch.ones(2, 2)).conj(),
                  torch.quantize_per_tensor(tensor, 0.1, 0, torch.quint8), torch.nested.nested_tensor([tensor])]
        nested = tensor
        for _ in range(20):  # deeper than is kept
            nested = [nested]

        def work():
            for value in [*values, nested, *values]:
                with et.annotation("value", value):
                    torch.add(tensor, 1)

        self.same(work)

    def test_operators_that_raise(self):
        def work():
            for _ in range(3):
                with self.assertRaises(RuntimeError):
                    torch.ones(2) @ torch.ones(3)
                torch.ones(2) @ torch.ones(2)

        errors = [node for node in self.same(work) if et.has_attr(node, "error")]
        self.assertEqual(len(errors), 6)  # matmul, and dot in it

    def test_transforms(self):
        def work():
            tensor = torch.ones(3, 2)
            torch.func.vmap(torch.func.grad(lambda row: (row * row).sum()))(tensor)
            torch.func.functionalize(lambda value: value.add_(1))(tensor)

        self.same(work)

    def test_what_dies_with_a_wrapper(self):
        """The table of tensors has the last reference to a wrapper, whose finalizer may run operators."""
        finalized = []

        def finalize():
            finalized.append(torch.zeros(2).add_(1).sum())

        def work():
            for _ in range(100):
                tensor = torch.ones(3)
                weakref.finalize(tensor, finalize)
                torch.func.functionalize(lambda value: value + 1)(tensor)
                torch.func.vmap(lambda value: value * 2)(tensor)
                del tensor
                torch.ones(3).add_(torch.ones(3)).clone()

        # In one file they are within the operator that they ran in, in the other one before it.
        self.assertEqual(*self.sorted(work))
        self.assertGreater(len(finalized), 50)

    def test_threads(self):
        def work():
            def train():
                weight = torch.ones(4, 4, requires_grad=True)
                for _ in range(50):
                    (weight @ weight).sum().backward()

            threads = [threading.Thread(target=train) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        # Which thread is first in a file is not the same in both.
        names = self.sorted(work)
        self.assertEqual(*names)
        self.assertGreater(len(names[0]), 1000)


if __name__ == "__main__":
    unittest.main()
