"""Writes a report page of several recordings: the fixed page, then the sections of each. `kpytrace report` and families
of processes use it."""

from __future__ import annotations

import os
import tempfile

from .._api import native
from .._processes import process_info
from .page_sections import Content, Redaction, begin, section, sections, source_section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO, Optional

    from .kpt_header import File

_PIECE_BYTES = 1 << 20


class ReportPage:
    """A page that is being written. Sections that get source lines, or are redacted, are held in memory until all of
    them are known."""

    def __init__(self, folder: str, out: BinaryIO, has_source: bool = False, is_redacted: bool = False) -> None:
        """`folder` is for temporary files."""
        page = native.standalone.report_page()
        self.calls, self.size = 0, out.write(page)
        self._part, self._page_bytes, self._out = os.path.join(folder, "part.html"), len(page), out
        self._has_source, self._is_redacted = has_source, is_redacted
        self._held: list[tuple[Content, dict[str, str]]] = []
        self._hosts: list[str] = []

    def put_trace(self, path: str, info: dict[str, str], write: Callable[[str], int], side: str = "") -> None:
        """Adds the sections that the report writer appends to its page, with what describes the process. `write` writes
        a page, and returns the number of its calls."""
        self.calls += write(self._part)
        about = {"name": os.path.basename(path), "title": process_info.title(info), "command": info.get("command", ""),
                 "side": side}
        self._hosts.append(info.get("host", ""))
        self._move(about)

    def _move(self, about: dict[str, str]) -> None:
        """Moves the sections of the page that the C writer has written. `about` describes the trace in it."""
        with open(self._part, "rb") as written:
            written.seek(self._page_bytes)
            if self._has_source or self._is_redacted:
                for kind, data in sections(written.read()):
                    self._held.append((Content(kind, data), about if kind == "trace" else {}))
            else:
                written.seek(self._page_bytes + len(begin({})))
                self.size += self._out.write(begin(about))
                while piece := written.read(_PIECE_BYTES):
                    self.size += self._out.write(piece)
        os.unlink(self._part)

    def put_memory(self, tables: bytes) -> None:
        if self._is_redacted:
            self._held.append((Content("memory", tables), {}))
        else:
            self.size += self._out.write(section("memory", tables))

    def end(self) -> None:
        """Writes what was held."""
        redaction, source = None, b""
        if self._is_redacted:
            redaction = Redaction((file for content, _ in self._held for file in content.files()), self._hosts)
        if self._has_source:
            source = source_section([content for content, _ in self._held if content.kind == "trace"], redaction)
        for content, about in self._held:
            if redaction:
                redaction.apply(content)
                about = {key: value for key, value in about.items() if key == "side"}
            self.size += self._out.write(section(content.kind, content.data(), about))
        self.size += self._out.write(source)


def merge_page(files: Sequence[File], output: str, failed: Callable[[str, Exception], None],
               recover: bool = True) -> dict[str, int]:
    """Writes a page of several processes, as merge() writes other formats. Returns the same counts."""
    from .atomic_file import whole

    plugin = native.load()
    standalone = native.standalone
    kernels = processes = 0
    with tempfile.TemporaryDirectory(prefix=".kpytrace-", dir=os.path.dirname(output) or ".") as folder:
        with whole(output) as name, open(name, "wb") as out:
            page = ReportPage(folder, out)
            for file in files:
                try:
                    handle, _, _ = standalone.open(plugin, file.path, recover)
                except (OSError, ValueError, RuntimeError) as error:
                    failed(file.path, error)
                    continue
                page.put_trace(file.path, file.info, lambda part: int(standalone.write(handle, part, None)["calls"]))
                kernels += standalone.gpu(handle)[1]
                standalone.close(handle)
                processes += 1
            if not processes:
                raise ValueError("no file could be read, so nothing is merged")
            page.end()
    return {"calls": page.calls, "processes": processes, "kernels": kernels}
