"""Changes to a copy of the headers, as somebody might make them: for the tests of what notices."""

import re
import shutil

from abi_headers import Contract


def copy_headers(source, target):
    target.mkdir(parents=True)
    for header in source.glob("*.h"):
        shutil.copy(header, target)
    return target


def _edit(folder, name, change):
    """Rewrites the struct's header: CHANGE gets its text and the struct."""
    struct = Contract(folder).structs[name]
    path = folder / struct.header
    path.write_text(change(path.read_text(), struct))


def append(folder, name, declaration="uint64_t appended;"):
    """A field behind the last one."""
    _edit(folder, name, lambda text, struct: text[:struct.fields[-1].end] + "\n    " + declaration
          + text[struct.fields[-1].end:])


def _v1_fields(text, struct, name):
    """The fields up to the last one of V1: a later version may have appended some."""
    last = re.search(rf"KPT_FIELD_END\({name}, (\w+)\)", text).group(1)
    names = [field.name for field in struct.fields]
    return struct.fields[:names.index(last) + 1]


def insert(folder, name, declaration="uint64_t inserted;"):
    """A field in front of the last one of V1."""
    def change(text, struct):
        at = _v1_fields(text, struct, name)[-1].start
        return text[:at] + declaration + "\n    " + text[at:]
    _edit(folder, name, change)


def swap(folder, name, first, second):
    """Two fields change places."""
    def change(text, struct):
        places = {field.name: field for field in struct.fields}
        a, b = sorted((places[first], places[second]), key=lambda field: field.start)
        return (text[:a.start] + text[b.start:b.end] + text[a.end:b.start] + text[a.start:a.end]
                + text[b.end:])
    _edit(folder, name, change)


def shorten(folder, name):
    """The last field of V1 goes, with those behind it, and the V1 size with it."""
    def change(text, struct):
        *_, before, last = _v1_fields(text, struct, name)
        text = text[:last.start] + text[struct.fields[-1].end:]
        return text.replace(f"KPT_FIELD_END({name}, {last.name})",
                            f"KPT_FIELD_END({name}, {before.name})")
    _edit(folder, name, change)


def replace(folder, header, pattern, text):
    """The first match of the pattern becomes that text."""
    path = folder / header
    changed, count = re.subn(pattern, text, path.read_text(), count=1)
    assert count == 1, f"{header} has no {pattern}"
    path.write_text(changed)
