"""The flight recorder's occasions: a ring is written, beside its end, on a signal and when an
exception is not caught. The signal is the C side's business, and works while Python hangs.
"""

from __future__ import annotations

import sys

from ._auto import tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ._trace import Trace


def signal_to_use() -> int:
    """SIGUSR2, unless the program has a handler for it."""
    import _signal  # type: ignore[import-not-found]  # signal itself imports enum

    free = _signal.getsignal(_signal.SIGUSR2) == _signal.SIG_DFL
    return int(_signal.SIGUSR2) if free else 0


def _dump(trace: Trace) -> None:
    """Whatever happens here, the exception is what the user wants to see."""
    if not trace.running:
        return
    try:
        path = trace.dump()
    except Exception as error:
        tell(f"kpytrace: no dump: {error}")
    else:
        tell(f"kpytrace: what led to this exception is in {path}")


def watch(trace: Trace) -> Callable[[], None]:
    """Dumps when an exception is not caught, in whatever thread, and then does what was to be done.
    Returns what takes that back. A hook that stays, as another one was put above it, does not keep the trace."""
    import threading
    from _weakref import ref

    main, thread = sys.excepthook, threading.excepthook
    watched = ref(trace)

    def dump() -> None:
        if (alive := watched()) is not None:
            _dump(alive)

    def uncaught(*args: Any) -> None:
        dump()
        main(*args)

    def uncaught_in_thread(args: Any, /) -> None:
        if args.exc_type is not SystemExit:
            dump()
        thread(args)

    def unwatch() -> None:
        if sys.excepthook is uncaught:
            sys.excepthook = main
        if threading.excepthook is uncaught_in_thread:
            threading.excepthook = thread

    sys.excepthook, threading.excepthook = uncaught, uncaught_in_thread
    return unwatch
