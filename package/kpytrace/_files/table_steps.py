"""The steps of a file, for its table."""

from __future__ import annotations

from array import array

from .._api import native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Optional

    from .kpt_header import File

_NO_END = 2**63 - 1


def _annotations(handle: object, pattern: str) -> list[tuple[int, int]]:
    """Returns the begin and the end of each annotation whose name is or matches `pattern`."""
    from fnmatch import fnmatchcase

    wanted: set[int] = set()
    found: list[tuple[int, int]] = []

    def take(names: list[Any], threads: list[Any], columns: list[bytes]) -> None:
        for number, name, _, _ in names:
            wanted.discard(number)
            if name == pattern or fnmatchcase(name, pattern):
                wanted.add(number)
        starts, lengths, numbers = array("q", columns[2]), array("q", columns[3]), array("I", columns[4])
        found.extend((start, start + length) for start, length, number in zip(starts, lengths, numbers)
                     if number in wanted)

    native.standalone.columns(handle, b"", take, True)
    return found


def _apart(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the pairs in order of time. A step ends at the latest where the next begins."""
    ordered = sorted(pairs)
    later = [begin for begin, _ in ordered[1:]] + [_NO_END]
    return [(begin, min(end, most)) for (begin, end), most in zip(ordered, later)]


class Steps:
    """The steps of a file: packed for C, and as columns by number. Numbers begin at 1; 0 means no step.

    With a name, the spans and annotations that it is or matches; otherwise what standalone.steps() recognises."""

    def __init__(self, file: File, handle: object, name: Optional[str]) -> None:
        numbers: Sequence[int] = ()
        found = [] if name is not None else native.standalone.steps(handle)
        if name is not None:
            pairs = _apart(file.spans(name) + _annotations(handle, name))
        elif found and found[0][3] == "step":
            pairs = file.spans("step")  # these know whether a span has ended
        else:
            pairs = _apart([(begin, end) for begin, end, *_ in found])
            numbers = [number for _, _, number, _ in found if number < 2**31]  # the column's type
        self.packed = array("q", [ns for pair in pairs for ns in pair]).tobytes()
        self._starts = [None, *(begin for begin, _ in pairs)]
        self._lengths = [None, *(end - begin if end < _NO_END else None for begin, end in pairs)]
        self._numbers = [None, *(numbers if len(numbers) == len(pairs) else range(len(pairs)))]

    def columns(self) -> dict[str, list[Any]]:
        return {"step": self._numbers, "step_start_ns": self._starts, "step_ns": self._lengths}
