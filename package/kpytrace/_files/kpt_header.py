"""Reads the header, the info and the notes of a .kpt file and skips its calls (writers/kpt/kpt_format.h). This is
fast for a file of any length, and yields the description of its process and its marks."""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_HEAD = struct.Struct("=8sIIQq3QQ")
_RECORD = struct.Struct("=IIQQ")
_NOTE = struct.Struct("=IIIIIIQqQd")
_ALLOCATIONS = struct.Struct("=II8x")
_GUARD, _ORDER, _VERSION = 0x7274706b, 0x01020304, 1
_INFO, _NOTES, _END, _MEMORY = 2, 3, 4, 6
_EVENTS = 3  # of a record of memory: what it is
_MARK, _BEGIN, _SPAN_END = 1, 2, 3


def _records(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Yields the kind and the size of each record. The caller may read the content, or skip it."""
    size = os.fstat(file.fileno()).st_size
    at = _HEAD.size
    while at + _RECORD.size <= size:
        file.seek(at)
        guard, kind, length, _ = _RECORD.unpack(file.read(_RECORD.size))
        end = at + _RECORD.size + length + (-length & 7)
        if guard != _GUARD or end > size:
            return
        yield kind, length
        at = end


class Note:
    """A mark, or the begin or the end of a span."""

    __slots__ = ("number", "what", "partner", "name", "ns")

    def __init__(self, number: int, what: int, partner: int, name: str, ns: int) -> None:
        self.number, self.what, self.partner, self.name, self.ns = number, what, partner, name, ns


class File:
    """The description of a file.

    ended          whether the file has its last record, which a program writes when it stops the trace
    has_calls      whether it is a trace of calls
    has_memory     whether it has a recording of memory
    memory_events  the number of its allocations and frees
    memory_bytes   the size of its records
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "rb") as file:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size or head[:8] != b"kpytrace":
                raise ValueError(f"{path} is not a .kpt file")
            _, version, order, self.pid, self.base_ns, *_ = _HEAD.unpack(head)
            if order != _ORDER or version != _VERSION:
                raise ValueError(f"{path} is a .kpt file of another version, or of another byte order")
            text = b""
            self.ended = False
            self.memory_events = self.memory_bytes = 0
            for kind, size in _records(file):
                if kind == _INFO:
                    text = file.read(size)
                elif kind == _MEMORY and size >= _ALLOCATIONS.size:
                    what, count = _ALLOCATIONS.unpack(file.read(_ALLOCATIONS.size))
                    self.memory_events += count if what == _EVENTS else 0
                    self.memory_bytes += size
                self.ended = kind == _END
        lines = text.decode("utf-8", "replace").split("\n")  # a value may have other separators of splitlines()
        self.info = dict(line.split("=", 1) for line in lines if "=" in line)
        self.has_calls = self.info.get("recording") != "memory"
        self.has_memory = self.memory_bytes > 0 or not self.has_calls

    def notes(self) -> Iterator[Note]:
        with open(self.path, "rb") as file:
            for kind, size in _records(file):
                if kind != _NOTES or size < _NOTE.size:
                    continue
                number, what, partner, name_size, _, _, _, ns, _, _ = _NOTE.unpack(file.read(_NOTE.size))
                yield Note(number, what, partner, file.read(name_size).decode("utf-8", "replace"), ns)

    def times(self, name: str) -> list[int]:
        """Returns the times of the marks, and of the beginnings of the spans, of this name."""
        return [note.ns for note in self.notes() if note.name == name and note.what in (_MARK, _BEGIN)]

    def spans(self, name: str) -> list[tuple[int, int]]:
        """Returns the begin and the end of each span whose name is or matches `name`, in order of time. A span
        ends at the latest where the next begins."""
        from fnmatch import fnmatchcase

        begins: dict[int, list[int]] = {}
        for note in self.notes():
            if note.what == _BEGIN and (note.name == name or fnmatchcase(note.name, name)):
                begins[note.number] = [note.ns, 2**63 - 1]
            elif note.what == _SPAN_END and note.partner in begins:
                begins[note.partner][1] = note.ns
        found = sorted((begin, end) for begin, end in begins.values())
        later = [begin for begin, _ in found[1:]] + [2**63 - 1]
        return [(begin, min(end, most)) for (begin, end), most in zip(found, later)]
