"""kpytrace top --ops: torch's operators, by name or by name and the Python function that called them."""

from __future__ import annotations

from .formatting import print_head, print_row, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .kpt_file import KptFile

    Row = tuple[bytes, int, int, bytes, int, int, int, int]

_SORTS = {"calls": 4, "own": 5, "total": 6, "max": 7}
_CALLERS = ("", "{}", "backward of {}", "backward of an operator that is not in the recording")


def _caller(row: Row) -> str:
    return _CALLERS[row[2]].format(row[3].decode("utf-8", "replace"))


def as_dicts(rows: list[Row]) -> list[dict[str, object]]:
    """Returns the rows for a JSON file, with times in nanoseconds."""
    return [{"name": row[0].decode("utf-8", "replace"), "kind": "annotation" if row[1] else "operator",
             "caller": _caller(row), "calls": row[4], "own_ns": row[5], "total_ns": row[6], "max_ns": row[7]}
            for row in rows]


def print_operators(file: KptFile, sort: str, count: int, by_function: bool, as_json: bool) -> int:
    """Prints the operators that took longest."""
    bar = file.bar("reading")
    rows: list[Row] = file.standalone.operators(file.handle, by_function, bar)
    if bar:
        bar.close()
    rows.sort(key=lambda row: (-row[_SORTS[sort]], row[0]))
    if as_json:
        import json

        print(json.dumps(as_dicts(rows[:count]), indent=1))
        return 0
    if not rows:
        print("the recording has no operators: record with --torch")
        return 0
    print_head("operator")
    for row in rows[:count]:
        name, is_range, _, _, calls, own, total, most = row
        title = f"{'annotation ' if is_range else ''}{name.decode('utf-8', 'replace')}"
        caller = f"  [{_caller(row)}]" if by_function and row[2] else ""
        print_row(calls, own, total, most, shown(title + caller))
    return 0
