"""kpytrace top: lists the functions that took the most time, and the callers and callees of one."""

from __future__ import annotations

import sys

from . import terminal
from .arguments import HELP, QUIET, RECOVER, Argument, Usage, parse_command, row_count
from .formatting import amount, shown
from .functions import Edge, Function, Table, edges_of, matching
from .kpt_file import SORTS, KptFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_ARGUMENTS = (
    Argument("sort", "KEY", "sort by own, total, calls or max, with --ops also by gpu (default: own)", "s"),
    Argument("count", "N", "how many rows (default: 25; 0: all)", "n"),
    Argument("of", "NAME", "list the callers and the callees of a function: its name, Class.name, a pattern with *, or "
             "the last column of a row"),
    Argument("all", "", "also list what is folded away: start-up, the import system, and kpytrace's own start and stop"),
    Argument("full-paths", "", "print whole paths; without it, they are relative to the working folder, to site-packages "
             "or to Python's library"),
    Argument("threads", "", "list a row for each function and thread; nothing is folded"),
    Argument("gpu", "", "list kernels instead: by name, by the Python line that launched them, and "
             "the idle time of each device"),
    Argument("ops", "", "list torch's operators and annotations instead; own is without those inside"),
    Argument("callers", "", "with --ops: list a row for each operator and the Python function that called it; "
             "for work of autograd, the function that called the forward operator"),
    Argument("json", "", "print JSON, with times in nanoseconds"),
    Argument("csv", "", "print CSV, with times in nanoseconds"),
    Argument("tasks", "", "list asyncio's tasks instead, by running time"),
    Argument("coroutines", "", "the same, with the tasks of a coroutine added up"),
    RECOVER, QUIET, HELP)
_USAGE = """\
usage: kpytrace top [OPTION]... FILE...

Lists functions with their calls, the time in them alone (own) and with their callees (total;
of a recursive function only the outermost call), and the share of their own time in that of all functions listed.
Several files are added up."""
_NARROW = 100  # columns of a terminal; below it, two columns of the table are left out
_NAME_ROOM = 30


class _View:
    """How functions are printed."""

    def __init__(self, options: dict[str, str]) -> None:
        self.full = "full-paths" in options
        self.width = terminal.width()
        self.is_narrow = 0 < self.width < _NARROW

    def place(self, file: str, line: int) -> str:
        return f"{shown(file if self.full else terminal.short_path(file))}({line}): " if file else ""

    def title(self, name: str, file: str, line: int, used: int) -> str:
        """Returns the function for the end of a line that has USED columns."""
        place, name = self.place(file, line), shown(name)
        if self.width:
            name = terminal.cut_right(name, max(self.width - used, _NAME_ROOM))
            room = self.width - used - len(name)
            place = terminal.cut_left(place, room) if room > 4 else ""
        return terminal.dim(place) + name

    def head(self, what: str) -> None:
        more = "" if self.is_narrow else f"{'per call':>11}  {'longest':>11}  "
        print(terminal.bold(f"{'calls':>14}  {'own':>11}  {'share':>6}  {'total':>11}  {more}{what}"))

    def row(self, f: Function, all_ns: int) -> None:
        more = "" if self.is_narrow else f"{amount(f.total_ns / max(f.calls, 1)):>11}  {amount(f.max_ns):>11}  "
        line = f"{f.calls:>14,}  {amount(f.own_ns):>11}  {_share(f.own_ns, all_ns):>6}  {amount(f.total_ns):>11}  {more}"
        thread = f"  [{shown(f.thread)}]" if f.thread else ""
        print(line + self.title(f.name, f.file, f.line, len(line) + len(thread)) + thread)

    def rest(self, rows: Sequence[Function], all_ns: int, what: str) -> None:
        own = sum(f.own_ns for f in rows)
        print(f"{sum(f.calls for f in rows):>14,}  {amount(own):>11}  {_share(own, all_ns):>6}  {what}")


def _share(ns: int, all_ns: int) -> str:
    return f"{ns / all_ns:.1%}" if all_ns else "0.0%"


def _print_functions(table: Table, sort: str, count: int | None, view: _View, quiet: bool) -> None:
    rows, all_ns = table.sorted(sort), table.own_ns
    view.head("function")
    for f in rows[:count]:
        view.row(f, all_ns)
    if quiet:
        return
    if table.is_partial:
        return
    if count and len(rows) > count:
        view.rest(rows[count:], all_ns, f"… in {len(rows) - count:,} more rows (all: -n 0)")
    if table.folded.calls:
        folded = table.folded
        print(f"{folded.calls:>14,}  {amount(folded.own_ns):>11}          of start-up, imports and kpytrace itself are "
              f"folded away (--all lists them)")


def _print_edges(edges: Sequence[Edge], side: str, all_ns: int, count: int | None, view: _View) -> None:
    print(terminal.bold(f"\n{'calls':>14}  {'time':>11}  {'share':>6}  {'called by' if side == 'caller' else 'calls'}"))
    if not edges:
        print(f"{'':>14}  {'':>11}  {'':>6}  {'(nothing that is recorded)'}")
    for edge in edges[:count]:
        share = "" if edge.caller == edge.callee else _share(edge.total_ns, all_ns)  # of recursion, time counts repeatedly
        line = f"{edge.calls:>14,}  {amount(edge.total_ns):>11}  {share:>6}  "
        key = getattr(edge, side)
        print(line + (view.title(key[0], key[1], key[2], len(line)) if key else "(the outermost call of a thread)"))


def _edge_dict(edge: Edge, side: str) -> dict[str, object]:
    key = getattr(edge, side) or ("", "", 0, "")
    return {"name": key[0], "file": key[1], "line": key[2], "calls": edge.calls, "self_ns": edge.own_ns,
            "total_ns": edge.total_ns}


def _by_time(edges: Sequence[Edge]) -> list[Edge]:
    return sorted(edges, key=lambda e: (-e.total_ns, -e.calls, e.caller or ("", "", 0, ""), e.callee))


def _print_of(files: Sequence[KptFile], options: dict[str, str], count: int | None) -> int:
    """Prints the function --of NAME with its callers and callees."""
    wanted, table = options["of"], Table()
    keys = [table.add(file, False) for file in files]
    found = matching(table.sorted("own"), wanted)
    if not found:
        import difflib

        near = difflib.get_close_matches(wanted, sorted({f.name for f in table.functions.values()}), n=3)
        raise ValueError(f"no function of the recording is named {wanted!r}" +
                         (f"; did you mean {', '.join(near)}?" if near else ""))
    chosen = {(f.name, f.file, f.line, f.thread) for f in found}
    edges: dict[Any, Edge] = {}
    for file, numbers in zip(files, keys):
        edges_of(file, numbers, chosen, edges)
    callers = _by_time([edge for edge in edges.values() if edge.callee in chosen])
    callees = _by_time([edge for edge in edges.values() if edge.caller in chosen])
    if "json" in options:
        _print_json({"functions": [f.as_dict() for f in found], "callers": [_edge_dict(e, "caller") for e in callers],
                     "callees": [_edge_dict(e, "callee") for e in callees]})
        return 0
    view, all_ns = _View(options), table.own_ns
    view.head("function")
    for f in found:
        view.row(f, all_ns)
    total_ns = sum(f.total_ns for f in found)
    _print_edges(callers, "caller", total_ns, count, view)
    _print_edges(callees, "callee", total_ns, count, view)
    return 0


def _print_json(found: dict[str, object]) -> None:
    import json

    print(json.dumps(found, indent=1))


def _print_csv(rows: Sequence[Function], all_ns: int) -> None:
    import csv

    out = csv.writer(sys.stdout, lineterminator="\n")
    names = ("name", "file", "line", "thread", "calls", "self_ns", "total_ns", "max_ns", "percent")
    out.writerow(names)
    for f in rows:
        values = {"thread": "", **f.as_dict(), "percent": f"{f.own_ns / all_ns * 100 if all_ns else 0:.3f}"}
        out.writerow([values[name] for name in names])


def _other_tables(options: dict[str, str], files: Sequence[KptFile], sort: str, count: int) -> int | None:
    """Prints the table of GPUs, operators or tasks, if one is wanted."""
    kinds = [name for name in ("gpu", "ops", "tasks", "coroutines") if name in options]
    if not kinds:
        return None
    if len(files) > 1:
        raise Usage(f"--{kinds[0]} reads one file")
    file = files[0]
    if kinds[0] == "gpu":
        from . import gpu

        report = file.standalone.gpu_report(file.handle)
        if "json" in options:
            _print_json(gpu.as_dict(report))
        else:
            gpu.print_report(report, count)
        return 0
    if kinds[0] == "ops":
        from . import operators

        return operators.print_operators(file, sort, count, "callers" in options, "json" in options)
    from . import tasks

    return tasks.print_tasks(file, count, "coroutines" in options)


def _check(options: dict[str, str]) -> str:
    """Returns the sort key. Raises Usage if options contradict each other."""
    sort = options.get("sort", "own")
    if sort not in SORTS and not (sort == "gpu" and "ops" in options):
        raise Usage(f"--sort must be one of {', '.join(SORTS)}, not {sort}")
    if "callers" in options and "ops" not in options:
        raise Usage("--callers needs --ops; --of NAME lists the callers of a function")
    if "csv" in options and {"gpu", "ops", "tasks", "coroutines", "of", "json"} & options.keys():
        raise Usage("--csv prints functions: leave out the other option, or use --json")
    if {"tasks", "coroutines"} & options.keys() and "json" in options:
        raise Usage("--json prints functions, or with --gpu or --ops kernels or operators")
    return sort


def main(words: list[str]) -> int:
    parsed = parse_command(words, _ARGUMENTS, _USAGE, tuple(range(1, 1000)))
    if parsed is None:
        return 0
    options, paths = parsed
    sort, count = _check(options), row_count(options, 25)
    files = [KptFile(path, options) for path in paths]
    status = _other_tables(options, files, sort, count or 2**32 - 1)
    if status is not None:
        return status
    if "of" in options:
        return _print_of(files, options, count)
    table = Table("threads" in options)
    for file in files:
        if table.by_thread and count and len(files) == 1:
            table.add_largest(file, count, SORTS[sort])
        else:
            table.add(file, "all" not in options and not table.by_thread)
    if "json" in options:
        rows, folded = table.sorted(sort)[:count], table.folded
        _print_json({"functions": [f.as_dict() for f in rows], "self_ns": table.own_ns,
                     "folded": {"calls": folded.calls, "self_ns": folded.own_ns}})
    elif "csv" in options:
        _print_csv(table.sorted(sort)[:count], table.own_ns)
    else:
        _print_functions(table, sort, count, _View(options), "quiet" in options)
        if "quiet" not in options:
            for file in files:
                file.print_missing()
    return 0
