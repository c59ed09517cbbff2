"""Replaces the functions of torch by which its profilers begin and end, wherever torch.autograd and
torch.autograd.profiler hold them. A profile that can't be native, or that nobody asked to be, goes to torch.
"""

from __future__ import annotations

import atexit
import os
from _thread import RLock, get_ident

from ..._api.summary import print_message
from .. import _shim as _shim_module
from .._environment import needed_torch
from .._settings import settings_of
from .config import with_request
from .lists import patches
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
_wanted: set[int] = set()  # threads in which a kpytrace.torch.profile begins now
_prepared: list[NativeSession] = []  # torch crashes if one of these begins in Kineto, which is not prepared
# The profiles that run, with the threads that began them, the last one begun at the end. None stands for one of torch's
# own, during a native one.
_running: list[tuple[int, Optional[NativeSession]]] = []
_patches: list[tuple[Any, str, Any, Any]] = []  # module or class, name, the original, ours
_printed: set[str] = set()


def load(threads: Optional[bool] = None) -> None:
    """Lets profiles be native if that is asked for. THREADS: threads that start while they run are recorded, too; None
    changes nothing. Raises TorchHostError."""
    global _shim, _settings
    torch = needed_torch()
    with _lock:
        if _shim is None:
            _shim = _shim_module.load(torch)
            atexit.register(_end)
        if threads is not None or not _settings:
            _settings = settings_of(torch, "full", threads is not False)
        _patch(torch)


def install(threads: bool, has_kernel_stacks: bool) -> None:
    """Makes all later profiles native. THREADS as in load(); HAS_KERNEL_STACKS: files have stacks of kernels."""
    global _is_default, _has_kernel_stacks
    load(threads)
    _has_kernel_stacks = has_kernel_stacks
    _is_default = True


def uninstall() -> None:
    """Makes later profiles torch's own. One that runs ends as it began."""
    global _is_default
    _is_default = False
    with _lock:
        if _shim and not _running and not _prepared and not _shim.free_thread(False):
            _unpatch()


class Wanted:
    """In this context, a profile that the calling thread begins is native."""

    def __enter__(self) -> None:
        _wanted.add(get_ident())

    def __exit__(self, *_: object) -> None:
        _wanted.discard(get_ident())


def _take(config: Any, activities: Iterable[Any], filters: Any) -> Optional[NativeSession]:
    """Returns a session for a profile that is to be native, or None."""
    request = getattr(config, "kpytrace_request", None)
    is_own_class = get_ident() in _wanted
    if request is None or not (_is_default or is_own_class):
        return None
    why = request.why_not_native(set(activities), filters, is_own_class)
    if why is None:
        return NativeSession(request, set(activities), _shim, _settings, _has_kernel_stacks)
    _report(why)
    return None


def _report(why: str) -> None:
    """Prints why a profile is not native, once for each reason."""
    if why not in _printed:
        _printed.add(why)
        print_message(f"kpytrace: a profile is recorded by Kineto, because {why}")


def _begins(session: NativeSession) -> bool:
    """Starts SESSION. Returns False if that fails. Exceptions of signal handlers pass."""
    try:
        session.start()
    except Exception as error:
        _report(str(error))
        return False
    return True


def _take_prepared(config: Any) -> Optional[NativeSession]:
    """Returns the session that was prepared for CONFIG, or None. Profiles have ids; other users of torch's functions,
    such as emit_nvtx(), have none, and don't prepare."""
    request = getattr(config, "kpytrace_request", None)
    for index in reversed(range(len(_prepared))):
        if request is not None and request.is_of(_prepared[index].request):
            return _prepared.pop(index)
    return None


def _own() -> int:
    """Returns the index of the profile that a call of torch's functions is about: the last one that the calling thread
    began, as in torch, or the last native one. -1: none."""
    thread = get_ident()
    natives = [index for index, (_, session) in enumerate(_running) if session]
    own = [index for index, (began, _) in enumerate(_running) if began == thread]
    return (own or natives or [-1])[-1]


def _last() -> Optional[NativeSession]:
    """Returns the native profile that runs, or None, also if one of torch's own runs in it."""
    with _lock:
        index = _own()
        return _running[index][1] if index >= 0 else None


def _mark_again() -> None:
    """Marks the calling thread again if a native profile runs that it began."""
    thread = get_ident()
    for began, session in reversed(_running):
        if began == thread and session:
            session.mark_again()


def _original(name: str) -> Any:
    """Returns torch's function NAME."""
    return next(original for _, patched, original, _ in _patches if patched == name)


def _prepare(original: Callable[..., None]) -> Callable[..., None]:
    def _prepare_profiler(config: Any, activities: Any, activity_filter: Any = None, **more: Any) -> None:
        with _lock:
            session = _take(config, activities, activity_filter)
            if session:
                _prepared.append(session)
                return None
        if activity_filter is not None:
            more["activity_filter"] = activity_filter
        return original(config, activities, **more)
    return _prepare_profiler


def _enable(original: Callable[..., None]) -> Callable[..., None]:
    def _enable_profiler(config: Any, activities: Any, *more: Any, **options: Any) -> None:
        with _lock:
            session = _take_prepared(config)
            if session and not _begins(session):
                session = None
                _original("_prepare_profiler")(config, activities)
            if session is None:
                _shim.free_thread(True)  # else torch refuses to begin
                try:
                    original(config, activities, *more, **options)
                except BaseException:
                    _mark_again()
                    raise
            if session or _running:
                _running.append((get_ident(), session))
    return _enable_profiler


def _disable(original: Callable[[], Any]) -> Callable[[], Any]:
    def _disable_profiler() -> Any:
        with _lock:
            index = _own()
            session = _running.pop(index)[1] if index >= 0 else None
            _shim.free_thread(False)
            try:
                return session.stop() if session else original()
            finally:
                _mark_again()
    return _disable_profiler


def _toggle(original: Callable[..., None]) -> Callable[..., None]:
    def _toggle_collection_dynamic(enable: bool, activities: Any) -> None:
        with _lock:
            session = _last()
            if session:
                if any(str(one).endswith("CPU") for one in activities):
                    session.collect_operators(enable)
                return None
        return original(enable, activities)
    return _toggle_collection_dynamic


def _add_metadata(original: Callable[..., None]) -> Callable[..., None]:
    def _add_metadata_json(key: str, value: str) -> None:
        session = _last()
        if session is None and _prepared:
            session = _prepared[-1]
        if session is None:
            return original(key, value)
        session.metadata[key] = value
        return None
    return _add_metadata_json


def _is_stopped(original: Callable[[], bool]) -> Callable[[], bool]:
    def _is_kineto_stopped() -> bool:
        return False if _last() else original()
    return _is_kineto_stopped


def _step(original: Callable[[], None]) -> Callable[[], None]:
    def _kineto_step() -> None:
        return None if _last() else original()
    return _kineto_step


def _is_enabled(original: Callable[[], bool]) -> Callable[[], bool]:
    def _profiler_enabled() -> bool:
        _shim.free_thread(False)
        return bool(_last()) or original()
    return _profiler_enabled


def _type(original: Callable[[], Any]) -> Callable[[], Any]:
    def _profiler_type() -> Any:
        kind = original()
        return type(kind).KINETO if _last() else kind
    return _profiler_type


_MAKERS = {"_prepare_profiler": _prepare, "_enable_profiler": _enable, "_disable_profiler": _disable,
           "_toggle_collection_dynamic": _toggle, "_add_metadata_json": _add_metadata,
           "_is_kineto_stopped": _is_stopped, "_kineto_step": _step, "_profiler_enabled": _is_enabled,
           "_profiler_type": _type,
           "ProfilerConfig": with_request}


def _patch(torch: ModuleType) -> None:
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
    for kind, name, ours in patches(torch):
        _patches.append((kind, name, vars(kind)[name], ours))
        setattr(kind, name, ours)


def _unpatch() -> None:
    """Puts torch's functions back where ours still are."""
    while _patches:
        module, name, original, ours = _patches.pop()
        if vars(module).get(name) is ours:
            setattr(module, name, original)


def _end() -> None:
    """At exit, torch must not call a trace that is freed."""
    with _lock:
        while _running:
            _, session = _running.pop()
            if session:
                session.stop()


def _forked() -> None:
    """A child's torch has no running profiler."""
    global _lock
    _lock = RLock()
    for _, session in _running:
        if session:
            session.forget()
    _running.clear()
    _wanted.clear()


os.register_at_fork(after_in_child=_forked)
