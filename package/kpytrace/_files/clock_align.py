"""Aligns the clocks of several files by marks that all processes made at the same time, for example after a
barrier. The n-th mark of a name in each file corresponds to the n-th in the first file.

A mark is late if its process had to wait for a processor. So the offset is the median of the differences, and the
drift, which needs at least three marks, is the median of the slopes between any two of them (Theil-Sen estimator).
The drift is used only if it is larger than six times its standard error, and not larger than that of a real clock
can be."""

from __future__ import annotations

import math
from statistics import median

from .merge import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .kpt_header import File

_MAX_MARKS = 300  # since there is a slope between any two
_MIN_FOR_DRIFT = 3
_MAX_DRIFT = 500e-6  # NTP slews a clock no faster; a larger drift comes from the program
_SURE = 6


class Aligned:
    """A file's clock, and how well its marks agree with it: half of the marks differ by less than `scatter`, in
    ns."""

    __slots__ = ("file", "clock", "marks", "scatter")

    def __init__(self, file: File, clock: Clock, marks: int, scatter: float) -> None:
        self.file, self.clock, self.marks, self.scatter = file, clock, marks, scatter


def _slope(pairs: Sequence[tuple[int, int]]) -> float:
    step = max(1, len(pairs) // _MAX_MARKS)
    some = pairs[::step]
    return median((q[1] - p[1]) / (q[0] - p[0]) for i, p in enumerate(some) for q in some[i + 1:] if q[0] != p[0])


def _scatter(pairs: Sequence[tuple[int, int]], offset: float, drift: float, anchor: int) -> float:
    return median(abs(d - offset - (t - anchor) * drift) for t, d in pairs)


def fit(times: Sequence[int], reference: Sequence[int]) -> tuple[Clock, float]:
    """Returns the clock that converts `times` to `reference`, and the scatter around it."""
    pairs = [(t, r - t) for t, r in zip(times, reference)]
    anchor = pairs[0][0]
    offset = median(d for _, d in pairs)
    plain = _scatter(pairs, offset, 0.0, anchor)
    if len(pairs) >= _MIN_FOR_DRIFT and pairs[-1][0] > anchor:
        drift = _slope(pairs)
        start = median(d - (t - anchor) * drift for t, d in pairs)
        scatter = _scatter(pairs, start, drift, anchor)
        # Standard error of the slope for evenly spread points. 1.48 converts a median deviation to a standard
        # deviation.
        error = 1.48 * max(scatter, 1.0) / ((pairs[-1][0] - anchor) * math.sqrt(len(pairs) / 12))
        if _SURE * error < abs(drift) < _MAX_DRIFT:
            return Clock(round(start), anchor, drift), scatter
    return Clock(round(offset), anchor, 0.0), plain


def align(files: Sequence[File], mark: str) -> list[Aligned]:
    """Returns one row for each file. The first file keeps its own clock."""
    made: list[Aligned] = []
    reference: list[int] = []
    for file in files:
        times = file.times(mark)
        if not times:
            raise ValueError(f"{file.path}: the file has no mark and no span {mark!r}")
        reference = reference or times
        clock, scatter = fit(times, reference)
        made.append(Aligned(file, clock, min(len(times), len(reference)), scatter))
    return made
