"""kpytrace report: writes one page for the browser from traces, tables of memory, or both."""

from __future__ import annotations

import os
import sys
import tempfile
import time

from . import memory
from .arguments import HELP, QUIET, RECOVER, Argument, Usage, parse_command
from .kpt_file import KptFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

_BEGIN = b"<script "  # of a section
_PIECE_BYTES = 1 << 20
_MEMORY = Argument("memory", "FILE", "also show this recording of memory (from `run --memory`: FILE.kpt or FILE.tables.json)")
INPUTS = (_MEMORY, RECOVER)

_USAGE = """\
usage: kpytrace report [OPTION]... FILE...

Writes a page that shows a trace in any browser, and loads nothing from elsewhere: a timeline, a
flame graph, a table of functions, and the number of dropped events. Each FILE is a .kpt file, which
becomes a process of the page, or a recording of memory (from `run --memory`: a .kpt file, or
NAME.tables.json), shown as a flame graph of bytes."""


def _section(kind: str, data: bytes) -> bytes:
    """Returns a section to append to a page. It is base64, so that no data in it can end its element."""
    import base64
    import gzip

    packed = base64.b64encode(gzip.compress(data, 6, mtime=0))
    return (f'<script type="text/plain" class="section" data-kind="{kind}" data-pack="gzip">'.encode()
            + packed + b"</script>\n")


def _put_trace(path: str, folder: str, page_bytes: int, options: dict[str, str], out: BinaryIO) -> tuple[int, int]:
    """Writes the section that the report writer appends to its page, named after the trace. Returns the numbers of
    calls and of bytes."""
    import html

    file = KptFile(path, options)
    part = os.path.join(folder, "part.html")
    calls = file.write(part, "reporting")
    name = html.escape(os.path.basename(path)).encode("utf-8", "replace")
    size = out.write(b'<script data-name="%s" ' % name)
    return calls, size + _move(part, page_bytes + len(_BEGIN), out)


def _move(part: str, begin: int, out: BinaryIO) -> int:
    """Moves a file from a position on to the page. Returns the number of bytes."""
    size = 0
    with open(part, "rb") as written:
        written.seek(begin)
        while piece := written.read(_PIECE_BYTES):
            size += out.write(piece)
    os.unlink(part)
    return size


def _put_memory(path: str, folder: str, page_bytes: int, options: dict[str, str], out: BinaryIO) -> int:
    """Writes the section of a memory recording: from a .kpt file with its moments. Returns the number of bytes."""
    if not path.endswith(".kpt"):
        return out.write(_section("memory", memory.open_tables(path).text))
    part = os.path.join(folder, "part.html")
    memory.convert(path, part, "recover" in options)
    return _move(part, page_bytes, out)


def make(files: list[str], options: dict[str, str], folder: str, out: BinaryIO) -> tuple[int, int]:
    """Writes the page. Returns the numbers of calls and of bytes in it. `folder` is for temporary files."""
    from .._api import native

    native.load()
    page = native.standalone.report_page()
    memories = [path for path in files if path.endswith(".json") or memory.is_recording(path)]
    traces = [path for path in files if path not in memories]
    memories += [options["memory"]] if "memory" in options else []
    if len(memories) > 1:
        raise Usage("a report can show only one memory recording")
    calls, size = 0, out.write(page)
    for path in traces:
        counts = _put_trace(path, folder, len(page), options, out)
        calls, size = calls + counts[0], size + counts[1]
    return calls, size + sum(_put_memory(path, folder, len(page), options, out) for path in memories)


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
        with whole(path) as name, open(name, "wb") as out:
            calls, size = make(files, options, folder, out)
    if "quiet" not in options:
        print(f"kpytrace: {calls:,} calls, {size:,} bytes in {time.perf_counter() - began:.2f} s: {target}",
              file=sys.stderr)
    return 0
