"""kpytrace merge: writes the .kpt files of several processes, or ranks, as one trace."""

from __future__ import annotations

import sys
import time

from . import progress
from .inputs import all_as_kpt
from .formatting import shown
from .arguments import Argument, Usage, parse_files
from .kpt_file import print_opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._files.clock_align import Aligned
    from .._files.kpt_header import File

_ARGUMENTS = (
    Argument("output", "FILE", "the file to write: .json or .pftrace, also with .gz", "o"),
    Argument("align", "HOW", "how to align the clocks: wall, by the wall clock of each host (default), or marks, by "
             "marks that all processes made at the same time"),
    Argument("mark", "NAME", "the name of these marks or spans; the n-th is aligned with the n-th (default: barrier)"),
    Argument("recover", "", "read damaged files up to the damage"),
    Argument("quiet", "", "print nothing", "q"),
    Argument("help", "", "print this", "h"),
)
_USAGE = """\
usage: kpytrace merge [OPTION]... FILE.kpt... -o OUT

Writes one trace of several .kpt files, or traces in Chrome's JSON format: a process for each, with its name, or its rank. The files are read one after
the other, so that merging needs the memory for the largest file.

"""


def _print_clocks(rows: Sequence[Aligned]) -> None:
    print(f"{'offset':>16}  {'drift':>12}  {'marks':>6}  {'scatter':>12}  file")
    for row in rows:
        print(f"{row.clock.offset / 1000:>13,.1f} µs  {row.clock.drift * 1e6:>8,.3f} ppm  {row.marks:>6,}  "
              f"{row.scatter / 1000:>9,.1f} µs  {shown(row.file.path)}")


def main(words: list[str]) -> int:
    parsed = parse_files(words, _ARGUMENTS, _USAGE, "usage: kpytrace merge FILE.kpt... -o OUT.json; see --help")
    if parsed is None:
        return 0
    options, paths = parsed
    how, quiet = options.get("align", "wall"), "quiet" in options
    if how not in ("wall", "marks"):
        raise Usage(f"--align must be wall or marks, not {how}")
    from .._api.options import check_output
    from .._files.kpt_header import File
    from .._files.merge import by_rank

    output = check_output(options["output"])
    if output.endswith(".kpt"):
        raise Usage("a .kpt file holds one process: merge into .json or .pftrace")
    with all_as_kpt(paths, quiet) as names:
        return _merge(sorted(map(File, names), key=by_rank), output, options)


def _merge(files: list[File], output: str, options: dict[str, str]) -> int:
    from .._files.clock_align import align
    from .._files.merge import merge, summary_line

    how, quiet = options.get("align", "wall"), "quiet" in options
    clocks = {}
    if how == "marks":
        rows = align(files, options.get("mark", "barrier"))
        clocks = {row.file.path: row.clock for row in rows}
        if not quiet:
            _print_clocks(rows)
    bar = progress.bar("merging", len(files), quiet)
    began = time.perf_counter()
    counts = merge(files, output, clocks, progress=bar, recover="recover" in options,
                   opened=None if quiet else print_opened)
    if bar:
        bar.close()
    if not quiet:
        print(f"kpytrace: {summary_line(counts)} in {time.perf_counter() - began:.2f} s: {options['output']}",
              file=sys.stderr)
    return 0
