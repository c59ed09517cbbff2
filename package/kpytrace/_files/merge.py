"""Several .kpt files as one trace, a process each. They are read one after the other, so that memory is that of one."""

from __future__ import annotations

from .._processes import process_info as _process
from .._api import trace as _trace
from .kpt_header import File

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Optional

_STEP = 10_000_000  # no process of any Linux has such a number


class Clock:
    """What turns a file's times into the trace's: ns + offset + (ns - anchor) * drift."""

    __slots__ = ("offset", "anchor", "drift")

    def __init__(self, offset: int = 0, anchor: int = 0, drift: float = 0.0) -> None:
        self.offset, self.anchor, self.drift = offset, anchor, drift


def _label(info: dict[str, str]) -> str:
    return ", ".join(f"{key} {info[key]}" for key in ("host", "parent") if key in info)


def _distinct(pid: int, taken: set[int]) -> int:
    """Processes of two hosts, or of one that counts anew, may have the same number."""
    while pid in taken:
        pid += _STEP
    taken.add(pid)
    return pid


def by_rank(file: File) -> tuple[int, int, int]:
    """In which order processes stand: ranks first, then as they began."""
    rank = file.info.get("rank", "")
    return (int(rank) if rank.isdigit() else 2**31, file.base_ns, file.pid)


def merge(files: Sequence[File], output: str, clocks: Optional[dict[str, Clock]] = None,
          failed: Optional[Callable[[str, Exception], None]] = None,
          progress: Optional[Callable[[int], None]] = None, recover: bool = True,
          opened: Optional[Callable[[str, str], None]] = None) -> dict[str, int]:
    """Writes them to `output`, and returns what was counted, with "processes" and "kernels". One that can't
    be read is told to `failed`, and left out; without it that ends everything, and nothing is written. `progress` gets
    the number of files, `opened` the path and the state of each."""
    plugin = _trace._load()
    standalone: Any = _trace._standalone
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
            opened(file.path, state)
        standalone.merge_add(made, handle, _distinct(file.pid, taken), _process.title(file.info), _label(file.info),
                             clock.offset, clock.anchor, clock.drift, None)
        kernels += standalone.gpu(handle)[1]
        standalone.close(handle)
        if progress:
            progress(len(taken))
    if not taken:
        raise ValueError("there is nothing to merge")
    counts: dict[str, int] = standalone.merge_end(made)
    counts["processes"] = len(taken)
    counts["kernels"] = kernels
    return counts


def said_of(counts: dict[str, int]) -> str:
    """What a merged trace holds, for people."""
    processes, kernels = counts["processes"], counts["kernels"]
    gpu = f", {kernels:,} GPU kernel{'s' * (kernels != 1)}" if kernels else ""
    return f"{counts['calls']:,} calls of {processes:,} process{'es' * (processes != 1)}{gpu}"
