"""kpytrace report: writes one page for the browser from traces, tables of memory, or both."""

from __future__ import annotations

import os
import sys
import tempfile
import time

from .arguments import HELP, QUIET, RECOVER, Argument, Usage, parse_command
from .kpt_file import KptFile

_MEMORY = Argument("memory", "FILE", "also show these tables of memory (from `run --memory FILE.tables.json`)")
INPUTS = (_MEMORY, RECOVER)

_USAGE = """\
usage: kpytrace report [OPTION]... FILE...

Writes a page that shows a trace in any browser, and loads nothing from elsewhere: a timeline, a
flame graph, a table of functions, and the number of dropped events. Each FILE is a .kpt file, which
becomes a process of the page, or tables of memory (NAME.tables.json), shown as a flame graph of bytes."""


def _section(kind: str, data: bytes) -> bytes:
    """Returns a section to append to a page. It is base64, so that no data in it can end its element."""
    import base64
    import gzip

    packed = base64.b64encode(gzip.compress(data, 6, mtime=0))
    return (f'<script type="text/plain" class="section" data-kind="{kind}" data-pack="gzip">'.encode()
            + packed + b"</script>\n")


def _memory_section(path: str) -> bytes:
    from .._files.memory_tables import Tables

    return _section("memory", Tables(path).check().text)


def _trace_section(path: str, folder: str, page: bytes, options: dict[str, str]) -> tuple[bytes, int]:
    """Returns the section that the report writer appends to its page, named after the trace, and the number of
    calls."""
    import html

    file = KptFile(path, options)
    part = os.path.join(folder, "part.html")
    calls = file.write(part, "reporting")
    with open(part, "rb") as written:
        section = written.read()[len(page):]
    os.unlink(part)
    name = html.escape(os.path.basename(path)).encode("utf-8", "replace")
    return section.replace(b"<script ", b'<script data-name="%s" ' % name, 1), calls


def make(files: list[str], options: dict[str, str], folder: str) -> tuple[list[bytes], int]:
    """Returns the parts of the page, and the number of calls in it. `folder` is for temporary files."""
    from .._api import native

    native.load()
    page = native.standalone.report_page()
    memories = [path for path in files if path.endswith(".json")]
    traces = [path for path in files if path not in memories]
    memories += [options["memory"]] if "memory" in options else []
    if len(memories) > 1:
        raise Usage("a report can show the tables of only one memory recording")
    parts, calls = [page], 0
    for path in traces:
        section, count = _trace_section(path, folder, page, options)
        parts.append(section)
        calls += count
    return parts + [_memory_section(path) for path in memories], calls


def main(words: list[str]) -> int:
    output = Argument("output", "FILE", "the page to write (default: report.html)", "o")
    known = (output, *INPUTS, QUIET, HELP)
    parsed = parse_command(words, known, _USAGE, tuple(range(1, 1000)))
    if parsed is None:
        return 0
    options, files = parsed
    target = options.get("output", "report.html")
    if not target.endswith(".html"):
        raise Usage(f"a report is a .html file, not {target}; kpytrace convert writes other formats")
    from .._api.options import check_output
    from .._files.atomic_file import whole

    path = check_output(target, "report")
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix=".kpytrace-", dir=os.path.dirname(path)) as folder:
        parts, calls = make(files, options, folder)
    with whole(path) as name, open(name, "wb") as out:
        out.writelines(parts)
    if "quiet" not in options:
        size = sum(len(part) for part in parts)
        print(f"kpytrace: {calls:,} calls, {size:,} bytes in {time.perf_counter() - began:.2f} s: {target}",
              file=sys.stderr)
    return 0
