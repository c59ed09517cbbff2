#!/usr/bin/env python3
"""Checks that each header of a folder compiles alone, as strict C11 and as strict C++17, with every
compiler that is given.

usage: check_headers.py ABI_DIR --c COMPILER... --cxx COMPILER...
       check_headers.py --self-test --c COMPILER... --cxx COMPILER...
"""

import argparse
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

STRICT = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only"]
LANGUAGES = {"c": ["-std=c11", "-x", "c"], "cxx": ["-std=c++17", "-x", "c++"]}


def complaints(folder, compilers):
    """(what was tried, what the compiler said) for each header that does not compile."""
    with tempfile.TemporaryDirectory() as work:
        source = pathlib.Path(work, "alone")
        for header in sorted(folder.glob("*.h")):
            # Twice, for its guard; and something of our own, as C wants no empty file.
            source.write_text(f'#include "{header.name}"\n#include "{header.name}"\n'
                              "typedef int not_empty;\n")
            for language, options in LANGUAGES.items():
                for compiler in compilers[language]:
                    reply = subprocess.run(
                        [*shlex.split(compiler), *STRICT, *options, "-I", folder, source],
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                    if reply.returncode:
                        yield f"{header.name} with {compiler} as {language}", reply.stdout


BAD_HEADERS = {
    "it includes nothing": "typedef uint32_t number;\n",
    "it is no C++": "typedef struct words { int class; } words;\n",
    "it is no ISO C": "typedef struct none { int array[0]; } none;\n",
    "it has no guard": "typedef struct once { int number; } once;\n",
    "it warns": "static inline char narrow(int wide) { return wide; }\n",
}


def self_test(compilers):
    failures = 0
    for name, text in BAD_HEADERS.items():
        with tempfile.TemporaryDirectory() as work:
            guard = "" if "guard" in name else "#pragma once\n"
            pathlib.Path(work, "bad.h").write_text(guard + text)
            if not list(complaints(pathlib.Path(work), compilers)):
                failures += 1
                print(f"FAILED: a header passed although {name}")
    print(f"headers: self-test: {len(BAD_HEADERS) - failures} of {len(BAD_HEADERS)} cases")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("abi", nargs="?", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--c", nargs="+", required=True)
    parser.add_argument("--cxx", nargs="+", required=True)
    arguments = parser.parse_args()
    # A compiler that is not on this machine is left out; the build's own is always there.
    compilers = {language: [name for name in getattr(arguments, language)
                            if shutil.which(shlex.split(name)[0])] for language in LANGUAGES}
    if arguments.self_test:
        return self_test(compilers)
    found = list(complaints(arguments.abi, compilers))
    for what, said in found:
        print(f"FAILED: {what}:\n{said}")
    count = len(list(arguments.abi.glob("*.h")))
    print(f"headers: {count} headers, {', '.join(sum(compilers.values(), []))}: {len(found)} failures")
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main())
