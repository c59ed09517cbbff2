"""Estimates the cost of tracing. Measures the cost of one recorded call in this process, with loops that only
call, and computes from it how much a whole recording has slowed its program."""

from __future__ import annotations

import os
import sys
import time

from .formatting import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

_CALLS, _ROUNDS = 20_000, 5


def _empty() -> None:
    pass


def _call_python() -> None:
    for _ in range(_CALLS):
        _empty()


def _call_c() -> None:
    for _ in range(_CALLS):
        abs(1)


def _seconds(loop: Callable[[], None]) -> float:
    """Returns the CPU time of this thread, since other programs may use the processor, too."""
    began = time.thread_time()
    loop()
    return time.thread_time() - began


def _measure_into(file: int, standalone: Any, plugin: object) -> Optional[tuple[float, float]]:
    best: dict[tuple[Callable[[], None], bool], float] = {}
    for _ in range(_ROUNDS):
        for traced in (False, True):
            if traced:
                options = {"this_thread": True, "filters": (), "gpu": 2, "stream": b"/proc/self/fd/%d" % file}
                handle, noop, *_ = standalone.start(plugin, options)
                if noop:
                    standalone.close(handle)
                    return None
            for loop in (_call_python, _call_c):
                loop()  # not measured: the first pass is slower, since code is instrumented as it runs
                best[loop, traced] = min(_seconds(loop), best.get((loop, traced), 1e9))
            if traced:
                standalone.stop(handle)
                standalone.close(handle)
    python, c = (max(best[loop, True] - best[loop, False], 0) / _CALLS * 1e9 for loop in (_call_python, _call_c))
    return python, c


def measure(standalone: Any, plugin: object) -> Optional[tuple[float, float]]:
    """Returns the nanoseconds that recording adds to a call of a Python function and to a call of a C function, or
    None if this Python can't be traced. Takes the best of several rounds, alternately without and with tracing.
    The stream is a file in memory."""
    file = os.memfd_create("kpytrace")
    try:
        return _measure_into(file, standalone, plugin)
    finally:
        os.close(file)


class Totals:
    """Adds up rows of a profile, one for each function and thread."""

    def __init__(self) -> None:
        self.functions: set[bytes] = set()
        self.python_calls = self.c_calls = self.own_ns = 0

    def take(self, rows: list[Any]) -> None:
        for name, _, file, first_line, _, calls, own_ns, *_ in rows:
            self.functions.add(name)
            self.own_ns += own_ns
            if file or first_line:
                self.python_calls += calls
            else:
                self.c_calls += calls


def line(totals: Totals, per_call: tuple[float, float], info: dict[str, str]) -> str:
    """Returns the line of `kpytrace info`. INFO is the description of the process in the file."""
    spent = totals.own_ns
    cost = int(totals.python_calls * per_call[0] + totals.c_calls * per_call[1])
    share = f", {min(cost / spent, 1):.0%} of the time in the trace" if spent else ""
    here = {"python": f"{sys.implementation.name} {sys.version.split()[0]}", "host": os.uname().nodename[:64]}
    other = [key for key in here if info.get(key, here[key]) != here[key]]
    where = f" here, with another {' and '.join(other)} than it was recorded with" if other else " here"
    return (f"about {amount(cost)}{share} ({amount(int(per_call[0]))} for a call of a Python function and "
            f"{amount(int(per_call[1]))} for one in C, as measured{where})")
