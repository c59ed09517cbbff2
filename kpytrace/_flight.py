"""The flight recorder's occasions: a ring is written, beside its end, on a signal and when an
exception is not caught. The signal is the C side's business, and works while Python hangs.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
        print(f"kpytrace: no dump: {error}", file=sys.stderr)
    else:
        print(f"kpytrace: what led to this exception is in {path}", file=sys.stderr)


def watch(trace: Trace) -> None:
    """Dumps when an exception is not caught, in whatever thread, and then does what was to be done."""
    import threading

    main, thread = sys.excepthook, threading.excepthook

    def uncaught(*args: Any) -> None:
        _dump(trace)
        main(*args)

    def uncaught_in_thread(args: Any, /) -> None:
        if args.exc_type is not SystemExit:
            _dump(trace)
        thread(args)

    sys.excepthook, threading.excepthook = uncaught, uncaught_in_thread
