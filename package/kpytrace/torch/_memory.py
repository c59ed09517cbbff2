"""Recordings of memory that include torch's tensors, and the memory of each module."""

from __future__ import annotations

import math
import os
import pickle

from .._api import native
from .._api.memory import Memory
from . import _cuda, _shim
from ._environment import needed_torch
from ._types import TorchHostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Union

    Path = Union[str, os.PathLike[str]]

PYTHON_DEVICES = 4  # the first devices of a snapshot: the domains of Python's allocators, and numpy


class TensorMemory(Memory):
    """A recording of Python's memory and of tensors, in the processor's memory and in CUDA's."""

    def __init__(self, path: Optional[Path], modules: bool, *arguments: Any) -> None:
        super().__init__(path, *arguments)
        torch = needed_torch()
        self._shim = _shim.load(torch)
        _cuda.attach(torch, self._shim)
        # The function behind torch.nn.Module.__call__, also if a program has replaced that.
        self._call = torch.nn.Module._wrapped_call_impl if modules else None

    def _begin(self) -> None:
        super()._begin()
        try:
            why = self._shim.record_tensors(native.standalone.memory_tracer(self._handle))
            if why:
                raise TorchHostError(f"torch's tensors can't be recorded: {why}")
            if self._call:
                self._shim.follow_modules(self._call)
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        self._shim.stop_tensors(native.standalone.memory_tracer(self._handle))
        super()._end()

    def _forget(self) -> None:
        super()._forget()
        self._shim.unfollow_modules()


class _Reader(pickle.Unpickler):
    """Reads only plain values, since snapshots have no others."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"not a memory snapshot of kpytrace: it refers to {module}.{name}")


def _weight(size: int, mean: int) -> float:
    """Returns the number of blocks that a sampled block represents."""
    return -1 / math.expm1(-size / mean) if mean and size else 1


def by_module(path: Path) -> list[tuple[str, int, int]]:
    with open(path, "rb") as file:
        snapshot = _Reader(file).load()
    mean = snapshot["kpytrace"]["sample_bytes"]
    now: dict[str, float] = {}
    peak: dict[str, float] = {}
    for trace in snapshot["device_traces"][PYTHON_DEVICES:]:
        live: dict[int, tuple[str, float]] = {}
        for entry in trace:
            owner, size = live.pop(entry["addr"], ("", 0))
            now[owner] = now.get(owner, 0) - size
            if entry["action"] != "alloc":
                continue
            owner = entry.get("user_metadata", "")
            size = entry["size"] * _weight(entry["size"], mean)
            live[entry["addr"]] = owner, size
            now[owner] = now.get(owner, 0) + size
            peak[owner] = max(peak.get(owner, 0), now[owner])
    rows = [(owner, round(now[owner]), round(most)) for owner, most in peak.items()]
    return sorted(rows, key=lambda row: (-row[2], row[0]))
