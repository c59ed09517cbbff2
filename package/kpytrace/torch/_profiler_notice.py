"""Prints a line if the program's torch.profiler asks for GPU activities while a trace of kpytrace records them: CUPTI
serves one tool at a time, and torch's profiler would have none without a word."""

from __future__ import annotations

import sys
from functools import wraps

from .._api import native
from .._api.summary import print_message
from ._import_hook import AfterImport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_FUNCTIONS = ("_prepare_profiler", "_enable_profiler")  # of torch.autograd.profiler; all profilers of torch call one
_MESSAGE = ("kpytrace: torch.profiler gets no GPU activities while kpytrace records them: CUPTI serves one tool at a "
            "time. Give kpytrace gpu=False (--no-gpu) to let torch.profiler have it")


class ProfilerNotice:
    """Looks at one trace's profilers, between start() and stop()."""

    def __init__(self, quiet: bool) -> None:
        self._handle: Any = None
        self._has_printed = quiet
        self._replaced: dict[str, tuple[Any, Any]] = {}  # by name: torch's function and ours
        self._import = AfterImport(self._begin)

    def start(self, handle: Any) -> None:
        self._handle = handle
        self._import.start()

    def stop(self) -> None:
        """May be called again. A function that another tool has wrapped stays, and does nothing more."""
        self._import.stop()
        self._handle = None
        profiler: Any = sys.modules.get("torch.autograd.profiler")
        for name, (theirs, ours) in self._replaced.items():
            if getattr(profiler, name, None) is ours:
                setattr(profiler, name, theirs)
        self._replaced = {}

    def _begin(self) -> None:
        profiler: Any = sys.modules.get("torch.autograd.profiler")
        for name in _FUNCTIONS:
            theirs = getattr(profiler, name, None)
            if theirs is not None and self._handle is not None:
                ours = self._noticing(theirs)
                self._replaced[name] = theirs, ours
                setattr(profiler, name, ours)

    def _noticing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def noticing(*args: Any, **kwargs: Any) -> Any:
            self._notice(args)
            return function(*args, **kwargs)
        return noticing

    def _notice(self, args: tuple[Any, ...]) -> None:
        """ARGS: the profiler's configuration and its activities."""
        handle = self._handle
        if handle is None or self._has_printed or not native.standalone.is_recording(handle):
            return
        wants_gpu = any("CUDA" in str(activity) for activity in (args[1] if len(args) > 1 else ()))
        if wants_gpu:
            self._has_printed = True
            print_message(_MESSAGE)
