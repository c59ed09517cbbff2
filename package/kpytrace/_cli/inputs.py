"""The files that commands read: .kpt files, and traces in Chrome's JSON format, of kpytrace, torch.profiler, viztracer or
another tool, also compressed. A JSON trace is converted to a temporary .kpt file, which is what the command reads."""

from __future__ import annotations

import contextlib
import os
import sys

from . import progress
from .arguments import Usage
from .formatting import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

IMPORTED = "Chrome JSON"  # the value of "recording" in the info of a converted file
_PIECE_BYTES = 1 << 20
_KPT, _GZIP = b"kpytrace", b"\x1f\x8b"
_WITH_GZIP_HEAD = 31  # the window of zlib for gzip files
_MEMORY_SCHEMA = b'"kpytrace.memory.'


def _unpacked(file: BinaryIO) -> Iterator[bytes]:
    """Yields the decompressed bytes of a gzip file, which may have several members. If it is damaged or cut off, it ends
    there."""
    import zlib

    unpack = zlib.decompressobj(_WITH_GZIP_HEAD)
    with contextlib.suppress(zlib.error):
        while packed := file.read(_PIECE_BYTES // 8):
            while packed:
                yield unpack.decompress(packed)
                packed = unpack.unused_data
                if unpack.eof:
                    unpack = zlib.decompressobj(_WITH_GZIP_HEAD)


def _pieces(path: str, bar: progress.Bar | None = None) -> Iterator[bytes]:
    """Yields the bytes of a file, decompressed."""
    with open(path, "rb") as file:
        is_packed = file.read(2) == _GZIP
        file.seek(0)
        for piece in _unpacked(file) if is_packed else iter(lambda: file.read(_PIECE_BYTES), b""):
            yield piece
            if bar:
                bar(file.tell())


def _head(path: str) -> bytes:
    """Returns the first bytes of a file, decompressed."""
    return next(filter(None, _pieces(path)), b"")[:200]


def is_memory_table(path: str) -> bool:
    """Whether this is NAME.tables.json, which has the allocations of a program."""
    try:
        return path.endswith(".json") and _MEMORY_SCHEMA in _head(path)
    except OSError:
        return False  # the caller opens it, and explains


def _refuse(path: str) -> None:
    """Raises the error for a file that is neither."""
    plain = path[:-3] if path.endswith(".gz") else path
    if plain.endswith(".pftrace"):
        raise Usage(f"{path} is a trace for Perfetto, which kpytrace writes and does not read: `kpytrace view --perfetto "
                    f"{path}` shows it in ui.perfetto.dev; for the other commands record a .kpt file")
    if plain.endswith(".html"):
        raise Usage(f"{path} is a page: `kpytrace view {path}` shows it")
    raise Usage(f"{path} is not a .kpt file or a trace in Chrome's JSON format: record with `kpytrace run -o FILE.kpt`")


def _convert(path: str, target: str, quiet: bool) -> None:
    from .._api import native

    native.load()
    standalone = native.standalone
    made = standalone.import_open()
    bar = progress.bar(f"reading {os.path.basename(path)}", os.path.getsize(path), quiet)
    for piece in _pieces(path, bar):
        if not standalone.import_feed(made, piece):
            break
    if bar:
        bar.close()
    found = standalone.import_end(made)
    if not found["is_trace"]:
        raise ValueError(f"{path} has no list of events: it is JSON, but no trace in Chrome's format")
    if not quiet and not found["is_whole"]:
        print(f"kpytrace: {shown(path)} is cut off, or damaged at byte {found['bytes']:,}: the {found['events']:,} events up to "
              f"there are read", file=sys.stderr)
    if not quiet and found["skipped"]:
        print(f"kpytrace: {shown(path)}: {found['skipped']:,} of {found['events']:,} events are arrows, asynchronous events or "
              f"others that are neither calls nor marks nor counters: left out", file=sys.stderr)
    standalone.import_write(made, target, f"recording={IMPORTED}\n".encode())


@contextlib.contextmanager
def as_kpt(path: str, quiet: bool) -> Iterator[str]:
    """Yields the path of a .kpt file with the recording of PATH: PATH itself, or a temporary file of the same name. Raises
    Usage if the file is of another kind."""
    head = _head(path)
    if head[:8] == _KPT or path.endswith(".kpt"):  # a damaged .kpt file is explained by its reader
        yield path
        return
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        _refuse(path)
    import tempfile

    with tempfile.TemporaryDirectory(prefix="kpytrace-") as folder:
        name = os.path.basename(path)
        for suffix in (".gz", ".json"):
            name = name[:-len(suffix)] if name.endswith(suffix) else name
        target = os.path.join(folder, f"{name or 'trace'}.kpt")
        _convert(path, target, quiet)
        yield target


@contextlib.contextmanager
def all_as_kpt(paths: Sequence[str], quiet: bool) -> Iterator[list[str]]:
    """Yields the paths of as_kpt() for several files, which exist until the end of the block."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(as_kpt(path, quiet)) for path in paths]
