"""Hooks for the end of the process, before a fork, in a forked child, and when multiprocessing sets a name."""

from __future__ import annotations

import os
import sys

from . import process_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional

_watched: set[Callable[[], None]] = set()  # the `stop` functions that watch() has registered
_watches_forks = False
_fork_filter: Any = None  # the last warnings filter that suppressed Python's warning about threads


def watch(stop: Callable[[], None], forget_in_child: Callable[[], None]) -> None:
    """Runs `stop` when the process ends, and `forget_in_child` in each forked child. A second call for the same
    `stop` does nothing."""
    if stop in _watched:
        return
    import atexit

    atexit.register(stop)
    os.register_at_fork(after_in_child=forget_in_child)
    _watched.add(stop)


def stop_at_exit(stop: Callable[[], object], output: Optional[str]) -> None:
    """Calls `stop` while the process ends. Prints an exception, since no caller could catch it."""
    try:
        stop()
    except Exception as error:
        from .._api.summary import print_failure

        print_failure(output, error)


def _are_other_threads_ours() -> bool:
    """Whether the other threads of the process are all threads of kpytrace, which flush and listen. Returns False
    if there are no other threads."""
    ours = False
    for tid in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{tid}/comm", encoding="utf-8", errors="replace") as file:
                name = file.read()
        except OSError:  # the thread has ended
            continue
        if tid != str(os.getpid()):  # the first thread has the program's name, which may be kpytrace
            if name != "kpytrace\n":
                return False
            ours = True
    return ours


def _before_fork() -> None:
    """Python (3.12 and later) warns about a fork in a process with several threads. A filter suppresses the
    warning while all other threads are ours, and is removed when they are not. warnings.filterwarnings makes the
    filter from a pattern, because libraries read, compare and pickle the filters, and pass them to their
    workers."""
    global _fork_filter
    import warnings

    try:
        get: Any = getattr(warnings, "_get_filters", lambda: warnings.filters)  # 3.14 and later: of the context
        if not _are_other_threads_ours():
            while _fork_filter in get():
                get().remove(_fork_filter)
        elif get()[:1] != [_fork_filter]:  # a new filter makes Python repeat warnings, so add it only if needed
            warnings.filterwarnings("ignore", r".*use of fork(pty)?\(\) may lead to deadlocks", DeprecationWarning)
            _fork_filter = get()[0]
    except OSError:  # there is no /proc
        pass


def allow_forks() -> None:
    """Prevents Python's warning about the threads that write a trace, since the program did not start them."""
    global _watches_forks
    if sys.version_info >= (3, 12) and not _watches_forks:
        _watches_forks = True
        os.register_at_fork(before=_before_fork)


def await_name(named: Callable[[], None]) -> None:
    """Calls `named` once multiprocessing has set the name of this process, which it does after the process has
    begun. The trace of a killed process needs the name, too. multiprocessing's own hooks run only in forked
    processes."""
    from multiprocessing.process import BaseProcess

    real = BaseProcess._bootstrap  # type: ignore[attr-defined]

    def _bootstrap(self: Any, *args: Any, **more: Any) -> Any:
        BaseProcess._bootstrap = real  # type: ignore[attr-defined]
        process_info.set_name(str(self.name))
        named()
        return real(self, *args, **more)

    if real.__module__ != __name__:
        BaseProcess._bootstrap = _bootstrap  # type: ignore[attr-defined]
