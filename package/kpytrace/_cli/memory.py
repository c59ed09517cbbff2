"""kpytrace memory: prints tables of allocations from a recording, NAME.kpt or NAME.tables.json, or the changes between
two of them."""

from __future__ import annotations

import os
import sys
import tempfile

from .._files.atomic_file import write_text
from .._api.options import read_time, read_within
from .._files.memory_tables import CHOICES, KINDS, Row, Tables
from .arguments import RECOVER, Argument, Usage, columns, parse, row_count
from .formatting import shown
from .kpt_file import print_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from .._files.kpt_header import File

_ARGUMENTS = (
    Argument("at", "WHEN", "peak, end (blocks that were not freed), all (every block that was allocated), temporary "
             "(blocks that were freed at once), or a time after the begin, 12.5s, of a recording (default: both peak and "
             "end; with two files: end)"),
    Argument("temporary-within", "N", "a block is temporary if the thread that allocated it freed it before that thread "
             "made N more (default: 2)"),
    Argument("by", "KIND", f"{', '.join(KINDS[:-1])} or {KINDS[-1]} (default: line)"),
    Argument("device", "NAME", "list only allocations on this device; --by device lists the names"),
    Argument("total", "", "sort by the allocations of a function and its callees", "t"),
    Argument("count", "N", "how many rows (default: 20; 0: all)", "n"),
    Argument("folded", "FILE", "write collapsed stacks for a flame graph of bytes (default: at the peak; "
             "--at selects another time)"),
    Argument("series", "FILE", "write live bytes over time, as CSV"),
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


def convert(source: str, target: str, recover: bool, wanted: tuple[int, int] | None = None,
            prints_state: bool = True) -> None:
    """Writes the file `target`, in the format of its suffix, from a recording. `wanted` is what tables have beside the
    usual: a time in nanoseconds or -1, and temporary_within."""
    from .._api import native

    native.load()
    state = native.standalone.memory_convert(source, target, recover, wanted)
    if prints_state:
        print_state(source, state, "allocations")


def open_tables(path: str, recover: bool = False, wanted: tuple[int, int] = (-1, 0),
                prints_state: bool = True) -> Tables:
    """Returns the tables of a recording, or of a file of tables."""
    if not path.endswith(".kpt"):
        if wanted != (-1, 0):
            raise Usage(f"{path} has tables that were made before: a time, and --temporary-within, need the recording, "
                        f"FILE.kpt")
        return Tables(path).check()
    with tempfile.TemporaryDirectory(prefix="kpytrace-") as folder:
        made = os.path.join(folder, "memory.tables.json")
        convert(path, made, recover, wanted, prints_state)
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
    what = {"peak": "At the peak", "end": "At the end, not freed", "all": "Allocated in all",
            "temporary": f"Temporary, freed before their thread allocated {tables.temporary_within} more",
            "moment": f"{tables.moment_ns / 1e9:g} s after the begin"}[at]
    guessed = f", estimated from samples, one byte in {tables.sample_bytes:,}" if tables.sample_bytes else ""
    lost = f"; {tables.entries_dropped:,} entries were dropped" if tables.entries_dropped else ""
    return f"{what}: {_amount(size)} in {count:,} blocks{guessed}{lost}"


def _check(options: dict[str, str]) -> None:
    if options.get("by", KINDS[0]) not in KINDS:
        raise Usage(f"--by must be one of {', '.join(KINDS)}, not {options['by']}")
    row_count(options, 20)


def _wanted(options: dict[str, str]) -> tuple[int, int]:
    """Returns what tables are made with. A time in --at becomes the word "moment"."""
    within, at, at_ns = options.get("temporary-within", "0"), options.get("at", "end"), -1
    words = [word for word in CHOICES if word != "moment"]
    if at not in words:
        try:
            at_ns = read_time(at)
        except ValueError:
            raise Usage(f"--at must be one of {', '.join(words)}, or a time such as 12.5s, not {at}") from None
        options["at"] = "moment"
    try:
        return at_ns, read_within(within)
    except (TypeError, ValueError) as error:
        raise Usage(f"--temporary-within {error}, not {within}") from None


def _write_series(tables: Tables, path: str, device: str | None) -> None:
    lines = [f"{time / 1e9:.9f},{last},{most}\n" for time, last, most in tables.series(device)]
    write_text(path, "seconds,bytes,most_bytes\n" + "".join(lines))


def main(words: list[str]) -> int:
    options, files = parse(_ARGUMENTS, words)
    if "help" in options:
        print(_USAGE + columns(_ARGUMENTS))
        return 0
    if len(files) not in (1, 2):
        raise Usage("usage: kpytrace memory FILE [ANOTHER], each a .kpt file or NAME.tables.json; see --help")
    _check(options)
    by, device = options.get("by", "line"), options.get("device")
    wanted = _wanted(options)
    tables = [open_tables(file, "recover" in options, wanted) for file in files]
    if "folded" in options:
        write_text(options["folded"], tables[-1].folded(options.get("at", "peak"), device))
    if "series" in options:
        _write_series(tables[-1], options["series"], device)
    if written := [options[name] for name in ("folded", "series") if name in options]:
        print(f"kpytrace: {', '.join(written)}", file=sys.stderr)
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
