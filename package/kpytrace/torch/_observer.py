"""torch's ExecutionTraceObserver, implemented with kpytrace's recorder.

The methods have the names of torch's; docs/execution_trace.md lists their improvements.
"""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
import weakref
from threading import RLock
from warnings import warn

from .._processes.process_hooks import allow_forks
from . import _shim
from ._environment import needed_torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Optional

VARIABLE = "ENABLE_PYTORCH_EXECUTION_TRACE"
_RESOURCES = "_resources"

# Observers whose files must be completed before Python ends.
_registered: weakref.WeakSet[ExecutionTraceObserver] = weakref.WeakSet()


class ExecutionTraceObserver:
    """Records torch's operators with their inputs and outputs into an execution trace.

    A replacement of torch.profiler.ExecutionTraceObserver: it can be passed to
    torch.profiler.profile(execution_trace_observer=...). Several can record at once.

    python_stacks  record the Python stack of each operator, too
    """

    def __init__(self, python_stacks: bool = True) -> None:
        self.python_stacks = python_stacks
        self.extra_resources_collection = False
        self.resources_dir = ""
        self.output_file_path = ""
        self._observer: Any = None
        self._execution_trace_running = False  # the name in torch, which programs read
        self._lock = RLock()

    def __del__(self) -> None:
        if getattr(self, "_observer", None) is not None and not sys.is_finalizing():
            self.unregister_callback()

    @staticmethod
    def build_execution_trace_obs_from_env() -> Optional[ExecutionTraceObserver]:
        """Returns an observer that is registered for a temporary file if ENABLE_PYTORCH_EXECUTION_TRACE is 1, or
        else None. The observer also has its resources folder if ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS is 1."""
        if os.environ.get(VARIABLE) != "1":
            return None
        try:
            handle, path = tempfile.mkstemp(suffix=".et.json")
            os.close(handle)
            observer = ExecutionTraceObserver().register_callback(path)
        except OSError as error:
            warn(f"kpytrace: {VARIABLE} is set, but no execution trace is recorded: {error}",
                 stacklevel=2)
            return None
        observer.set_extra_resource_collection(os.environ.get(f"{VARIABLE}_EXTRAS") == "1")
        return observer

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> Optional[str]:
        """Returns the folder beside TRACE_PATH with the files that a replay needs, or None if it does not exist
        and was not made."""
        stem = os.fspath(trace_path)
        for suffix in (".gz", ".json"):
            if stem.endswith(suffix):
                stem = stem[:-len(suffix)]
        folder = stem + _RESOURCES
        if create_dir:
            try:
                os.makedirs(folder, exist_ok=True)
            except OSError as error:
                warn(f"kpytrace: the resources folder of the execution trace can't be made: {error}",
                     stacklevel=2)
        return folder if os.path.isdir(folder) else None

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Begins the file, which replaces an existing one, and is compressed if its name ends with .gz. Does
        nothing if the observer is registered. After an OSError, nothing is registered."""
        with self._lock:
            if self._observer is not None:
                return self
            path = os.fspath(output_file_path)
            allow_forks()
            observer = _new_observer(self.python_stacks,
                                     f"{VARIABLE}_SAVE_INTEGRAL_TENSOR_RANGE" in os.environ,
                                     os.environ.get(f"{VARIABLE}_SAVE_INTEGRAL_TENSOR_DATA", ""))
            # An absolute path, since the process may change its working folder before the file is written.
            _shim.load().open_observer(observer, os.path.abspath(path) if path else path)
            self._observer = observer
            self.output_file_path = path
            self.resources_dir = ""
            _registered.add(self)
        return self

    @staticmethod
    def recover(journal: str, output_file_path: str) -> None:
        """Makes a trace from the journal NAME.json.journal of a process that was killed."""
        _shim.load().recover_trace(_new_observer(), journal, output_file_path)

    def set_extra_resource_collection(self, val: bool) -> None:
        """Sets whether generated kernels are copied to the resources folder, which is made at once."""
        self.extra_resources_collection = val
        if val:
            self.get_resources_dir(can_create=True)

    def get_resources_dir(self, can_create: bool = False) -> Optional[str]:
        """Returns the resources folder, or None if no resources are collected."""
        if not self.extra_resources_collection:
            return None
        if not self.resources_dir:
            found = self.get_resources_dir_for_et_path(self.output_file_path, can_create)
            self.resources_dir = found or ""
        return self.resources_dir or None

    def unregister_callback(self) -> None:
        """Stops the observer and completes the file. Raises OSError if the file can't be written."""
        with self._lock:
            observer, self._observer = self._observer, None
            if observer is None:
                return
            self._stop(observer)
            _registered.discard(self)
            self._save_kernels()
            _shim.load().close_observer(observer)

    def start(self) -> None:
        """Begins to record. Does nothing if the observer records already, or if nothing is registered."""
        with self._lock:
            if self._observer is None or self._execution_trace_running:
                return
            _allow_swaps()
            allow_forks()
            _shim.load().start_observer(self._observer)
            self._execution_trace_running = True
            self._record_process_groups()

    def stop(self) -> None:
        """Stops recording until the next start()."""
        with self._lock:
            if self._observer is not None:
                self._stop(self._observer)

    def cleanup(self) -> None:
        """Calls unregister_callback(), under the name that profilers use."""
        self.unregister_callback()

    @property
    def is_registered(self) -> bool:
        return self._observer is not None

    def is_running(self) -> bool:
        return self._execution_trace_running

    def get_output_file_path(self) -> Optional[str]:
        """Returns the argument of register_callback(), or None."""
        return self.output_file_path or None

    def _stop(self, observer: Any) -> None:
        if self._execution_trace_running:
            self._execution_trace_running = False
            _shim.load().stop_observer(observer)

    def _save_kernels(self) -> None:
        """Copies the files that torch's compiler has generated. Only warns on an error, since the trace is useful
        without them."""
        folder = self.get_resources_dir()
        cache = sys.modules.get("torch._inductor.codecache")
        if folder is None or cache is None:
            return
        import shutil

        for module in list(cache.PyCodeCache.modules):
            path = getattr(module, "__file__", None)
            try:
                if path:
                    shutil.copyfile(path, os.path.join(folder, os.path.basename(path)))
            except OSError as error:
                warn(f"kpytrace: {path} can't be copied to the resources of the execution trace: {error}",
                     stacklevel=3)

    def _record_process_groups(self) -> None:
        torch = needed_torch()
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            import json

            groups = torch.distributed.distributed_c10d._world.pg_config_info
            node = torch.autograd._record_function_with_args_enter(
                "## process_group:init ##", json.dumps(groups, default=_plain))
            torch.autograd._record_function_with_args_exit(node)


def _new_observer(python_stacks: bool = False, ranges: bool = False, data_ops: str = "") -> Any:
    from .. import plugin_path

    return _shim.load().observer(str(plugin_path()), bool(python_stacks), ranges, data_ops)


def _plain(value: Any) -> Any:
    """Converts a number or an array of numpy for JSON."""
    return value.tolist()


@atexit.register
def _end_all() -> None:
    for observer in list(_registered):
        try:
            observer.unregister_callback()
        except OSError as error:
            print(f"kpytrace: {error}", file=sys.stderr)


_swap: Any = None


def _allow_swaps() -> None:
    """Makes torch swap tensors that we have weak references to. torch refuses to swap tensors with weak
    references."""
    global _swap
    if _swap is not None:
        return
    torch, shim = needed_torch(), _shim.load()
    _swap = torch._C._swap_tensor_impl

    def swap(one: Any, other: Any) -> None:
        shim.forget_tensor(one)
        shim.forget_tensor(other)
        _swap(one, other)
    torch._C._swap_tensor_impl = swap


_replaced: list[tuple[Any, str, Any]] = []  # owner, name, the original


def _replace(owner: Any, name: str, ours: Any) -> None:
    _replaced.append((owner, name, vars(owner)[name]))
    setattr(owner, name, ours)


def serve(torch: ModuleType, programs: bool) -> None:
    """Makes profilers that get an observer by the environment use ours, and, if PROGRAMS is set, also programs
    that make a torch.profiler.ExecutionTraceObserver."""
    stop_serving()
    _replace(torch.profiler.ExecutionTraceObserver, "build_execution_trace_obs_from_env",
             staticmethod(ExecutionTraceObserver.build_execution_trace_obs_from_env))
    if programs:
        for module in (torch.profiler, torch.profiler.profiler):
            _replace(module, "ExecutionTraceObserver", ExecutionTraceObserver)


def stop_serving() -> None:
    while _replaced:
        setattr(*_replaced.pop())
