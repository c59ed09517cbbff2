"""Adds the calls that torch does not have to each output of torch's profiler. The calls are in the recording that
belongs to a result, and kpytrace.torch._exporter writes them.

torch runs first each time, so an export that torch refuses (a second export, a folder that does not exist) is
refused as before. An export that torch completes never raises because of us. If our part fails, the file is the
one that torch writes, and a warning reports what is missing from it.
"""

from __future__ import annotations

import errno
import functools
import importlib
import json
import os
import tempfile
from _thread import RLock

from . import _export_files as files
from . import _fast
from ._activities import TraceActivity, read_events
from ._native.result import NativeResult
from ._results import (count_calls_once, hand_over, keep_recording, kept_results, may_have_gpu,
                       recording_of, stop_keeping, verbose_of, when_unused)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_FILE_URL = "file://"
_RESULTS = "_kpytrace_results"  # attribute of an EventList, or of its profiler: the results whose events it has

_lock = RLock()  # a recording is read by one export at a time
_patches: list[tuple[Any, str, Any, Any]] = []  # owner, name, the original, ours
_kernel_stacks = True


def _write(result: Any, source: str, target: str, gzip: bool) -> bool:
    """Writes the trace at SOURCE with the calls of RESULT to TARGET. Returns whether it succeeded."""
    from . import _exporter

    def write(to: str) -> None:
        with _lock:
            _exporter.write_trace(recording_of(result), source, to, gzip, verbose_of(result),
                                  _kernel_stacks and may_have_gpu(result))
    try:
        files.write_beside_or_over(target, write)
    except Exception as error:
        if isinstance(error, OSError) and error.filename == target and files.is_stream(target):
            raise  # the reader of the stream has closed it, for torch as for us
        if recording_of(result) is not None:
            files.warn(f"{target} has no Python calls", error)
        return False
    return True


def _write_by_way(result: Any, target: str, gzip: bool, export: Callable[[str], None]) -> None:
    """Calls EXPORT to write the trace to a temporary file, and writes that with our calls to TARGET."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        export(file.name)
        if not _write(result, file.name, target, gzip):
            files.copy(file.name, target, gzip)


# --- files ------------------------------------------------------------------------------------------

def _save(original: Any) -> Any:
    """Wraps _ProfilerResult.save, which writes all of Kineto's files."""
    def save(self: Any, path: str) -> None:
        if recording_of(self) is None:
            return original(self, path)
        target = os.fsdecode(path)
        target = target[len(_FILE_URL):] if target.startswith(_FILE_URL) else target
        if files.breaks_json(target):  # Kineto writes the name into the file without escapes
            return _write_by_way(self, target, False, functools.partial(original, self))
        before = files.identity(target)
        original(self, path)
        if files.identity(target) != before:  # otherwise Kineto could not write it, and has logged that
            _write(self, target, target, False)
        return None
    return save


def _export_trace(original: Any, save: Any) -> Any:
    """Wraps torch.profiler.profile.export_chrome_trace, to write .gz faster."""
    def export_chrome_trace(self: Any, path: str, *more: Any, **options: Any) -> Any:
        result = getattr(self.profiler, "kineto_results", None)
        if isinstance(result, NativeResult):
            return result.save(path)
        # Its other arguments differ between releases of torch, and so do the profilers of GPUs that add to the
        # file afterwards. With any of these torch does all the work, and calls our save().
        if any((*more, *options.values())) or result is None or not path.endswith(".gz") or \
                any(getattr(self, name, False) for name in ("_use_cupti_monitor", "_use_cuspy")):
            return original(self, path, *more, **options)
        return _write_by_way(result, path, True, functools.partial(save, result))
    return export_chrome_trace


def _export_in_python(original: Any, activities: Any) -> Any:
    """Wraps the exporter that torch has in Python. Our calls are not passed through its loop."""
    class Torchs:
        def __init__(self, result: Any) -> None:
            self.result = result

        def trace_activities(self) -> Any:
            return activities(self.result)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.result, name)

    def export_chrome_trace(kineto_results: Any, path: str, *more: Any, **options: Any) -> None:
        def export(to: str) -> None:
            original(Torchs(kineto_results), to, *more, **options)

        if isinstance(kineto_results, NativeResult):
            return kineto_results.save(path, *more, **options)
        gzip = path.endswith(".gz")
        if gzip or files.is_stream(path):
            _write_by_way(kineto_results, path, gzip, export)
        else:
            export(path)
            if recording_of(kineto_results) is not None:
                _write(kineto_results, path, path, False)
    return export_chrome_trace


# --- objects ----------------------------------------------------------------------------------------

def _end_session(original: Any) -> Any:
    """Wraps _disable_profiler, for programs that call it without torch.autograd.profiler."""
    def _disable_profiler() -> Any:
        result = original()
        keep_recording(result)
        return result
    return _disable_profiler


def _with_calls(original: Any) -> Any:
    """Wraps a method of _ProfilerResult that returns Python calls. First passes to torch the calls that are still
    due."""
    def method(self: Any) -> Any:
        try:
            with _lock:
                hand_over(self)
        except Exception as error:
            files.warn("torch's events have no Python calls", error)
        return original(self)
    return method


def _events(result: Any, base_ns: int, of_list: bool) -> list[Any]:
    """Returns the calls that torch does not have, as Chrome events; times are nanoseconds since BASE_NS."""
    try:
        return _read_events(result, base_ns, of_list)
    except Exception as error:
        files.warn("only the Python calls that torch received are listed", error)
        return []


def _read_events(result: Any, base_ns: int, of_list: bool) -> list[Any]:
    from . import _exporter

    recording = recording_of(result)
    if recording is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "events.json")
        with _lock:
            _exporter.write_list(recording, path, base_ns, of_list, verbose_of(result))
        return read_events(path)[1:]


def _trace_activities(original: Any) -> Any:
    def trace_activities(self: Any) -> list[Any]:
        found = list(original(self))
        added = [TraceActivity(event) for event in _events(self, 0, False)]
        for activity in added:  # torch's own activities come first
            activity.move_by(len(found))
        return found + added
    return trace_activities


def _parse_results(original: Any) -> Any:
    """Wraps torch.autograd.profiler.profile._parse_kineto_results, which makes the events of one result."""
    def _parse_kineto_results(self: Any, result: Any, *more: Any, **options: Any) -> Any:
        events = original(self, result, *more, **options)
        return events if recording_of(result) is None else count_calls_once(events)
    return _parse_kineto_results


def _ensure_events(original: Any) -> Any:
    """Stores in an EventList the results whose events it has, also those of earlier sessions. The profiler keeps
    these, because torch drops a list without events, although its session may have calls."""
    def _ensure_function_events(self: Any) -> None:
        before = self._function_events
        original(self)
        events = self._function_events
        if events is not before and events is not None:
            results = list(getattr(self, _RESULTS, []))
            if self.kineto_results is not None:
                results.append(self.kineto_results)
            if self.acc_events:
                setattr(self, _RESULTS, results)
            setattr(events, _RESULTS, results)
    return _ensure_function_events


def _export_events(original: Any) -> Any:
    """Wraps EventList.export_chrome_trace, which writes a list of all events in torch's own format."""
    def export_chrome_trace(self: Any, path: str) -> None:
        lines = [json.dumps({"name": event["name"], "ph": "X", "ts": event["ts"] / 1000,
                             "dur": event["dur"] / 1000, "tid": event["tid"],
                             "pid": "CPU functions", "args": {}}, ensure_ascii=False)
                 for result in getattr(self, _RESULTS, [])
                 for event in _events(result, result.trace_start_ns(), True)]
        if not lines:
            return original(self, path)
        if files.is_stream(path):
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                original(self, file.name)
                _append(file.name, lines)
                return files.copy(file.name, path, False)
        original(self, path)
        return _append(path, lines)
    return export_chrome_trace


def _append(path: str, lines: list[str]) -> None:
    """Adds LINES to the JSON list at PATH. If that fails, the file stays as it is."""
    def write(to: str) -> None:
        with open(to, "w", encoding="utf-8") as file:
            file.write(text[:-1] + comma + ", ".join(lines) + "]")

    def replace(target: str) -> None:
        beside = f"{target}.{os.getpid()}.tmp"
        try:
            write(beside)
            os.replace(beside, target)
        except BaseException:
            files.remove(beside)
            raise
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if not text.startswith("[") or not text.endswith("]"):
            raise OSError(errno.EBADMSG, "the file is not a list of events", path)
        comma = ", " if text != "[]" else ""
        files.write_beside_or_over(path, replace)
    except Exception as error:
        files.warn(f"{path} has only the Python calls that torch received", error)


# --- patching torch ---------------------------------------------------------------------------------

def _patch(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    original = vars(owner)[name]
    called = getattr(owner, name)
    ours = make(called)
    functools.update_wrapper(ours, called, ("__name__", "__qualname__", "__doc__"))
    setattr(owner, name, ours)
    _patches.append((owner, name, original, ours))


def install(torch: ModuleType, kernel_stacks: bool) -> None:
    """KERNEL_STACKS: whether kernels get the Python stack that launched them. A second call changes only this."""
    global _kernel_stacks
    _kernel_stacks = bool(kernel_stacks)
    if _patches:
        return
    import torch.autograd.profiler_util  # submodules, which `import torch` imports anyway
    import torch.profiler.profiler

    result = torch._C._autograd._ProfilerResult
    save = result.save
    _patch(result, "save", _save)
    _patch(result, "events", _with_calls)
    _patch(result, "experimental_event_tree", lambda original: _fast.event_tree(_with_calls(original)))
    _patch(torch.profiler.profiler._KinetoProfile, "export_chrome_trace",
           lambda original: _export_trace(original, save))
    _patch(torch.autograd.profiler.profile, "_ensure_function_events", _ensure_events)
    _patch(torch.autograd.profiler.profile, "_parse_kineto_results", _parse_results)
    _patch(torch.autograd.profiler_util.EventList, "export_chrome_trace", _export_events)
    for name, make in (("export_stacks", _fast.export_stacks), ("key_averages", _fast.key_averages)):
        _patch(torch.autograd.profiler_util.EventList, name, functools.partial(make, attribute=_RESULTS))
    for module in (torch.autograd, torch._C._autograd):
        _patch(module, "_disable_profiler", _end_session)
    if not hasattr(result, "trace_activities"):
        return  # torch 2.11
    activities = result.trace_activities
    _patch(result, "trace_activities", _trace_activities)
    in_python = importlib.import_module("torch.profiler._chrome_trace_export")
    _patch(in_python, "export_chrome_trace",
           lambda original: _export_in_python(original, activities))


def uninstall(torch: ModuleType) -> None:
    """Removes our functions, but not while a result has a recording or a session will have one, since its file
    would have no Python calls otherwise. A function that another library has put on top of ours stays; without
    recordings, ours then does nothing."""
    with _lock:
        for result in kept_results():
            hand_over(result)
    when_unused(functools.partial(_remove, torch))


def _remove(torch: ModuleType) -> None:
    stop_keeping(torch)
    while _patches:
        owner, name, original, ours = _patches.pop()
        if vars(owner).get(name) is ours:
            setattr(owner, name, original)
