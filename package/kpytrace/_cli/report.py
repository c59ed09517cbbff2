"""kpytrace report: writes one page for the browser from traces, tables of memory, or both."""

from __future__ import annotations

import os
import sys
import tempfile
import time

from . import inputs, memory
from .arguments import HELP, QUIET, RECOVER, Argument, Usage, parse_command
from .kpt_file import KptFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

_MEMORY = Argument("memory", "FILE", "also show this recording of memory (from `run --memory`: FILE.kpt or FILE.tables.json)")
_DIFF = Argument("diff", "", "compare two recordings, before and after: the flame graph has the difference in colours")
_SOURCE = Argument("source", "", "put the lines of the recorded functions on the page, from the files as they are now")
_REDACT = Argument("redact", "", "leave out absolute paths, command lines, the user and the host")
INPUTS = (_MEMORY, _DIFF, _SOURCE, _REDACT, RECOVER)
_DIFF_SIDES = ("before", "after")

_USAGE = """\
usage: kpytrace report [OPTION]... FILE...

Writes a page that shows a trace in any browser, and loads nothing from elsewhere: a timeline, a
flame graph, a table of functions, and the number of dropped events. Each FILE is a .kpt file, or a
trace in Chrome's JSON format (.json, .json.gz: of kpytrace, torch.profiler, viztracer), which becomes a
process of the page, a folder of .kpt files, or a recording of memory (from `run --memory`: a .kpt file,
or NAME.tables.json), shown as a flame graph of bytes."""


def _recordings(paths: list[str]) -> list[str]:
    """Returns the files, and those of folders in the order of their ranks and starts."""
    from .._files.kpt_header import File
    from .._files.merge import by_rank

    found: list[str] = []
    for path in paths:
        if not os.path.isdir(path):
            found.append(path)
            continue
        inside = [os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(".kpt")]
        if not inside:
            raise Usage(f"the folder {path} has no .kpt file: name a folder of recordings, as --children makes")
        found += [file.path for file in sorted(map(File, inside), key=by_rank)]
    return found


def make(files: list[str], options: dict[str, str], folder: str, out: BinaryIO) -> tuple[int, int]:
    """Writes the page. Returns the numbers of calls and of bytes in it. `folder` is for temporary files."""
    from .._api import native
    from .._files.report_page import ReportPage

    native.load()
    files = _recordings(files)
    headers = {path: memory.header(path) for path in files}
    memories = [path for path in files
                if inputs.is_memory_table(path) or ((header := headers[path]) and header.has_memory)]
    traces = [path for path in files if path not in memories or ((header := headers[path]) and header.has_calls)]
    if "memory" in options:  # one that is named is shown instead of those in traces
        memories = [path for path in memories if path not in traces] + [options["memory"]]
    if len(memories) > 1:
        raise Usage(f"a report can show only one memory recording, and there are {len(memories)}, in "
                    f"{', '.join(memories)}: choose one with --memory FILE")
    sides = _DIFF_SIDES if "diff" in options else ("",) * len(traces)
    if len(traces) != len(sides):
        raise Usage(f"--diff compares two recordings, not {len(traces)}: kpytrace report --diff BEFORE.kpt AFTER.kpt")
    page = ReportPage(folder, out, "source" in options, "redact" in options)
    for path, side in zip(traces, sides):
        file = KptFile(path, options)
        page.put_trace(path, file.info, lambda part: file.write(part, "reporting"), side)
    for path in memories:
        if path.endswith(".kpt"):  # the state of a file with calls, too, has been printed
            page.put_memory(lambda part: memory.convert(path, part, "recover" in options, None, path not in traces))
        else:
            page.put_memory_tables(memory.open_tables(path).text)
    page.end()
    return page.calls, page.size


def main(words: list[str]) -> int:
    output = Argument("output", "FILE", "the page to write (default: report.html); - is stdout", "o")
    known = (output, *INPUTS, QUIET, HELP)
    parsed = parse_command(words, known, _USAGE, tuple(range(1, 1000)))
    if parsed is None:
        return 0
    options, files = parsed
    target = options.get("output", "report.html")
    if target != "-" and not target.endswith(".html"):
        raise Usage(f"a report is a .html file, not {target}; kpytrace convert writes other formats")
    return write(files, target, options)


def write(files: list[str], target: str, options: dict[str, str]) -> int:
    """Writes the page to the file `target`."""
    from .._api.options import check_output
    from .._files.atomic_file import whole

    path = check_output(target, "report")
    began = time.perf_counter()
    beside = os.path.dirname(path) if target != "-" else None
    with tempfile.TemporaryDirectory(prefix=".kpytrace-", dir=beside) as folder:
        with whole(path) as name, open(name, "wb") as out:
            calls, size = make(files, options, folder, out)
    if "quiet" not in options:
        print(f"kpytrace: {calls:,} calls, {size:,} bytes in {time.perf_counter() - began:.2f} s: {target}",
              file=sys.stderr)
    return 0
