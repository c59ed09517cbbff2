"""kpytrace top --ops: torch's operators, by name or by name and the Python function that called them."""

from __future__ import annotations

from .formatting import amount, backward_of, print_head, print_row, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .kpt_file import KptFile

    Row = tuple[bytes, int, int, bytes, int, int, int, int, int, int]

_SORTS = {"calls": 4, "own": 5, "total": 6, "max": 7, "gpu": 9}
_BY_FUNCTION, _BY_AUTOGRAD = 1, 2  # a larger number: by autograd, for an operator that is not known


def _caller(row: Row) -> str:
    function = row[3].decode("utf-8", "replace")
    return function if row[2] <= _BY_FUNCTION else backward_of(function if row[2] == _BY_AUTOGRAD else "")


def as_dicts(rows: list[Row]) -> list[dict[str, object]]:
    """Returns the rows for a JSON file, with times in nanoseconds."""
    return [{"name": row[0].decode("utf-8", "replace"), "kind": "annotation" if row[1] else "operator",
             "caller": _caller(row), "calls": row[4], "own_ns": row[5], "total_ns": row[6], "max_ns": row[7],
             "gpu_own_ns": row[8], "gpu_total_ns": row[9]}
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
    has_gpu = any(row[9] for row in rows)
    print_head(f"{'own, GPU':>11}  {'total, GPU':>11}  operator" if has_gpu else "operator")
    for row in rows[:count]:
        name, is_range, _, _, calls, own, total, most, gpu_own, gpu_total = row
        title = f"{'annotation ' if is_range else ''}{name.decode('utf-8', 'replace')}"
        caller = f"  [{_caller(row)}]" if by_function and row[2] else ""
        gpu = f"{amount(gpu_own):>11}  {amount(gpu_total):>11}  " if has_gpu else ""
        print_row(calls, own, total, most, gpu + shown(title + caller))
    return 0
