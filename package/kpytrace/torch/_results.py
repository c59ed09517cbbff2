"""Keeps recordings as long as the profiler results that they belong to.

torch stores the result of a session as `kineto_results` of its profiler object, right after the session has ended.
A descriptor in place of that attribute receives it, without a frame in any trace.
"""

from __future__ import annotations

import weakref

from ._types import MODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, Optional

ATTRIBUTE = "kineto_results"

_shim: Any = None
# By result: the recording, whether it is verbose, and whether a GPU may have been recorded.
_recordings: weakref.WeakKeyDictionary[Any, tuple[object, bool, bool]] = weakref.WeakKeyDictionary()
_when_unused: Optional[Callable[[], None]] = None


class _KinetoResults:
    """The descriptor of the attribute. The value is stored in the object as before."""

    def __set__(self, profiler: Any, result: Any) -> None:
        profiler.__dict__[ATTRIBUTE] = result
        if result is not None:
            keep_recording(result, profiler)

    def __get__(self, profiler: Any, owner: Any = None) -> Any:
        if profiler is None:
            return self
        try:
            return profiler.__dict__[ATTRIBUTE]
        except KeyError:
            raise AttributeError(ATTRIBUTE) from None

    def __delete__(self, profiler: Any) -> None:
        profiler.__dict__.pop(ATTRIBUTE, None)


def end_at_exit(torch: ModuleType, shim: Any) -> None:
    """Ends a profiler that is still running at exit, because torch crashes if it outlives the interpreter."""
    import atexit

    def end() -> None:
        if shim.tracing():
            try:
                torch.autograd._disable_profiler()
            except RuntimeError:  # a profiler of another thread
                pass
    atexit.register(end)


def _is_verbose(profiler: Any) -> bool:
    """Whether the session was to record call stacks. torch exposes this only in the state for pickle, at an index
    that differs between releases: the index where a config with stacks differs from one without."""
    try:
        config = profiler.experimental_config
        states = [kind.__getstate__() for kind in (type(config)(), type(config)(verbose=True))]
        place = [no != yes for no, yes in zip(*states)].index(True)
        return bool(config.__getstate__()[place])
    except (AttributeError, LookupError, TypeError, ValueError):
        return False


def keep_recording(result: Any, profiler: Any = None) -> None:
    """Stores the recording of the session that has just ended for RESULT, its result."""
    recording = _shim.take_recording()
    if recording is not None:
        # The profiler has the device that was requested. Without a profiler a GPU may have been recorded.
        may_have_gpu = getattr(profiler, "use_device", "unknown") is not None
        # Called after the dictionary has dropped the result: the newest weak reference is called first.
        weakref.finalize(result, _look_whether_used).atexit = False
        _recordings[result] = recording, _is_verbose(profiler), may_have_gpu


def when_unused(call: Callable[[], None]) -> None:
    """Calls CALL, once, when no result has a recording and no session will have one, unless keep_recordings() is
    called before."""
    global _when_unused
    _when_unused = call
    _look_whether_used()


def _look_whether_used() -> None:
    global _when_unused
    call = _when_unused
    if call is not None and not _recordings and not _shim.tracing():
        _when_unused = None
        call()


def keep_recordings(torch: ModuleType, shim: Any) -> None:
    global _shim, _when_unused
    _shim, _when_unused = shim, None
    setattr(torch.autograd.profiler.profile, ATTRIBUTE, _KinetoResults())


def stop_keeping(torch: ModuleType) -> None:
    if ATTRIBUTE in vars(torch.autograd.profiler.profile):
        delattr(torch.autograd.profiler.profile, ATTRIBUTE)


def kept_results() -> list[Any]:
    """Returns the results that have a recording."""
    return list(_recordings)


def hand_over(result: Any) -> None:
    """Passes to torch the calls that are still due for RESULT, if any. One thread at a time may call this."""
    recording = recording_of(result)
    if recording is not None:
        _shim.hand_over(recording, result)


def count_calls_once(events: list[Any]) -> list[Any]:
    """EVENTS are those of one result. The parts of a call that was cut at annotations share its id; only the first
    counts as a call. Their times add up unchanged."""
    seen = set()
    for event in events:
        number = getattr(event, "python_id", -1)
        if number > 0:
            if number in seen:
                event.count = 0
            seen.add(number)
    return events


def recording_of(result: Any) -> Optional[object]:
    """Returns the capsule "kpytrace.recording" (hosts/torch/session/exporter_view.h) of a _ProfilerResult, or
    None."""
    return _recordings.get(result, (None,))[0]


def is_fast(result: Any) -> bool:
    """Whether RESULT is of a session in mode "fast", whose calls torch never receives."""
    recording = recording_of(result)
    return recording is not None and MODES[_shim.mode_of(recording)] == "fast"


def verbose_of(result: Any) -> bool:
    """Whether the calls of RESULT are written with their call stacks."""
    return _recordings.get(result, (None, False))[1]


def may_have_gpu(result: Any) -> bool:
    """Returns False if no GPU was recorded, so that the file need not be searched for one."""
    return _recordings.get(result, (None, False, False))[2]
