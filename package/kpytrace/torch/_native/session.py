"""One profile, from start to stop: the standalone host records calls and GPUs, and the shim passes torch's operators to
its tracer and has torch's names of threads and modules.
"""

from __future__ import annotations

import os
import time

from ..._api import native
from .result import NativeResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .config import Request

_FOLDER = os.fsencode(os.path.dirname(os.path.abspath(__file__))) + b"/"
_GPU_ON, _GPU_OFF = 1, 2


class NativeSession:
    """A profile that records, or is prepared to. One thread at a time calls it."""

    def __init__(self, request: Request, activities: set[Any], shim: Any, settings: tuple[Any, ...],
                 has_kernel_stacks: bool) -> None:
        names = {str(activity).rpartition(".")[2] for activity in activities}
        self.request = request
        self.has_gpu = "CUDA" in names
        self.has_cpu = "CPU" in names
        self.metadata: dict[str, str] = {}
        self._shim = shim
        self._settings = settings
        self._has_kernel_stacks = has_kernel_stacks
        self._host: Any = None
        self._handle: Any = None
        self._tracer = 0
        self._functions = 0
        self._mark = 0  # of the threads whose operators are recorded; 0: of all
        self._begin_ns = 0

    def start(self) -> None:
        """Records from now on. After an exception nothing records."""
        try:
            self._start()
        except BaseException:
            self._abandon()
            raise

    def _start(self) -> None:
        native.load()
        # Only calls of modules need names: torch gets no tree with optimizers, and no calls that patterns look for.
        callbacks = self._shim.session_view(*self._settings[:6], [], [])
        # The last filter that matches decides. Our own functions are no calls of the program.
        filters = (("exclude", "file", _FOLDER),) if self.request.with_stack and self.has_cpu else (
            ("exclude", "glob", b"*"),)
        options = {"filters": filters, "callbacks": callbacks,
                   "gc": self.request.experimental.get("record_python_gc_info", False),
                   "gpu": _GPU_ON if self.has_gpu else _GPU_OFF, "tool_id": self._settings[3]}
        self._host = callbacks[0]
        self._begin_ns = time.time_ns()
        try:
            self._handle, noop, _, _ = native.standalone.start(self._settings[0], options)
        except Exception:  # a trace that runs has another tool, or there is no place for one more
            options["tool_id"] = 0
            self._handle, noop, _, _ = native.standalone.start(self._settings[0], options)
        if noop:
            raise RuntimeError(f"kpytrace can record nothing: {noop}")
        self._functions, self._tracer = native.standalone.tracer(self._handle)
        has_inputs = self.request.record_shapes or self.request.with_flops
        is_receiving, mark = self._shim.view_thread(self._host, self.request.profile_memory, has_inputs)
        if self.request.profile_memory and not is_receiving:
            raise RuntimeError("another profiler receives the thread's reports of memory")
        self._mark = 0 if self.request.experimental.get("profile_all_threads") else mark
        if self.has_cpu:
            self.collect_operators(True)

    def __del__(self) -> None:
        """A signal handler may have raised anywhere, and torch must not call a trace that is freed."""
        self._leave()

    def _leave(self) -> None:
        """After this, torch does not call the trace any more. Can be called again."""
        if self._tracer:
            self._shim.leave_operators(self._tracer)
            self._tracer = 0
        if self._host is not None:
            self._shim.leave_thread(self._host)

    def _abandon(self) -> None:
        self._leave()
        if self._handle is not None:
            native.standalone.close(self._handle)

    def collect_operators(self, wanted: bool) -> None:
        if not wanted:
            self._shim.leave_operators(self._tracer)
        elif not self._shim.trace_operators(self._functions, self._tracer,
                                            self.request.record_shapes or self.request.with_flops, self._mark):
            raise RuntimeError("too many traces record torch's operators at once")

    def mark_again(self) -> None:
        """After one of torch's own profiles, in the thread that began this one."""
        self._shim.mark_again(self._host)

    def stop(self) -> NativeResult:
        """Ends the recording, and returns it."""
        end_ns = time.time_ns()
        tracer = self._tracer
        self._leave()
        native.standalone.stop(self._handle)
        recording = self._shim.view_recording(self._host, self._functions, tracer, end_ns)
        return NativeResult(self.request, self._handle, recording, self.metadata, self._begin_ns, end_ns,
                            self._has_kernel_stacks)

    def forget(self) -> None:
        """In the child of a fork, where the recording has ended."""
        self._tracer = 0
