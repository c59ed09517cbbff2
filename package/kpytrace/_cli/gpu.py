"""kpytrace top --gpu: the activity of GPUs by kernel and by the line that launched it, and the longest idle
gaps."""

from __future__ import annotations

from .formatting import amount, backward_of, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    Line = Union[tuple[bytes, int, bytes], bytes, None]  # bytes: the forward function of backward work

_GAPS = 5


def _words(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _line(line: Line) -> str:
    if line is None:
        return "(no Python)"
    if isinstance(line, bytes):
        return backward_of(_words(line))
    file, number, function = line
    return f"{_words(file)}:{number} {_words(function)}"


def _device(device: dict[str, Any]) -> str:
    return f"GPU {device['index']} {_words(device['name'])}".rstrip()


def as_dict(report: dict[str, Any]) -> dict[str, Any]:
    """Returns the report for a JSON file, with times in nanoseconds."""
    rows = ("count", "total_ns", "max_ns")
    return {
        "devices": [dict(device, name=_words(device["name"]),
                         idle_ns=device["span_ns"] - device["busy_ns"],
                         gaps=[{"at_ns": at, "ns": ns, "before": _words(name), "line": _line(line)}
                               for at, ns, name, line in device["gaps"]])
                    for device in report["devices"]],
        "kernels": [dict(zip(rows, numbers), name=_words(name))
                    for name, *numbers in report["kernels"]],
        "lines": [dict(zip(rows, numbers), line=_line(line)) for line, *numbers in report["lines"]],
        **{key: report[key] for key in ("events", "dropped", "lost_kernels")},
    }


def _print_devices(report: dict[str, Any]) -> None:
    for device in report["devices"]:
        span, busy = device["span_ns"], device["busy_ns"]
        share = (span - busy) / span if span else 0.0
        print(f"{shown(_device(device))}: {device['kernels']:,} kernels, busy {amount(busy)} of {amount(span)}, "
              f"idle {amount(span - busy)} ({share:.1%})")
        for at, ns, name, line in device["gaps"][:_GAPS]:
            print(f"  idle for {amount(ns):>11} at {amount(at):>11}, before {shown(_words(name)[:60])}, "
                  f"launched by {shown(_line(line))}")
    if report["dropped"] or report["lost_kernels"]:
        print(f"{report['dropped']:,} events were dropped, {report['lost_kernels']:,} kernels were taken by "
              f"another tool")


def _print_rows(rows: list[tuple[Any, int, int, int]], count: int, busy: int, what: str,
                show: Any) -> None:
    print(f"\n{'count':>11}  {'total':>11}  {'mean':>11}  {'longest':>11}  {'busy':>6}  {what}")
    for name, times, total, longest in rows[:count]:
        print(f"{times:>11,}  {amount(total):>11}  {amount(total / times):>11}  {amount(longest):>11}  "
              f"{total / busy if busy else 0:>6.1%}  {shown(show(name))}")
    if len(rows) > count:
        more = rows[count:]
        print(f"{sum(row[1] for row in more):>11,}  {amount(sum(row[2] for row in more)):>11}  "
              f"{'':>11}  {'':>11}  {'':>6}  … in {len(more):,} more rows")


def print_report(report: dict[str, Any], count: int) -> None:
    if not report["devices"]:
        print("the recording has no GPU events")
        return
    busy = sum(device["busy_ns"] for device in report["devices"])
    _print_devices(report)
    _print_rows(report["kernels"], count, busy, "kernel", _words)
    _print_rows(report["lines"], count, busy, "launched by", _line)
