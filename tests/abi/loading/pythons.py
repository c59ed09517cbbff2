#!/usr/bin/env python3
"""Finds the Pythons that the load tests can use: a line each, with tabs between

    3.12   executable   its shared libpython, or -   its home   in-executable or shared

usage: pythons.py SCRIPTS_DIR [--output FILE]

Asks scripts/pythons/list, and takes the system's own python3 as well: Debian's has Python inside the
executable, which others rarely have.
"""

import argparse
import os
import pathlib
import subprocess
import sys

ASK = """
import os, sys, sysconfig
get = sysconfig.get_config_var
name = get("INSTSONAME") or ""
shared = os.path.join(get("LIBDIR") or "", name) if ".so" in name else "-"
inside = "in-executable"
for line in open("/proc/self/maps"):
    if "libpython3." in line:
        inside = "shared"
tag = "%d.%d%s" % (*sys.version_info[:2], "t" if get("Py_GIL_DISABLED") else "")
print(tag, shared, sys.base_prefix, inside, sep="\\t")
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("scripts", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    listed = subprocess.run([arguments.scripts / "pythons" / "list"], stdout=subprocess.PIPE,
                            text=True, check=True).stdout
    programs = [line.split(" ", 1)[1] for line in listed.splitlines()]
    if os.access("/usr/bin/python3", os.X_OK):
        programs.append("/usr/bin/python3")
    rows, seen = [], set()
    for program in programs:
        if os.path.realpath(program) in seen:
            continue
        seen.add(os.path.realpath(program))
        answer = subprocess.run([program, "-I", "-c", ASK], stdout=subprocess.PIPE, text=True)
        if answer.returncode:
            print(f"pythons: {program} does not start; it is left out", file=sys.stderr)
            continue
        tag, shared, home, inside = answer.stdout.rstrip("\n").split("\t")
        # One in a tree of its own (scripts/pythons/newer) names files that are not here.
        if not os.path.exists(shared):
            shared = "-"
        rows.append("\t".join((tag, program, shared, home, inside)))
    text = "".join(f"{row}\n" for row in rows)
    if arguments.output:
        arguments.output.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
