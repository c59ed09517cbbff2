"""Messages of the package on stderr, for the user of the traced program."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from .summary import Summary


def print_message(text: str) -> None:
    """Prints a line. Prints nothing if the program has closed stderr or replaced it with an unusable object."""
    try:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)
    except Exception:
        pass


def print_failure(output: Optional[str], error: Exception) -> None:
    """Reports that an output could not be written when the program ended. The program's exit status is
    unchanged."""
    print_message(f"kpytrace: {output} could not be written: {error}")


def trace_line(summary: Summary, output: str) -> str:
    """Returns one line about a finished trace."""
    if summary.noop:
        return f"kpytrace: nothing was recorded: {summary.noop}"
    lost = f", {summary.dropped:,} events dropped" if summary.dropped else ""
    if summary.kernels:
        lost += f", {summary.kernels:,} GPU kernel{'s' * (summary.kernels != 1)}"
    if summary.gpu_dropped:
        lost += f", {summary.gpu_dropped:,} GPU events dropped"
    return (f"kpytrace: {summary.calls:,} calls of {summary.threads:,} "
            f"thread{'s' * (summary.threads != 1)} in {summary.seconds:.3f} s{lost}: {output}")
