#!/usr/bin/env python3
"""The contract's layout in numbers: every struct's size and V1 size, every field's place, every
enumerator's value; the same on every machine, so it can be kept in a file and compared.

usage: layout.py print ABI_DIR [--cc CC] [--emulator COMMAND]
       layout.py check ABI_DIR GOLDEN [--frozen] [--cc CC] [--emulator COMMAND]
       layout.py compare OLD NEW           files of print: whether NEW only adds to OLD
       layout.py types ABI_DIR             C source of a library with a function for each struct
       layout.py view ABI_DIR GOLDEN OUT   a copy of the headers without what GOLDEN does not have
                                           at the end of its structs

check: GOLDEN is ABI_DIR's layout; with --frozen, ABI_DIR's only adds to it. What adding is: a new
struct, enumerator or constant, and a new field behind all that a struct had. kpt_str and kpt_value
nest in others by value, and never change at all.
"""

import argparse
import difflib
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from abi_headers import FROZEN_STRUCTS, Contract, Unknown

# May grow with each minor version; its value is not part of the layout.
COUNTED = {"KPT_ABI_MINOR"}


def program(contract):
    """C that prints the layout."""
    lines = ["#include <stdio.h>"] + [f'#include "{header}"' for header in contract.headers]
    lines += ["#define SIZE(expression) ((unsigned long)(expression))", "int main(void)", "{"]
    for name, value in sorted(contract.constants.items()):
        if name not in COUNTED:
            form = "%s" if value.startswith('"') else "%d"
            lines.append(f'    printf("constant {name} {form}\\n", {name});')
    for name in sorted(contract.enumerators):
        lines.append(f'    printf("enumerator {name} %d\\n", (int){name});')
    for name in sorted(contract.scalars):
        lines.append(f'    printf("scalar {name} size %lu %s\\n", SIZE(sizeof({name})), '
                     f'({name})-1 < 0 ? "signed" : "unsigned");')
    for name, struct in sorted(contract.structs.items()):
        lines.append(f'    printf("struct {name} size %lu v1 %lu\\n", SIZE(sizeof({name})), '
                     f"SIZE({struct.v1_macro or f'sizeof({name})'}));")
        for field in struct.fields:
            lines.append(f'    printf("field {name}.{field.name} offset %lu size %lu\\n", '
                         f"SIZE(offsetof({name}, {field.name})), "
                         f"SIZE(sizeof((({name} *)0)->{field.name})));")
    return "\n".join(lines + ["    return 0;", "}", ""])


def measure(folder, cc, emulator):
    """The layout's lines, as the compiler has it."""
    contract = Contract(folder)
    with tempfile.TemporaryDirectory() as work:
        source, binary = pathlib.Path(work, "layout.c"), pathlib.Path(work, "layout")
        source.write_text(program(contract))
        subprocess.run([*shlex.split(cc), "-std=c11", "-I", folder, source, "-o", binary],
                       check=True)
        out = subprocess.run([*shlex.split(emulator), binary], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    lines = out.splitlines()
    check_holes(parse(lines)[0])
    return lines


def parse(lines):
    """({struct: (size, v1, [(field, offset, size)])}, {any other line's name: its value})"""
    structs, others = {}, {}
    for line in lines:
        words = line.split(" ", 2)
        numbers = [int(number) for number in re.findall(r"\b\d+\b", words[2])]
        if words[0] == "struct":
            structs[words[1]] = (numbers[0], numbers[1], [])
        elif words[0] == "field":
            struct, field = words[1].split(".")
            structs[struct][2].append((field, numbers[0], numbers[1]))
        else:
            others[f"{words[0]} {words[1]}"] = words[2]
    return structs, others


def check_holes(structs):
    """Fields follow each other without a gap: so none was overlooked, and none is padding that two
    compilers could place differently."""
    for name, (size, v1, fields) in structs.items():
        end = 0
        for field, offset, length in fields:
            if offset != end:
                raise Unknown(f"{name}: {offset - end} bytes before {field} belong to no field")
            end = offset + length
        if end != size:
            raise Unknown(f"{name}: {size - end} bytes at its end belong to no field")
        if v1 > size:
            raise Unknown(f"{name}: its V1 size is greater than its size")


def breaks(old, new):
    """What of OLD is not in NEW any more, or not where it was."""
    old_structs, old_others = parse(old)
    new_structs, new_others = parse(new)
    for name, value in old_others.items():
        if name not in new_others:
            yield f"{name} is gone"
        elif new_others[name] != value:
            yield f"{name} was {value} and is {new_others[name]}"
    for name, (size, v1, fields) in old_structs.items():
        if name not in new_structs:
            yield f"struct {name} is gone"
            continue
        new_size, new_v1, new_fields = new_structs[name]
        if new_v1 != v1:
            yield f"{name}: its V1 size was {v1} and is {new_v1}"
        if new_size < size:
            yield f"{name}: it shrank from {size} to {new_size}"
        for was, now in zip(fields, new_fields[:len(fields)]):
            if was != now:
                yield "{}: {} at {} of {} bytes became {} at {} of {}".format(name, *was, *now)
        for field in fields[len(new_fields):]:
            yield f"{name}: {field[0]} is gone"
        if name in FROZEN_STRUCTS and new_structs[name] != old_structs[name]:
            yield f"{name}: it is frozen for ever, and changed"


def types_source(contract):
    """A library whose functions lead a reader of debug information to every struct."""
    lines = ['#include "kpt.h"', '#define SEEN __attribute__((visibility("default")))',
             "SEEN kpt_status kpt_plugin_entry_v1(const kpt_host *host, kpt_plugin_info *out);",
             "kpt_status kpt_plugin_entry_v1(const kpt_host *host, kpt_plugin_info *out)",
             "{", "    return host && out ? KPT_OK : KPT_E_INVALID;", "}"]
    for name in sorted(contract.structs):
        lines.append(f"SEEN int see_{name}(const {name} *it); "
                     f"int see_{name}(const {name} *it) {{ return it != NULL; }}")
    return "\n".join(lines) + "\n"


def write_view(folder, golden, out):
    """Leaves out the fields behind the last one that GOLDEN knows of each struct."""
    contract = Contract(folder)
    known, _ = parse(golden)
    out.mkdir(parents=True, exist_ok=True)
    for header in contract.headers:
        text = (folder / header).read_text()
        cuts = []
        for struct in contract.structs.values():
            names = [field[0] for field in known.get(struct.name, (0, 0, []))[2]]
            if struct.header != header or not names or struct.name in FROZEN_STRUCTS:
                continue
            last = max((i for i, field in enumerate(struct.fields) if field.name in names),
                       default=len(struct.fields))
            cuts += [(field.start, field.end) for field in struct.fields[last + 1:]]
        for start, end in sorted(cuts, reverse=True):
            text = text[:start] + text[end:]
        (out / header).write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, paths in (("print", ["abi"]), ("check", ["abi", "golden"]),
                        ("compare", ["old", "new"]), ("types", ["abi"]),
                        ("view", ["abi", "golden", "out"])):
        command = commands.add_parser(name)
        for path in paths:
            command.add_argument(path, type=pathlib.Path)
        if name in ("print", "check"):
            command.add_argument("--cc", default="cc")
            command.add_argument("--emulator", default="")
        if name == "check":
            command.add_argument("--frozen", action="store_true")
    arguments = parser.parse_args()
    try:
        sys.exit(run(arguments))
    except Unknown as error:
        sys.exit(f"layout: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"layout: {shlex.join(map(str, error.cmd))} failed")


def run(arguments):
    if arguments.command == "print":
        print("\n".join(measure(arguments.abi, arguments.cc, arguments.emulator)))
    elif arguments.command == "types":
        sys.stdout.write(types_source(Contract(arguments.abi)))
    elif arguments.command == "view":
        write_view(arguments.abi, arguments.golden.read_text().splitlines(), arguments.out)
    else:
        return compare(arguments)
    return 0


def compare(arguments):
    if arguments.command == "compare":
        old, new = (path.read_text().splitlines() for path in (arguments.old, arguments.new))
        frozen = True
    else:
        old = arguments.golden.read_text().splitlines()
        new = measure(arguments.abi, arguments.cc, arguments.emulator)
        frozen = arguments.frozen
    if frozen:
        found = list(breaks(old, new))
        for line in found:
            print(f"layout: {line}")
        if found:
            print("layout: fields are only ever added, at the end of a struct")
    else:
        found = list(difflib.unified_diff(old, new, "golden", "now", lineterm=""))
        print("\n".join(found), end="\n" if found else "")
        if found:
            print("layout: if this is meant, run: scripts/freeze_v1")
    print(f"layout: {len(new)} lines, {'different' if found else 'as they should be'}")
    return 1 if found else 0


if __name__ == "__main__":
    main()
