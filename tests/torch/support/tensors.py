"""Tensors in recordings of memory."""

import os
import pickle
import tempfile

import kpytrace.torch

CPU = 4  # its device where it is the first to report: behind Python's domains and numpy


class Snapshot:
    def __init__(self, path):
        self.modules = {name: (now, peak)
                        for name, now, peak in kpytrace.torch.memory_by_module(path)}
        with open(path, "rb") as file:
            self.snapshot = pickle.load(file)
        self.devices = self.snapshot["kpytrace"]["devices"]
        traces = self.snapshot["device_traces"]
        self.cpu = self.devices.index("cpu") if "cpu" in self.devices else None
        self.entries = traces[self.cpu] if self.cpu is not None else []

    def allocated(self, function=None):
        """Returns the sizes of blocks. With FUNCTION, only of those that it, or a function defined in it,
        allocated itself."""
        name = function and function.__code__.co_name
        return [entry["size"] for entry in self.entries if entry["action"] == "alloc"
                and (not name or entry["frames"] and name in entry["frames"][0]["name"].split("."))]

    def alive(self):
        return sum(segment["allocated_size"] for segment in self.snapshot["segments"]
                   if segment["device"] == self.cpu)


class Exported(Snapshot):
    """The tensors of RECORDING, which is closed."""

    def __init__(self, recording):
        with tempfile.TemporaryDirectory() as folder:
            path = recording.export(os.path.join(folder, "memory.pickle"))
            recording.close()
            super().__init__(path)


class Recorded(Exported):
    """The tensors of FUNCTION, whose result is kept until the export."""

    def __init__(self, function, **options):
        with kpytrace.torch.memory(**options) as recording:
            self.result = function()
        super().__init__(recording)


def bytes_of(tensors):
    return [tensor.numel() * tensor.element_size() for tensor in tensors]
