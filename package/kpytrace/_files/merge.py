"""Merges several .kpt files into one trace, with one process for each file. The files are read one after the
other, so that the memory used is that of the largest file."""

from __future__ import annotations

from .._api import native
from .._processes import process_info
from .kpt_header import File

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Optional

_STEP = 10_000_000  # larger than any process id of Linux


class Clock:
    """Converts the times of a file to those of the trace: ns + offset + (ns - anchor) * drift."""

    __slots__ = ("offset", "anchor", "drift")

    def __init__(self, offset: int = 0, anchor: int = 0, drift: float = 0.0) -> None:
        self.offset, self.anchor, self.drift = offset, anchor, drift


def _label(info: dict[str, str]) -> str:
    return ", ".join(f"{key} {info[key]}" for key in ("host", "parent") if key in info)


def _distinct(pid: int, taken: set[int]) -> int:
    """Returns a process id that is not taken. Processes of two hosts, or of one host after a restart, may have the
    same id."""
    while pid in taken:
        pid += _STEP
    taken.add(pid)
    return pid


def by_rank(file: File) -> tuple[int, int, int]:
    """Returns the sort key of processes: ranks first, then by their start."""
    rank = file.info.get("rank", "")
    return (int(rank) if rank.isdigit() else 2**31, file.base_ns, file.pid)


def merge(files: Sequence[File], output: str, clocks: Optional[dict[str, Clock]] = None,
          failed: Optional[Callable[[str, Exception], None]] = None,
          progress: Optional[Callable[[int], None]] = None, recover: bool = True,
          opened: Optional[Callable[[str, str, tuple[int, int]], None]] = None) -> dict[str, int]:
    """Writes the files to `output`. Returns the counts of the trace, with "processes" and "kernels". A file that
    can't be read is reported to `failed` and left out; without `failed` the error is raised and nothing is
    written. `progress` receives the number of files done, `opened` the path and the state of each file, and the number
    and the kind of records that are not known."""
    plugin = native.load()
    standalone = native.standalone
    made = standalone.merge_open(output, min(file.base_ns for file in files))
    taken: set[int] = set()
    kernels = 0
    for file in files:
        clock = (clocks or {}).get(file.path) or Clock()
        try:
            handle, state, _ = standalone.open(plugin, file.path, recover)
        except (OSError, ValueError, RuntimeError) as error:
            if failed is None:
                raise
            failed(file.path, error)
            continue
        if opened:
            opened(file.path, state, standalone.skipped(handle))
        standalone.merge_add(made, handle, _distinct(file.pid, taken), process_info.title(file.info), _label(file.info),
                             clock.offset, clock.anchor, clock.drift, None)
        kernels += standalone.gpu(handle)[1]
        standalone.close(handle)
        if progress:
            progress(len(taken))
    if not taken:
        raise ValueError("no file could be read, so nothing is merged")
    counts: dict[str, int] = standalone.merge_end(made)
    counts["processes"] = len(taken)
    counts["kernels"] = kernels
    return counts


def summary_line(counts: dict[str, int]) -> str:
    """Returns a summary of a merged trace, for a message."""
    processes, kernels = counts["processes"], counts["kernels"]
    gpu = f", {kernels:,} GPU kernel{'s' * (kernels != 1)}" if kernels else ""
    return f"{counts['calls']:,} calls of {processes:,} process{'es' * (processes != 1)}{gpu}"
