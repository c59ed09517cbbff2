"""memory_by_module: the bytes of the tensors of a model's forward by module, compared with values computed by hand."""

import pathlib
import pickle
import sys
import tempfile
import threading
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from tensors import Exported, Recorded

import kpytrace.torch

FLOAT, ROWS = 4, 32


class Block(torch.nn.Module):
    """Keeps two tensors: its own, and one of its submodule."""

    def __init__(self, width):
        super().__init__()
        self.part = torch.nn.Sigmoid()
        self.width = width

    def forward(self, data):
        return self.part(torch.cat([data] * self.width, 1))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block(2)
        self.second = torch.nn.ModuleList([Block(3), torch.nn.Identity()])

    def forward(self, data):
        data = self.first(data)
        for module in self.second:
            data = module(data)
        return data


class Raises(torch.nn.Module):
    def forward(self, data):
        data.neg()
        raise ValueError("on purpose")


class Modules(unittest.TestCase):
    def test_by_hand(self):
        net, data = Net(), torch.ones(ROWS, 10)
        held = []

        def forward():
            with torch.no_grad():
                held.append(net(data))  # what is between is freed as soon as the next one is there
        modules = Recorded(forward).modules
        first, second = ROWS * 20 * FLOAT, ROWS * 60 * FLOAT
        self.assertEqual(modules, {"Net.first": (0, first), "Net.first.part": (0, first),
                                   "Net.second.0": (0, second),
                                   "Net.second.0.part": (second, second)})

    def test_activations_live_until_backward(self):
        """A sigmoid keeps its result for its gradient; a product keeps its inputs."""
        net, data = Net(), torch.ones(ROWS, 10, requires_grad=True)
        first, second = ROWS * 20 * FLOAT, ROWS * 60 * FLOAT
        modules = Recorded(lambda: net(data)).modules
        self.assertEqual(modules["Net.first.part"], (first, first))
        self.assertEqual(modules["Net.second.0.part"], (second, second))
        recorded = Recorded(lambda: net(data).sum().backward())
        self.assertEqual(recorded.modules["Net.first.part"], (0, first))
        self.assertEqual(recorded.modules["Net.second.0.part"], (0, second))
        self.assertIn("backward", {entry.get("category") for entry in recorded.entries})

    def test_a_linear_layer(self):
        layer, data = torch.nn.Linear(16, 8), torch.ones(ROWS, 16)
        modules = Recorded(lambda: [layer(data) for _ in range(5)]).modules
        self.assertEqual(modules["Linear"][0], 5 * ROWS * 8 * FLOAT)

    def test_outside_of_modules(self):
        kept = Recorded(lambda: torch.ones(100))
        self.assertEqual(kept.modules, {"": (400, 400)})

    def test_without(self):
        recorded = Recorded(lambda: Net()(torch.ones(ROWS, 10)), modules=False)
        self.assertEqual(set(recorded.modules), {""})

    def test_a_forward_that_raises(self):
        def work():
            with self.assertRaises(ValueError):
                torch.nn.Sequential(torch.nn.Sigmoid(), Raises())(torch.ones(10))
            return torch.ones(25)
        modules = Recorded(work).modules
        self.assertEqual(modules["Sequential.1"], (0, 40))
        self.assertEqual(modules[""][0], 100)

    def test_stopped_inside_of_a_forward(self):
        recording = kpytrace.torch.memory()

        class Stops(torch.nn.Module):
            def forward(self, data):
                recording.stop()
                return data
        recording.start()
        Stops()(torch.ones(1))
        recording.close()
        self.assertEqual(Recorded(lambda: torch.ones(100)).modules, {"": (400, 400)})

    def test_stopped_inside_of_a_forward_and_started_again(self):
        with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
            recording = kpytrace.torch.memory(file.name)

            class Stops(torch.nn.Module):
                def forward(self, data):
                    recording.stop()
                    return data
            data = torch.ones(1)
            recording.start()
            Stops()(data)
            recording.start()
            kept = torch.nn.Sequential(torch.nn.Sigmoid())(torch.ones(10)), torch.ones(100)
            recording.stop()
            now = {module: size for module, size, _ in kpytrace.torch.memory_by_module(file.name) if size}
        self.assertEqual(now, {"Sequential.0": 40, "": 400})
        del kept

    def test_a_name_that_is_no_text(self):
        net = torch.nn.Sequential()
        net.add_module("\udc80", torch.nn.Sigmoid())
        self.assertEqual(Recorded(lambda: net(torch.ones(10))).modules["Sequential.\\udc80"], (40, 40))

    def test_a_module_that_came_later(self):
        net = torch.nn.Sequential(torch.nn.Sigmoid())

        def work():
            first = net(torch.ones(10))
            net.append(torch.nn.Sigmoid())
            return first, net(torch.ones(10))
        modules = Recorded(work).modules
        self.assertEqual(modules["Sequential.0"], (40, 80))
        self.assertEqual(modules["Sequential.1"], (40, 40))

    def test_one_that_is_in_no_field(self):
        hidden = [torch.nn.Tanh()]

        class Hides(torch.nn.Module):
            def forward(self, data):
                return hidden[0](data)
        self.assertEqual(Recorded(lambda: Hides()(torch.ones(10))).modules["Tanh"], (40, 40))

    def test_a_class_that_came_later(self):
        def work():
            class Late(torch.nn.Module):
                def forward(self, data):
                    return data.neg()
            return Late()(torch.ones(10))
        self.assertEqual(Recorded(work).modules["Late"], (40, 40))

    def test_called_by_its_method(self):
        net = torch.nn.Sequential(torch.nn.Sigmoid())
        modules = Recorded(lambda: torch.nn.Module.__call__(*[net, torch.ones(10)])).modules
        self.assertEqual(modules["Sequential.0"], (40, 40))

    def test_after_torch_has_put_its_own_call_in_place(self):
        def work():
            torch.fx.symbolic_trace(Net())
            return torch.nn.Sequential(torch.nn.Sigmoid())(torch.ones(10))
        self.assertEqual(Recorded(work).modules["Sequential.0"], (40, 40))

    def test_a_module_that_is_in_two_places(self):
        part = torch.nn.Sigmoid()
        net = torch.nn.Sequential(torch.nn.Sequential(part), part)
        self.assertEqual(Recorded(lambda: net(torch.ones(10))).modules["Sequential.0.0"], (40, 80))

    def test_no_hook_is_left_or_ever_there(self):
        hooks = torch.nn.modules.module

        class Looks(torch.nn.Module):
            def forward(self, data):
                found.append(hooks._global_forward_hooks or hooks._global_forward_pre_hooks)
        found = []
        Recorded(lambda: Looks()(torch.ones(1)))
        self.assertEqual(found, [{}])

    def test_modules_that_come_and_go(self):
        def work():
            return [torch.nn.Sequential(torch.nn.Sigmoid())(torch.ones(1)) for _ in range(3000)]
        self.assertEqual(Recorded(work).modules["Sequential.0"], (12_000, 12_000))

    def test_threads_have_their_own(self):
        nets = [torch.nn.Sequential(torch.nn.Sigmoid()) for _ in range(4)]
        nets = [type(f"Net{number}", (torch.nn.Sequential,), {})(net)
                for number, net in enumerate(nets)]
        kept = []

        def work():
            threads = [threading.Thread(target=lambda net=net: kept.extend(
                net(torch.ones(250)) for _ in range(50))) for net in nets]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        modules = Recorded(work).modules
        for number in range(4):
            self.assertEqual(modules[f"Net{number}.0.0"], (50_000, 50_000))

    def test_tables(self):
        """Tables have tensors beside Python's own blocks: by device, by module, by line."""
        net, data = Net(), torch.ones(ROWS, 10, requires_grad=True)
        recording = kpytrace.torch.memory().start()
        held = net(data)
        recording.stop()
        tables, modules = recording.tables(), Exported(recording).modules
        rows = {row.name: row.bytes for row in tables.rows("end", "module", "cpu")}
        self.assertEqual(rows, {name or "(no module)": now for name, (now, _) in modules.items() if now})
        self.assertEqual(tables.total("end", "cpu")[0], sum(now for now, _ in modules.values()))
        where = {row.name: row.total_bytes for row in tables.rows("end", "function", "cpu")}
        self.assertEqual(where["Net.forward" if sys.version_info >= (3, 11) else "forward"],
                         tables.total("end", "cpu")[0])
        del held

    def test_a_file_that_is_no_snapshot(self):
        with tempfile.NamedTemporaryFile() as file:
            pickle.dump(threading.Thread, file)
            file.flush()
            with self.assertRaises(pickle.UnpicklingError):
                kpytrace.torch.memory_by_module(file.name)


if __name__ == "__main__":
    unittest.main()
