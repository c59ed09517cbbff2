"""kpytrace memory: prints tables of allocations from a recording, NAME.kpt or NAME.tables.json, or the changes between
two of them."""

from __future__ import annotations

import os
import sys
import tempfile

from .._files.atomic_file import write_text
from .._files.memory_tables import KINDS, TIMES, Row, Tables
from .arguments import RECOVER, Argument, Usage, columns, parse, row_count
from .formatting import shown
from .kpt_file import print_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from .._files.kpt_header import File

_ARGUMENTS = (
    Argument("at", "WHEN", "peak, end (blocks that were not freed) or all (every block that was allocated) "
             "(default: both peak and end; with two files: end)"),
    Argument("by", "KIND", f"{', '.join(KINDS[:-1])} or {KINDS[-1]} (default: line)"),
    Argument("device", "NAME", "list only allocations on this device; --by device lists the names"),
    Argument("total", "", "sort by the allocations of a function and its callees", "t"),
    Argument("count", "N", "how many rows (default: 20; 0: all)", "n"),
    Argument("folded", "FILE", "write collapsed stacks for a flame graph of bytes (default: at the peak; "
             "--at selects another time)"),
    RECOVER,
    Argument("help", "", "print this", "h"),
)

_USAGE = """\
usage: kpytrace memory [OPTION]... FILE
       kpytrace memory [OPTION]... BEFORE AFTER

Lists the allocations at the peak, and those that were not freed at the end; for two files, lists the changes. A file is a
recording, FILE.kpt, or its tables, FILE.tables.json: `kpytrace run --memory FILE script.py` writes either, and
kpytrace.memory(...).export("FILE.tables.json") writes tables at any time.

"""


def header(path: str) -> Optional[File]:
    """Returns the description of a .kpt file, or None if it can't be read: the caller opens it, and explains."""
    from .._files.kpt_header import File

    try:
        return File(path) if path.endswith(".kpt") else None
    except (OSError, ValueError):
        return None


def convert(source: str, target: str, recover: bool, prints_state: bool = True) -> None:
    """Writes the file `target`, in the format of its suffix, from a recording."""
    from .._api import native

    native.load()
    state = native.standalone.memory_convert(source, target, recover)
    if prints_state:
        print_state(source, state, "allocations")


def open_tables(path: str, recover: bool = False, prints_state: bool = True) -> Tables:
    """Returns the tables of a recording, or of a file of tables."""
    if not path.endswith(".kpt"):
        return Tables(path).check()
    with tempfile.TemporaryDirectory(prefix="kpytrace-") as folder:
        made = os.path.join(folder, "memory.tables.json")
        convert(path, made, recover, prints_state)
        return Tables(made).check()



def _amount(size: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(size) >= factor:
            return f"{size / factor:,.2f} {unit}"
    return f"{size} B"


def _print(title: str, rows: list[Row], options: dict[str, str]) -> None:
    count = row_count(options, 20)
    if "total" in options:
        rows = sorted(rows, key=lambda row: -abs(row.total_bytes))
    print(f"{title}\n{'own':>12}  {'blocks':>11}  {'total':>12}  where")
    for row in rows[:count]:
        print(f"{_amount(row.bytes):>12}  {row.blocks:>11,}  {_amount(row.total_bytes):>12}  {shown(row.where)}")
    if count and len(rows) > count:
        more = len(rows) - count
        print(f"{'':>12}  {'':>11}  {'':>12}  … and {more:,} more row{'s' * (more != 1)}")


def _title(tables: Tables, at: str, device: str | None) -> str:
    size, count = tables.total(at, device)
    what = {"peak": "At the peak", "end": "At the end, not freed", "all": "Allocated in all"}[at]
    guessed = f", estimated from samples, one byte in {tables.sample_bytes:,}" if tables.sample_bytes else ""
    lost = f"; {tables.entries_dropped:,} entries were dropped" if tables.entries_dropped else ""
    return f"{what}: {_amount(size)} in {count:,} blocks{guessed}{lost}"


def _check(options: dict[str, str]) -> None:
    for name, known in (("at", TIMES), ("by", KINDS)):
        if options.get(name, known[0]) not in known:
            raise Usage(f"--{name} must be one of {', '.join(known)}, not {options[name]}")
    row_count(options, 20)


def main(words: list[str]) -> int:
    options, files = parse(_ARGUMENTS, words)
    if "help" in options:
        print(_USAGE + columns(_ARGUMENTS))
        return 0
    if len(files) not in (1, 2):
        raise Usage("usage: kpytrace memory FILE [ANOTHER], each a .kpt file or NAME.tables.json; see --help")
    _check(options)
    by, device = options.get("by", "line"), options.get("device")
    tables = [open_tables(file, "recover" in options) for file in files]
    if "folded" in options:
        write_text(options["folded"], tables[-1].folded(options.get("at", "peak"), device))
        print(f"kpytrace: {options['folded']}", file=sys.stderr)
    elif len(tables) == 2:
        at = options.get("at", "end")
        rows = tables[1].diff(tables[0], at, by, device)
        size, count = sum(row.bytes for row in rows), sum(row.blocks for row in rows)
        _print(f"Changed, {at}: {_amount(size)} in {count:,} blocks", rows, options)
    else:
        for i, at in enumerate([options["at"]] if "at" in options else ["peak", "end"]):
            print(end="\n" if i else "")
            _print(_title(tables[0], at, device), tables[0].rows(at, by, device), options)
    return 0
