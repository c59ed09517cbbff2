#!/usr/bin/env python3
"""Checks what a library of ours shows and what it asks for: it exports its entry and nothing else, and needs
no symbol of Python's, nor of CUDA's.

usage: check_symbols.py LIBRARY [--nm NM] [--allow SYMBOL...]
       check_symbols.py --self-test [--nm NM] [--cc CC]
"""

import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ALLOWED = {"kpt_plugin_entry_v1"}
VERSION_NODE = re.compile(r"KPYTRACE_(GPU_)?\d+")


def symbols(library, nm, which):
    """[(type, name)] of the dynamic symbol table, without the version behind @."""
    out = subprocess.run([*shlex.split(nm), "-D", "-P", which, library], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    return [(line.split()[1], line.split()[0].split("@")[0]) for line in out.splitlines()]


def complaints(library, nm, allowed=frozenset(ALLOWED)):
    exported = {name for kind, name in symbols(library, nm, "--defined-only")
                if not (kind == "A" and VERSION_NODE.fullmatch(name))}
    for name in sorted(exported - allowed):
        yield f"it exports {name}"
    for name in sorted(allowed - exported):
        yield f"it does not export {name}"
    for _, name in symbols(library, nm, "--undefined-only"):
        if re.match(r"_?Py", name):
            yield f"it needs {name}, so it can't be loaded where there is no Python"
        if re.match(r"cu(pti|da)?[A-Z]", name):
            yield f"it needs {name}, so it can't be loaded where there is no CUDA"


ENTRY = '__attribute__((visibility("default"))) int kpt_plugin_entry_v1(void) { return 0; }\n'
CASES = [
    ("a good one", ENTRY, None),
    ("one more function", ENTRY + "int helper(void) { return 1; }\n", "exports helper"),
    ("one more variable", ENTRY + "int shown = 1;\n", "exports shown"),
    ("no entry", "static int nothing = 1; int *get(void);\n", "does not export"),
    ("Python by name", ENTRY + "int Py_IsInitialized(void); __attribute__((visibility(\"hidden\"))) "
     "int ask(void) { return Py_IsInitialized(); }\n", "needs Py_IsInitialized"),
    ("Python's private parts", ENTRY + "extern char _Py_NoneStruct; __attribute__((visibility("
     "\"hidden\"))) char *ask(void) { return &_Py_NoneStruct; }\n", "needs _Py_NoneStruct"),
    ("CUDA by name", ENTRY + "int cuInit(int); __attribute__((visibility(\"hidden\"))) "
     "int ask(void) { return cuInit(0); }\n", "needs cuInit"),
]


def self_test(nm, cc):
    failures = 0
    for name, source, expected in CASES:
        with tempfile.TemporaryDirectory() as work:
            file, library = pathlib.Path(work, "case.c"), pathlib.Path(work, "case.so")
            file.write_text(source)
            subprocess.run([*shlex.split(cc), "-shared", "-fPIC", file, "-o", library], check=True,
                           stderr=subprocess.DEVNULL)
            found = list(complaints(library, nm))
        if (expected is None) != (not found) or (expected and expected not in "\n".join(found)):
            failures += 1
            print(f"FAILED: {name}: expected {expected or 'nothing'}, found {found}")
    print(f"symbols: self-test: {len(CASES) - failures} of {len(CASES)} cases")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("library", nargs="?", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--allow", nargs="+", default=ALLOWED, help="what it exports")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test(arguments.nm, arguments.cc)
    found = list(complaints(arguments.library, arguments.nm, set(arguments.allow)))
    for line in found:
        print(f"{arguments.library.name}: {line}")
    print(f"symbols: {arguments.library.name}: {len(found)} complaints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
