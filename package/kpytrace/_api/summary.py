"""The summary of a finished trace, and the lines on stderr for the user of the traced program. One module, since each
start of a traced program loads both."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional


class Summary:
    """The summary of a finished trace.

    path      the file that was written, or None
    calls     calls in the trace
    threads   threads that made them
    functions different functions among them
    dropped   events lost to a budget, a ring or a lack of memory
    seconds   time from start to stop
    noop      why nothing could be recorded, or None
    kernels   kernels that GPUs ran
    no_gpu    why GPUs were not recorded, or None if they were or if there is no GPU
    gpu_dropped  lost events of GPUs, including kernels that another tool took
    """

    __slots__ = ("path", "calls", "threads", "functions", "dropped", "seconds", "noop", "kernels",
                 "no_gpu", "gpu_dropped")

    def __init__(self, path: Optional[str], calls: int, threads: int, functions: int,
                 dropped: int, seconds: float, noop: Optional[str], kernels: int = 0,
                 no_gpu: Optional[str] = None, gpu_dropped: int = 0) -> None:
        self.path, self.calls, self.threads, self.functions = path, calls, threads, functions
        self.dropped, self.seconds, self.noop = dropped, seconds, noop
        self.kernels, self.no_gpu, self.gpu_dropped = kernels, no_gpu, gpu_dropped

    def as_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __repr__(self) -> str:
        return f"Summary({', '.join(f'{k}={v!r}' for k, v in self.as_dict().items())})"


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


def shown_path(path: str) -> str:
    """Returns PATH as the user would type it now: relative to the working folder if it is in it."""
    try:
        name = os.path.relpath(path)
    except (OSError, ValueError):  # the folder is gone
        return path
    return path if name.startswith(os.pardir) or path.startswith("/dev/") else name


def next_line(path: str) -> str:
    """Returns a line with the command that shows the file PATH, after a line break; "" if there is none."""
    plain = path[:-3] if path.endswith(".gz") else path
    if plain.endswith(".speedscope.json"):
        return "\nkpytrace: see it in https://www.speedscope.app"
    command = {".kpt": "view", ".json": "view", ".html": "view", ".pftrace": "view --perfetto"}.get(
        os.path.splitext(plain)[1])
    if plain.endswith(".tables.json"):
        command = "memory"
    is_plain = path.replace("/", "").replace(".", "").replace("-", "").replace("_", "").isalnum()  # shlex imports re
    quoted = path if is_plain else "'" + path.replace("'", "'\"'\"'") + "'"
    return f"\nkpytrace: see it with: kpytrace {command} {quoted}" if command else ""


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
