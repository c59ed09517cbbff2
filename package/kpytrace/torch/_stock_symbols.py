"""Finds torch's own tracers. torch registers their factories once, and its library has their symbols only in the
symbol table for debuggers. They are read from that table, and never guessed."""

from __future__ import annotations

import mmap
import pathlib
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

TRACER = b"_ZN5torch8profiler4impl12_GLOBAL__N_19getTracerEPNS1_11RecordQueueE"
MEMORY_TRACER = b"_ZN5torch8profiler4impl12_GLOBAL__N_115getMemoryTracerEv"
LANDMARK = b"THPVariableClass"  # an exported symbol, whose address in this process is known
_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
_SYMTAB = 2


def _sections(image: mmap.mmap) -> Iterator[tuple[int, ...]]:
    table, = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    for index in range(count):
        yield _SECTION.unpack_from(image, table + index * size)


def _lookup(image: mmap.mmap, names: tuple[bytes, ...]) -> dict[bytes, int]:
    """Returns the addresses of those NAMES that are in the symbol table."""
    found: dict[bytes, int] = {}
    if image[:6] != b"\x7fELF\x02\x01":
        return found
    sections = list(_sections(image))
    for section in sections:
        if section[1] != _SYMTAB:
            continue
        strings = sections[section[6]]
        wanted = {}
        for name in names:
            at = image.find(b"\0" + name + b"\0", strings[4], strings[4] + strings[5])
            if at >= 0:
                wanted[at + 1 - strings[4]] = name
        for entry in _SYMBOL.iter_unpack(image[section[4]:section[4] + section[5]]):
            if entry[0] in wanted and entry[3]:
                found[wanted[entry[0]]] = entry[4]
    return found


def distance(torch: ModuleType, symbol: bytes) -> int:
    """Returns the distance of a factory of torch from LANDMARK in libtorch_python.so, or 0 if the library is
    stripped."""
    library = pathlib.Path(torch.__file__ or "").parent / "lib/libtorch_python.so"
    try:
        with open(library, "rb") as file, \
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
            found = _lookup(image, (symbol, LANDMARK))
    except (OSError, ValueError, struct.error):
        return 0
    return found[symbol] - found[LANDMARK] if len(found) == 2 else 0
