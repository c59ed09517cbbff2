"""Replaces the functions of torch by which its profilers begin and end, wherever torch.autograd and
torch.autograd.profiler hold them. A profile that can't be native, or that nobody asked to be, goes to torch.
"""

from __future__ import annotations

import os
from _thread import RLock

from ..._api.summary import print_message
from .config import with_request
from .session import NativeSession

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any, Optional

_lock = RLock()
_shim: Any = None
_settings: tuple[Any, ...] = ()
_has_kernel_stacks = True
_is_default = False  # all profiles are native
_wanted = 0  # profiles of kpytrace.torch.profile that begin now
_prepared: Optional[NativeSession] = None
_running: Optional[NativeSession] = None
_patches: list[tuple[ModuleType, str, Any, Any]] = []  # module, name, the original, ours
_printed: set[str] = set()


def use(shim: Any, settings: tuple[Any, ...], has_kernel_stacks: bool) -> None:
    """Sets what sessions need: the shim, the arguments of its install(), and whether files have stacks of kernels."""
    global _shim, _settings, _has_kernel_stacks
    _shim, _settings, _has_kernel_stacks = shim, settings, has_kernel_stacks


def set_default(is_native: bool) -> None:
    global _is_default
    _is_default = is_native


class Wanted:
    """Within this context, profiles of the calling thread's session begin natively."""

    def __enter__(self) -> None:
        global _wanted
        with _lock:
            _wanted += 1

    def __exit__(self, *_: object) -> None:
        global _wanted
        with _lock:
            _wanted -= 1


def _take(config: Any, activities: Iterable[Any], filters: Any) -> Optional[NativeSession]:
    """Returns a session for a profile that is to be native, or None."""
    request = getattr(config, "kpytrace_request", None)
    if request is None or not (_is_default or _wanted):
        return None
    why = request.why_not_native(set(activities), filters)
    if why is None:
        return NativeSession(request, set(activities), _shim, _settings, _has_kernel_stacks)
    if why not in _printed:
        _printed.add(why)
        print_message(f"kpytrace: a profile is recorded by Kineto, because {why}")
    return None


def _prepare(original: Callable[..., None]) -> Callable[..., None]:
    def _prepare_profiler(config: Any, activities: Any, activity_filter: Any = None, **more: Any) -> None:
        global _prepared
        with _lock:
            _prepared = None
            session = None if _running else _take(config, activities, activity_filter)
            if session:
                _prepared = session
                return None
        if activity_filter is not None:
            more["activity_filter"] = activity_filter
        return original(config, activities, **more)
    return _prepare_profiler


def _enable(original: Callable[..., None]) -> Callable[..., None]:
    def _enable_profiler(config: Any, activities: Any, *more: Any, **options: Any) -> None:
        global _prepared, _running
        with _lock:
            session, _prepared = _prepared, None
            if session is None:
                return original(config, activities, *more, **options)
            if _running:
                raise RuntimeError("Profiler is already enabled on this thread")
            session.start()
            _running = session
            return None
    return _enable_profiler


def _disable(original: Callable[[], Any]) -> Callable[[], Any]:
    def _disable_profiler() -> Any:
        global _running
        with _lock:
            session, _running = _running, None
            if session is not None:
                return session.stop()
        return original()
    return _disable_profiler


def _toggle(original: Callable[..., None]) -> Callable[..., None]:
    def _toggle_collection_dynamic(enable: bool, activities: Any) -> None:
        with _lock:
            if _running is not None:
                if any(str(one).endswith("CPU") for one in activities):
                    _running.collect_operators(enable)
                return None
        return original(enable, activities)
    return _toggle_collection_dynamic


def _add_metadata(original: Callable[..., None]) -> Callable[..., None]:
    def _add_metadata_json(key: str, value: str) -> None:
        session = _running or _prepared
        if session is None:
            return original(key, value)
        session.metadata[key] = value
        return None
    return _add_metadata_json


def _is_stopped(original: Callable[[], bool]) -> Callable[[], bool]:
    def _is_kineto_stopped() -> bool:
        return False if _running is not None else original()
    return _is_kineto_stopped


def _step(original: Callable[[], None]) -> Callable[[], None]:
    def _kineto_step() -> None:
        return None if _running is not None else original()
    return _kineto_step


def _is_enabled(original: Callable[[], bool]) -> Callable[[], bool]:
    def _profiler_enabled() -> bool:
        return _running is not None or original()
    return _profiler_enabled


_MAKERS = {"_prepare_profiler": _prepare, "_enable_profiler": _enable, "_disable_profiler": _disable,
           "_toggle_collection_dynamic": _toggle, "_add_metadata_json": _add_metadata,
           "_is_kineto_stopped": _is_stopped, "_kineto_step": _step, "_profiler_enabled": _is_enabled,
           "ProfilerConfig": with_request}


def patch(torch: ModuleType) -> None:
    """Puts our functions in the place of torch's. A second call changes nothing."""
    if _patches:
        return
    for name, make in _MAKERS.items():
        holders = [module for module in (torch._C._autograd, torch.autograd, torch.autograd.profiler)
                   if name in vars(module)]
        if not holders:
            continue
        original = vars(holders[-1])[name]
        ours: Any = make(original)
        for module in holders:
            _patches.append((module, name, vars(module)[name], ours))
            setattr(module, name, ours)
    os.register_at_fork(after_in_child=_forked)


def unpatch() -> None:
    """Puts torch's functions back where ours still are. A profile that runs natively ends as such."""
    global _patches
    kept = []
    for module, name, original, ours in reversed(_patches):
        if _running is not None:
            kept.append((module, name, original, ours))
        elif vars(module).get(name) is ours:
            setattr(module, name, original)
    _patches = kept[::-1]


def is_running() -> bool:
    return _running is not None


def _forked() -> None:
    """A child's torch has no running profiler."""
    global _lock, _running, _prepared
    _lock = RLock()
    if _running is not None:
        _running.forget()
    _running = _prepared = None
