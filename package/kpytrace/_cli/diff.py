"""kpytrace diff: lists which functions or operators became slower or faster between two .kpt files or two sets of
them."""

from __future__ import annotations

import sys

from .arguments import Argument, Usage, columns, parse, row_count
from .formatting import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._files.diff_statistics import Change, Run

_ARGUMENTS = (
    Argument("count", "N", "how many rows (default: 25; 0: all)", "n"),
    Argument("ops", "", "compare torch's operators and annotations; own is without those inside, and GPU time is that of "
             "what they launched"),
    Argument("json", "", "print all rows as JSON"),
    Argument("html", "FILE", "write a page with all rows"),
    Argument("fail-over", "10%", "exit with status 1 if the whole program became slower by more than this, or, with "
             "several runs, a function or operator did and the difference is significant"),
    Argument("recover", "", "read damaged files up to the damage"),
    Argument("quiet", "", "print only the requested output", "q"),
    Argument("help", "", "print this", "h"),
)
_GPU = ("gpu_own_before", "gpu_own_after")
_USAGE = """\
usage: kpytrace diff [OPTION]... BEFORE AFTER
       kpytrace diff [OPTION]... --before FILE... --after FILE...

Compares functions, or with --ops operators: calls, and the time in them alone (own). With several runs on both sides, the difference
has a confidence interval of 95 % (Welch's), and ! marks significant differences (Holm's method, 1 % for the whole
table).

"""


def _sides(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Returns the words before --before and --after, then the files of each side."""
    found: dict[str, list[str]] = {"": [], "--before": [], "--after": []}
    side = ""
    for word in words:
        if word in ("--before", "--after"):
            side = word
        elif side and word.startswith("-"):
            raise Usage(f"{word}: put options before --before and --after")
        else:
            found[side].append(word)
    return found[""], found["--before"], found["--after"]


def _run(path: str, options: dict[str, str]) -> Run:
    from .._files.diff_statistics import run_of, run_of_operators
    from .kpt_file import SORTS, KptFile

    file = KptFile(path, options)
    if "ops" in options:
        return run_of_operators(file.standalone.operators(file.handle, False, None))
    return run_of(file.standalone.profile(file.handle, SORTS["own"], 2**32 - 1, False, None))


def _ms(ns: float) -> str:
    return f"{ns / 1e6:,.3f}"


def _has_gpu(changes: Sequence[Change]) -> bool:
    """Returns whether both sides have times of GPUs."""
    return all(any(getattr(change, name, 0) for change in changes) for name in ("gpu_total_before", "gpu_total_after"))


def _print(changes: Sequence[Change], count: int | None, runs: tuple[int, int], what: str) -> None:
    several, has_gpu = min(runs) > 1, _has_gpu(changes)
    margin = f"  {'± (95 %)':>10}  {'p':>7}  " if several else "  "
    gpu_head = f"{'GPU before':>12}  {'after':>12}  " if has_gpu else ""
    print(f"own time in ms, means of {runs[0]} and {runs[1]} run{'s' * (runs[1] != 1)}")
    print(f"{'before':>12}  {'after':>12}  {'difference':>12}  {'ratio':>6}{margin}{gpu_head}{'calls before':>12}  "
          f"{'after':>12}  {what}")
    for change in changes[:count]:
        ratio = f"{change.ratio:.2f}" if change.ratio is not None else "new"
        ratio = ratio if change.calls_after else "gone"
        extra = f"  {_ms(change.margin or 0):>10}  {change.p or 0:>7.4f} {'!' if change.is_sure else ' '}" \
            if several else "  "
        gpu = "".join(f"{_ms(getattr(change, name)):>12}  " for name in _GPU if has_gpu)
        print(f"{_ms(change.own_before):>12}  {_ms(change.own_after):>12}  {_ms(change.difference):>12}  {ratio:>6}"
              f"{extra}{gpu}{change.calls_before:>12,.0f}  {change.calls_after:>12,.0f}  {shown(change.name)}")


def _is_over(changes: Sequence[Change], share: float, several: bool) -> bool:
    if several:
        return any(change.is_sure and change.difference > share * change.own_before for change in changes)
    before, after = (sum(getattr(change, name) for change in changes) for name in ("own_before", "own_after"))
    return after > before * (1.0 + share)


def main(words: list[str]) -> int:
    plain, before, after = _sides(words)
    options, rest = parse(_ARGUMENTS, plain)
    if "help" in options:
        print(_USAGE + columns(_ARGUMENTS))
        return 0
    if not before and not after and len(rest) == 2:
        before, after, rest = rest[:1], rest[1:], []
    if rest or not before or not after:
        raise Usage("usage: kpytrace diff BEFORE.kpt AFTER.kpt, or --before FILES --after FILES; see --help")
    count = row_count(options, 25)
    limit = options.get("fail-over", "").rstrip("% ")
    if "fail-over" in options and not limit.replace(".", "", 1).isdigit():
        raise Usage(f"--fail-over must be a percentage, such as 10%, not {options['fail-over']}")
    from .._files.diff_statistics import Change, OperatorChange, compare

    what, kind = ("operator", OperatorChange) if "ops" in options else ("function", Change)
    changes = compare([_run(path, options) for path in before], [_run(path, options) for path in after], kind)
    if "ops" in options and not changes and "quiet" not in options:
        print("kpytrace: the recordings have no operators: record with --torch", file=sys.stderr)
    if "json" in options:
        import json

        json.dump([change.as_dict() for change in changes], sys.stdout, indent=1)
        print()
    if "html" in options:
        from .._files.atomic_file import write_text
        from .diff_page import page

        write_text(options["html"], page(changes, before, after, what, _has_gpu(changes)))
    if "json" not in options and "html" not in options:
        _print(changes, count, (len(before), len(after)), what)
    if limit and _is_over(changes, float(limit) / 100.0, min(len(before), len(after)) > 1):
        slower = "operators" if "ops" in options else "program"
        print(f"kpytrace: the {slower} became slower by more than {options['fail-over']}", file=sys.stderr)
        return 1
    return 0
