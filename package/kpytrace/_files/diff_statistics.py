"""Compares two sets of runs, function by function or operator by operator: the times before and after, and, if there are several runs of
both, whether the difference is significant.

A function is identified by its file and its name, since line numbers change. If a file has several functions of
one name, the first is compared with the first, and so on. An operator of torch is identified by its name, and
annotations that end with a number, such as ProfilerStep#3, are added up. Times are means over the runs. The interval is Welch's,
of 95 %, for samples of different variance, and the p-value is that of Welch's t-test. If all runs of each side
agree to the tick of the clock, there is no variance. The p-value is then that of the order alone: of all ways to
distribute as many runs to two sides, two separate them like this. Among many functions some differ by chance.
`is_sure` compares the p-values with Holm's bound, so that the chance that any function of a table is wrongly
called sure is 1 %."""

from __future__ import annotations

import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Optional

    Key = tuple[str, int]
    Values = tuple[int, ...]  # calls, own ns, total ns, and of operators own and total GPU ns
    Run = dict[Key, Values]

_CHANCE = 0.01
_CONFIDENCE = 0.95
_NONE = (0, 0, 0, 0, 0)


def run_of(rows: Iterable[Sequence[Any]]) -> Run:
    """Returns a run from the rows that profile() returns."""
    lines: dict[str, list[tuple[int, Values]]] = {}
    for display, function, file, line, _, calls, own, total, *_ in rows:
        if file and display.startswith(b"%b(%d): " % (file, line)):
            display = b"%b: %b" % (file, function)
        name = display.decode("utf-8", "replace")
        lines.setdefault(name, []).append((line, (calls, own, total)))
    return {(name, i): values for name, found in lines.items()
            for i, (_, values) in enumerate(sorted(found, key=lambda item: item[0]))}


def run_of_operators(rows: Iterable[Sequence[Any]]) -> Run:
    """Returns a run from the rows that operators() returns without callers."""
    run: Run = {}
    for text, is_range, _, _, calls, own, total, _, gpu_own, gpu_total in rows:
        name = text.decode("utf-8", "replace")
        if is_range:
            name = "annotation " + re.sub(r"#\d+$", "#*", name)
        values = (calls, own, total, gpu_own, gpu_total)
        run[name, 0] = tuple(map(sum, zip(run.get((name, 0), _NONE), values)))
    return run


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Returns the continued fraction of the incomplete beta function (Lentz's algorithm)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / max(abs(1.0 - (a + b) * x / (a + 1.0)), tiny)
    if 1.0 - (a + b) * x / (a + 1.0) < 0:
        d = -d
    result = d
    for m in range(1, 300):
        for step in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                     -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1.0 / ((1.0 + step * d) or tiny)
            c = (1.0 + step / c) or tiny
            result *= c * d
        if abs(c * d - 1.0) < 1e-12:
            break
    return result


def _incomplete_beta(a: float, b: float, x: float) -> float:
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _continued_fraction(a, b, x) / a
    return 1.0 - front * _continued_fraction(b, a, 1.0 - x) / b


def t_p_value(t: float, freedom: float) -> float:
    """Returns the probability that chance alone causes a |t| as large."""
    return _incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))


def t_bound(freedom: float, confidence: float = _CONFIDENCE) -> float:
    """Returns the t that chance exceeds with the probability 1 - confidence, by bisection."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2.0
        if t_p_value(middle, freedom) > 1.0 - confidence:
            low = middle
        else:
            high = middle
    return high


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    mean = _mean(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def welch(before: Sequence[float], after: Sequence[float]) -> Optional[tuple[float, float]]:
    """Returns half of the interval of the difference of the means, and the p-value, or None if there are too few
    runs."""
    if len(before) < 2 or len(after) < 2:
        return None
    parts = _variance(before) / len(before), _variance(after) / len(after)
    error = math.sqrt(sum(parts))
    difference = _mean(after) - _mean(before)
    if error == 0.0:  # at the clock's resolution: short calls take the same number of its ticks in each run
        return 0.0, 1.0 if difference == 0.0 else 2.0 / math.comb(len(before) + len(after), len(before))
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (len(before) - 1) + parts[1] ** 2 / (len(after) - 1))
    return t_bound(freedom) * error, t_p_value(difference / error, freedom)


class Change:
    """A function before and after: means over the runs, times in ns.

    margin   half of the 95 % interval of own_after - own_before; None with fewer than two runs on either side
    p        the probability that chance alone causes a difference as large
    is_sure  whether the difference is significant; None if there are too few runs
    """

    def __init__(self, key: Key, before: Sequence[Values], after: Sequence[Values]) -> None:
        self.name = key[0] + (f" #{key[1] + 1}" if key[1] else "")
        self.calls_before, self.calls_after = (_mean([run[0] for run in side]) for side in (before, after))
        self.own_before, self.own_after = (_mean([run[1] for run in side]) for side in (before, after))
        self.total_before, self.total_after = (_mean([run[2] for run in side]) for side in (before, after))
        sides = [[float(run[1]) for run in side] for side in (before, after)]
        found = welch(*sides)
        self.margin: Optional[float] = found[0] if found else None
        self.p: Optional[float] = found[1] if found else None
        self.is_sure: Optional[bool] = None

    @property
    def difference(self) -> float:
        """The difference of the own times, in ns."""
        return self.own_after - self.own_before

    @property
    def ratio(self) -> Optional[float]:
        return self.own_after / self.own_before if self.own_before else None

    def as_dict(self) -> dict[str, object]:
        names = ("name", "calls_before", "calls_after", "own_before", "own_after", "total_before", "total_after",
                 "difference", "ratio", "margin", "p", "is_sure")
        return {name: getattr(self, name) for name in names}


class OperatorChange(Change):
    """The same of an operator or annotation, with the GPU time of what was launched in it."""

    def __init__(self, key: Key, before: Sequence[Values], after: Sequence[Values]) -> None:
        super().__init__(key, before, after)
        self.gpu_own_before, self.gpu_own_after = (_mean([run[3] for run in side]) for side in (before, after))
        self.gpu_total_before, self.gpu_total_after = (_mean([run[4] for run in side]) for side in (before, after))

    def as_dict(self) -> dict[str, object]:
        names = ("gpu_own_before", "gpu_own_after", "gpu_total_before", "gpu_total_after")
        return {**super().as_dict(), **{name: getattr(self, name) for name in names}}


def _settle(changes: Iterable[Change]) -> None:
    """Applies Holm's method: the smallest p-value is compared with _CHANCE divided by the number of tests, the
    next with _CHANCE divided by one less, until a p-value is too large."""
    tested = sorted((change for change in changes if change.p is not None), key=lambda change: change.p or 0.0)
    sure = True
    for i, change in enumerate(tested):
        sure = sure and (change.p or 0.0) <= _CHANCE / (len(tested) - i)
        change.is_sure = sure


def compare(before: Sequence[Run], after: Sequence[Run], kind: type[Change] = Change) -> list[Change]:
    """Returns the changes, each of KIND, the largest difference first. A function that a run does not have counts as zero
    calls."""
    keys = {key for run in (*before, *after) for key in run}
    changes = [kind(key, [run.get(key, _NONE) for run in before], [run.get(key, _NONE) for run in after])
               for key in keys]
    _settle(changes)
    return sorted(changes, key=lambda change: (-abs(change.difference), change.name))
