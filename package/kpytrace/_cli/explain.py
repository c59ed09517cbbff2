"""kpytrace explain: says in words what stands out in a recording."""

from __future__ import annotations

import json
import sys

from .arguments import HELP, QUIET, RECOVER, Argument, parse_command
from .formatting import amount, shown
from .kpt_file import KptFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_USAGE = """\
usage: kpytrace explain [OPTION]... FILE.kpt

Says what stands out in a recording: where the time went, garbage collections, waits at locks,
tasks that blocked their event loop, functions that became slower, gaps of a GPU, threads that
never ran, and what is missing. The first tab of `kpytrace report` shows the same."""
_WIDTH = 100


def _print_wrapped(text: str, first: str, indent: str) -> None:
    import textwrap

    print(textwrap.fill(shown(text), _WIDTH, initial_indent=first, subsequent_indent=indent,
                        break_long_words=False, break_on_hyphens=False))


def _place(place: dict[str, Any]) -> str:
    thread = f" on {shown(place['thread'])}" if place["thread"] else ""
    return f"at {amount(place['at_ns'])} for {amount(place['ns'])}{thread}"


def _print_facts(found: dict[str, Any]) -> None:
    print("\nlargest own times")
    for row in found["own"]:
        waits = ", which waits" if row["waits"] else ""
        print(f"  {row['share']:>6.1%}  {amount(row['own_ns']):>11}  {shown(row['short'])}{waits}: {row['calls']:,} calls, "
              f"the longest {_place(row['longest'])}")
    print("\nown time by module, with the C functions that its functions call")
    for row in found["modules"]:
        print(f"  {row['share']:>6.1%}  {amount(row['own_ns']):>11}  {shown(row['module'])}")
    if found["more_modules"]:
        print(f"  {'':>6}  {'':>11}  and {found['more_modules']:,} more modules")
    if found["waits"]:
        print("\nlongest waits")
    for row in found["waits"]:
        by = f", called by {shown(row['by']['short'])}" if row["by"] != row["in"] else ""
        print(f"  {'':>6}  {amount(row['total_ns']):>11}  for {row['for']}: {shown(row['in']['short'])}{by}: {row['count']:,} waits of "
              f"{row['threads']:,} thread{'s' * (row['threads'] != 1)}")


def _print(path: str, found: dict[str, Any]) -> None:
    threads = found["threads"]
    print(f"{shown(path)}: {found['calls']:,} calls of {threads:,} thread{'s' * (threads != 1)} in "
          f"{amount(found['duration_ns'])}")
    if found["own"]:
        _print_facts(found)
    findings = found["findings"]
    print("\nfindings" if findings else "\nno findings")
    for number, finding in enumerate(findings, 1):
        print(f"  {number}. {finding['title']}")
        _print_wrapped(finding["text"], "     ", "     ")
        for place in finding["places"]:
            print(f"     {_place(place)}")
    if found["limits"]:
        print("\nnot in the recording")
    for limit in found["limits"]:
        _print_wrapped(limit, "  ", "  ")


def main(words: list[str]) -> int:
    known = (Argument("json", "", "the same as JSON, in nanoseconds"), RECOVER, QUIET, HELP)
    parsed = parse_command(words, known, _USAGE, (1,))
    if parsed is None:
        return 0
    options, (path,) = parsed
    file = KptFile(path, options)
    bar = file.bar("reading")
    found = json.loads(file.standalone.explain(file.handle, bar))
    if bar:
        bar.close()
    if "json" in options:
        json.dump(found, sys.stdout, indent=1)
        print()
    else:
        _print(path, found)
    return 0
