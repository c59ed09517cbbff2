"""kpytrace table: writes time by rank, step and function or operator, as Parquet."""

from __future__ import annotations

import os
import sys
from functools import partial

from .._api.options import STDOUT, check_suffix
from .arguments import Argument, Usage, parse_files
from .formatting import shown
from .inputs import all_as_kpt
from .kpt_file import print_opened

_ARGUMENTS = (
    Argument("output", "FILE", "the .parquet file to write, or a folder for one file per input", "o"),
    Argument("step", "NAME", "the spans and annotations that are steps; * matches anything (default: ProfilerStep#N, "
             "or spans named step, or from one step of an optimizer to the next)"),
    Argument("calls", "", "write a row for each call, operator and annotation, not for each function"),
    Argument("ops", "", "write a row for each of torch's operators and annotations, not for each function"),
    Argument("callers", "", "with --ops: a row for each operator and the Python function that called it, or, of work of "
             "autograd, the forward operator"),
    Argument("recover", "", "read damaged files up to the damage"),
    Argument("quiet", "", "print nothing", "q"),
    Argument("help", "", "print this", "h"),
)
_USAGE = """\
usage: kpytrace table [OPTION]... FILE.kpt... -o OUT.parquet

Adds up the calls of .kpt files, or of traces in Chrome's JSON format, by rank, step, thread and function or operator, for SQL: docs/ranks.md has the columns
and queries.
Files are read one after the other. Needs pyarrow.

"""


def _output(path: str) -> str:
    """Checks the name of the output: a .parquet file, a folder, or "-"."""
    if path == "-":
        return STDOUT
    if path.endswith(os.sep) or os.path.isdir(path) or (os.path.exists(path) and not os.path.isfile(path)):
        return path
    check_suffix(path, (".parquet",), "NAME.parquet, or a folder, NAME/, for one file per input")
    return path


def _print_no_steps(step: str, path: str) -> None:
    print(f"kpytrace: {shown(path)} has no span or annotation {shown(step)!r}: its rows have no step; the name may have *, as "
          f"in 'ProfilerStep*'", file=sys.stderr)


def main(words: list[str]) -> int:
    parsed = parse_files(words, _ARGUMENTS, _USAGE, "usage: kpytrace table FILE.kpt... -o OUT.parquet; see --help")
    if parsed is None:
        return 0
    options, paths = parsed
    if "ops" in options and "calls" in options:
        raise Usage("--ops and --calls are two kinds of tables: choose one; --calls has operators, too")
    if "callers" in options and "ops" not in options:
        raise Usage("--callers needs --ops")
    from .._files import parquet
    from .._files.kpt_header import File
    from .._files.merge import by_rank

    quiet = "quiet" in options
    output = _output(options["output"])
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # others of Arrow keep what was freed
    what = parquet.What.CALLS if "calls" in options else parquet.What.FUNCTIONS
    if "ops" in options:
        what = parquet.What.OPERATORS_AND_CALLERS if "callers" in options else parquet.What.OPERATORS
    with all_as_kpt(paths, quiet) as names:
        files = sorted(map(File, names), key=by_rank)
        count = parquet.write(files, output, options.get("step"), what, "recover" in options,
                              None if quiet else print_opened,
                              None if quiet else partial(_print_no_steps, options.get("step", "")))
    if not quiet:
        print(f"kpytrace: {count:,} rows of {len(files):,} files: {options['output']}", file=sys.stderr)
    return 0
