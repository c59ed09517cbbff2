"""Writes a trace before its end. SIGTERM writes every output, a crash flushes a stream, and SIGUSR2 dumps a ring;
the C host handles these signals, also while Python hangs. An uncaught exception also dumps a ring.
"""

from __future__ import annotations

import os
import sys

from .summary import print_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from .trace import Trace


def _dump_signal() -> int:
    """Returns SIGUSR2, or 0 if the program has a handler for it."""
    import _signal  # type: ignore[import-not-found]  # signal itself imports enum

    free = _signal.getsignal(_signal.SIGUSR2) == _signal.SIG_DFL
    return int(_signal.SIGUSR2) if free else 0


def _chained_signals() -> int:
    """Returns a bit mask of the crash signals that faulthandler handles: its handler runs after ours. Signals for
    which the program has its own handler are left out. For a handler of faulthandler, getsignal() returns SIG_DFL
    or None."""
    import _signal

    faulthandler = sys.modules.get("faulthandler")
    if faulthandler is None or not faulthandler.is_enabled():
        return 0
    crashes = (_signal.SIGSEGV, _signal.SIGBUS, _signal.SIGFPE, _signal.SIGABRT)
    return sum(1 << number for number in crashes if _signal.getsignal(number) in (_signal.SIG_DFL, None))


def signals(stream: Optional[str], output: str, ring: bool) -> dict[str, object]:
    """Returns the C host's options for a trace that writes `stream` while it runs, or `output` at its end."""
    if stream:
        return {"stream": os.fsencode(stream), "save_at_term": True, "flush_at_crash": True,
                "chained_signals": _chained_signals()}
    return {"dump": os.fsencode(output), "dump_signal": _dump_signal() if ring else 0, "save_at_term": True}


def _dump(trace: Trace, error: Optional[type[BaseException]]) -> None:
    """Dumps the ring, and makes the other ranks dump theirs. Prints a failure instead of raising it, because the user
    needs the program's own exception."""
    if not trace.running:
        return
    reason = f"an uncaught {getattr(error, '__name__', 'exception')}"
    try:
        path = trace._dump_because(reason)
    except Exception as failure:
        print_message(f"kpytrace: cannot write the dump: {failure}")
    else:
        print_message(f"kpytrace: the calls before this exception are in {path}")


def watch(trace: Trace) -> Callable[[], None]:
    """Dumps the ring on an uncaught exception of any thread, then calls the previous hook. Returns a function that
    removes the hooks. A hook that can't be removed, because another hook was installed after it, does not keep the
    trace alive."""
    import threading
    from _weakref import ref

    main, thread = sys.excepthook, threading.excepthook
    watched = ref(trace)

    def dump(error: Optional[type[BaseException]]) -> None:
        if (alive := watched()) is not None:
            _dump(alive, error)

    def uncaught(*args: Any) -> None:
        dump(args[0] if args else None)
        main(*args)

    def uncaught_in_thread(args: Any, /) -> None:
        if args.exc_type is not SystemExit:
            dump(args.exc_type)
        thread(args)

    def unwatch() -> None:
        if sys.excepthook is uncaught:
            sys.excepthook = main
        if threading.excepthook is uncaught_in_thread:
            threading.excepthook = thread

    sys.excepthook, threading.excepthook = uncaught, uncaught_in_thread
    return unwatch
