"""kpytrace table: writes time by rank, step and function, as Parquet."""

from __future__ import annotations

import sys

from .arguments import Argument, parse_files
from .kpt_file import print_opened

_ARGUMENTS = (
    Argument("output", "FILE", "the .parquet file to write, or a folder for one file per input", "o"),
    Argument("step", "NAME", "the spans that are steps; * matches anything (default: step)"),
    Argument("calls", "", "write a row for each call, not for each function"),
    Argument("recover", "", "read damaged files up to the damage"),
    Argument("quiet", "", "print nothing", "q"),
    Argument("help", "", "print this", "h"),
)
_USAGE = """\
usage: kpytrace table [OPTION]... FILE.kpt... -o OUT.parquet

Adds up the calls of .kpt files by rank, step, thread and function, for SQL: docs/ranks.md has the columns and queries.
Files are read one after the other. Needs pyarrow.

"""


def main(words: list[str]) -> int:
    parsed = parse_files(words, _ARGUMENTS, _USAGE, "usage: kpytrace table FILE.kpt... -o OUT.parquet; see --help")
    if parsed is None:
        return 0
    options, paths = parsed
    from .._files import parquet
    from .._files.kpt_header import File
    from .._files.merge import by_rank

    files = sorted((File(path) for path in paths), key=by_rank)
    quiet = "quiet" in options
    count = parquet.write(files, options["output"], options.get("step", "step"), "calls" in options,
                          "recover" in options, None if quiet else print_opened)
    if not quiet:
        print(f"kpytrace: {count:,} rows of {len(files):,} files: {options['output']}", file=sys.stderr)
    return 0
