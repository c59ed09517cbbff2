"""The start hook. The .pth file calls start() when Python starts and one of KPYTRACE, KPYTRACE_MEMORY and
KPYTRACE_TORCH is set.

python -E and -I ignore these variables, as they ignore Python's own. `kpytrace run` passes its options in the
first two variables; with -E or -I it adds -X kpytrace, so that they are read."""

from __future__ import annotations

import os
import sys

_is_started = False


def _is_main_interpreter() -> bool:
    """Whether this is the first interpreter of the process. Subinterpreters run .pth files, too."""
    if sys.version_info >= (3, 13):
        import _thread  # built in; _interpreters takes longer to import than any module of ours

        return bool(_thread._is_main_interpreter())
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:  # this Python has no subinterpreters
        return True
    return bool(interpreters.get_current() == interpreters.get_main())


def start() -> None:
    """Starts the recordings that the environment requests. Does so once, since in a virtual environment Python
    runs .pth files twice."""
    global _is_started
    if _is_started or not _is_main_interpreter():
        return
    _is_started = True
    is_ignored = bool(sys.flags.ignore_environment)
    if os.environ.get("KPYTRACE_TORCH") and not is_ignored:
        from .torch import _autostart

        _autostart.start()
    if is_ignored and "kpytrace" not in sys._xoptions:
        return
    if os.environ.get("KPYTRACE") or os.environ.get("KPYTRACE_MEMORY"):
        from ._processes import autostart

        autostart.start()
