"""The traces that run in this process: their list, the lock of their starts, and the hooks for the end of the process
and for its children. trace.py has the traces, and memory.py asks for the trace whose file a recording joins."""

from __future__ import annotations

import os
from _thread import RLock  # threading itself takes a millisecond to import

from . import native
from .registry import Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

lock = RLock()  # held during each start
traces = Registry()


def streaming_to(path: str) -> Any:
    """Returns the running trace that writes the .kpt file `path` meanwhile, or None."""
    for trace in traces.all():
        if trace._stream == path and trace.running:
            return trace
    return None


def _stop_at_exit() -> None:
    from .._processes import process_hooks

    for trace in reversed(list(traces.all())):
        if trace._handle is None:  # its start() failed, and the exception still refers to it
            continue
        process_hooks.stop_at_exit(trace.stop, trace._output)


def _forget_in_child() -> None:
    global lock
    lock = RLock()  # another thread of the parent may have held the locks at the fork
    for trace in traces.all():
        trace._lock = RLock()
        if trace._operators:
            trace._operators.forget()
        if trace._triggers:
            trace._triggers.forget()
    traces.clear()


def prepare() -> str:
    """Loads the C host. The first call also registers the hooks for the end of the process and for forks. Returns
    the path of the plugin."""
    from .._processes import process_hooks

    plugin = native.load()
    process_hooks.watch(_stop_at_exit, _forget_in_child)
    return plugin
