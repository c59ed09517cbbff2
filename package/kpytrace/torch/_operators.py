"""torch's operators in a trace of the program: kpytrace.start(torch=True).

torch may be imported before the trace starts, while it runs, or never. The shim calls the trace's tracer for each
operator, so a trace must not end before stop() was called here.
"""

from __future__ import annotations

import sys
from _thread import RLock

from .._api import native
from .._api.summary import print_message
from ._import_hook import AfterImport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_printed: set[str] = set()  # reasons


class Operators:
    """Records torch's operators in one trace, between start() and stop()."""

    def __init__(self, quiet: bool, shapes: bool) -> None:
        self._quiet = quiet
        self._shapes = shapes  # record inputs, too
        self._handle: Any = None  # the C host's trace; held, so that its tracer is there until stop()
        self._shim: Any = None
        self._tracer = 0  # the tracer that the shim calls, or may call; 0: none
        self._import = AfterImport(self._begin)
        self._lock = RLock()  # an import on another thread may end while the trace stops
        self.reason = ""  # why operators are not recorded

    def prepare(self) -> None:
        """Loads the shim before the trace starts, so that the trace does not contain it."""
        if "torch" in sys.modules:
            self._load()

    def start(self, handle: Any) -> None:
        """Records from now on, or from the import of torch on."""
        self._handle = handle
        if not self.reason:
            self._import.start()

    def stop(self) -> None:
        """After this, torch does not call the trace any more. May be called again, also after an exception of a signal
        handler in here."""
        self._import.stop()
        with self._lock:
            if self._tracer:
                self._shim.leave_operators(self._tracer)
            self._tracer = 0
            self._handle = None

    def forget(self) -> None:
        """In the child of a fork, where the trace has ended, and the shim has forgotten it."""
        self._lock = RLock()  # another thread of the parent may have held it
        self._tracer = 0
        self._handle = None
        self._import.stop()

    def _load(self) -> Any:
        """Returns the shim, or None if there can be none. The program and the trace continue without it."""
        from . import _shim

        try:
            return _shim.load()
        except Exception as error:
            self._fail(str(error))
            return None

    def _begin(self) -> None:
        shim = self._load()
        with self._lock:
            if shim is None or self._handle is None:
                return
            functions, tracer = native.standalone.tracer(self._handle)
            # Before the call, since a signal handler may raise after it. To leave a tracer that the shim does not know
            # does nothing.
            self._shim, self._tracer = shim, tracer
            if not shim.trace_operators(functions, tracer, self._shapes, 0):
                self._tracer = 0
                self._fail("too many traces record torch's operators at once")

    def _fail(self, reason: str) -> None:
        """Prints the reason, once for all traces."""
        self.reason = reason
        if not self._quiet and reason not in _printed:
            _printed.add(reason)
            print_message(f"kpytrace: torch's operators are not recorded: {reason}")
