"""Compares two runs of a program by their execution traces."""

from __future__ import annotations

import collections

from .trace import naming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .trace import Trace


class Change:
    """An operator, with its inputs, that the two runs have a different number of times."""

    __slots__ = ("name", "inputs", "before", "after")

    def __init__(self, name: str, inputs: str, before: int, after: int) -> None:
        self.name, self.inputs, self.before, self.after = name, inputs, before, after


def _counts(trace: Trace) -> collections.Counter[tuple[str, str]]:
    with naming(trace.path):
        return collections.Counter(node.signature() for node in trace.operators())


class Difference:
    """The difference between two execution traces."""

    def __init__(self, before: Trace, after: Trace) -> None:
        counts = [_counts(trace) for trace in (before, after)]
        self.same = sum((counts[0] & counts[1]).values())
        self.changes = sorted(
            (Change(*key, counts[0][key], counts[1][key]) for key in counts[0].keys() | counts[1].keys()
             if counts[0][key] != counts[1][key]),
            key=lambda change: (-abs(change.after - change.before), change.name, change.inputs))
        self.durations = _durations(before, after)

    def __bool__(self) -> bool:
        """Whether the runs did different things. Durations are not compared."""
        return bool(self.changes)


def _sums(trace: Trace) -> dict[str, tuple[int, int]]:
    """Returns the nanoseconds and calls by name. Nodes without times are left out."""
    sums: dict[str, tuple[int, int]] = {}
    for node in trace.operators():
        took = node.own.get("dur_ns")
        if took is not None:
            ns, calls = sums.get(node.name, (0, 0))
            sums[node.name] = ns + took, calls + 1
    return sums


def _durations(before: Trace, after: Trace) -> list[tuple[str, float, float]]:
    """Returns the nanoseconds per call of operators that both traces have, the largest change of the sum first."""
    sums = _sums(before), _sums(after)
    both = [(name, *(each[name] for each in sums)) for name in sums[0].keys() & sums[1].keys()]
    both.sort(key=lambda row: (-abs(row[2][0] - row[1][0]), row[0]))
    return [(name, a[0] / a[1], b[0] / b[1]) for name, a, b in both]
