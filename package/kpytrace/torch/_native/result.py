"""The result of a native profile, with the methods of torch._C._autograd._ProfilerResult."""

from __future__ import annotations

import os
import sys
from _thread import RLock
from weakref import WeakSet

from ..._api import native
from . import file
from .tables import Tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from .._activities import TraceActivity
    from .config import Request


_results: WeakSet[NativeResult] = WeakSet()


class NativeResult:
    """A recording, and what its profile asked for."""

    def __init__(self, request: Request, handle: Any, recording: Any, metadata: dict[str, str], begin_ns: int,
                 end_ns: int, has_kernel_stacks: bool) -> None:
        self.request = request
        # The recording uses the tracer of the handle, so it is freed before.
        self.recording, self.handle = recording, handle
        self.metadata = metadata
        self.begin_ns, self.end_ns = begin_ns, end_ns
        self.has_kernel_stacks = has_kernel_stacks
        self.lock = RLock()  # held by the one that reads the recording
        self._tables: Optional[Tables] = None
        _results.add(self)

    def save(self, path: str, metadata: Optional[dict[str, str]] = None) -> None:
        """Writes the trace that Kineto would write to PATH, any number of times. Compresses it if the name ends in
        .gz. METADATA, values in JSON by key, is added to the head."""
        file.save(self, path, metadata)

    def trace_activities(self) -> list[TraceActivity]:
        """Returns the events of the file, in its order."""
        return file.trace_activities(self)

    def trace_start_ns(self) -> int:
        """Returns the time from which torch's tables count."""
        return self.begin_ns

    def gpu_log(self) -> Any:
        """Returns a capsule with the log of GPUs, or None if there is none."""
        return native.standalone.gpu_log(self.handle)

    def tables(self) -> Tables:
        """Returns the events of the recording, which are read when they are first needed."""
        with self.lock:
            if self._tables is None:
                profiler = sys.modules["torch.autograd.profiler"]
                self._tables = Tables(self, profiler, sys.modules["torch.autograd.profiler_util"])
            return self._tables

    def events(self) -> list[Any]:
        """Returns objects with the methods of torch's _KinetoEvent."""
        return self.tables().events.events()  # type: ignore[no-any-return]

    def experimental_event_tree(self) -> Any:
        """Raises: the tree consists of Kineto's objects."""
        raise RuntimeError("this profile was recorded in kpytrace's mode 'native', which has no event tree, and so no "
                           "memory profile and no patterns: use torch.profiler.profile after "
                           "kpytrace.torch.install(mode=\"full\")")


def _forked() -> None:
    """Another thread of the parent may have held a lock."""
    for result in _results:
        result.lock = RLock()


os.register_at_fork(after_in_child=_forked)
