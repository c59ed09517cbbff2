"""Where torch's own tracer is: torch registers its factory once, by a symbol that its library keeps
for debuggers only. It is looked up there, and never guessed."""

from __future__ import annotations

import mmap
import pathlib
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

SYMBOL = b"_ZN5torch8profiler4impl12_GLOBAL__N_19getTracerEPNS1_11RecordQueueE"
_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
_SYMTAB = 2


def _sections(image: mmap.mmap) -> Iterator[tuple[int, ...]]:
    table, = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    for index in range(count):
        yield _SECTION.unpack_from(image, table + index * size)


def _lookup(image: mmap.mmap, symbol: bytes) -> int:
    if image[:6] != b"\x7fELF\x02\x01":
        return 0
    sections = list(_sections(image))
    for section in sections:
        if section[1] != _SYMTAB:
            continue
        strings = sections[section[6]]
        name = image.find(b"\0" + symbol + b"\0", strings[4], strings[4] + strings[5])
        if name < 0:
            continue
        wanted = name + 1 - strings[4]
        for entry in _SYMBOL.iter_unpack(image[section[4]:section[4] + section[5]]):
            if entry[0] == wanted and entry[3]:
                return entry[4]
    return 0


def factory_offset(torch: ModuleType) -> int:
    """The address of torch's factory within libtorch_python.so; 0: the library is stripped."""
    library = pathlib.Path(torch.__file__ or "").parent / "lib/libtorch_python.so"
    try:
        with open(library, "rb") as file, \
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
            return _lookup(image, SYMBOL)
    except (OSError, ValueError, struct.error):
        return 0
