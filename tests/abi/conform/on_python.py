"""Runs kpt_conform with the libpython of a Python, so that the Python tracer is what is checked.

usage: on_python.py TAG KPT_CONFORM PLUGIN     TAG as scripts/pythons/list prints it: 3.13, 3.13t
Exits with 77 (ctest: skipped) where that Python has no shared libpython.
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
ASK = """import os, sysconfig as s
names = s.get_config_var('INSTSONAME'), s.get_config_var('LDLIBRARY')
folders = s.get_config_var('LIBDIR'), os.path.join(s.get_config_var('LIBDIR'), s.get_config_var('MULTIARCH') or '')
paths = [os.path.join(f, n) for f in folders for n in names if n and '.so' in n]
print(next((p for p in paths if os.path.exists(p)), ''))"""


def main():
    tag, conform, plugin = sys.argv[1:]
    listed = subprocess.check_output([ROOT / "scripts/pythons/list"], text=True).splitlines()
    python = dict(line.split(" ", 1) for line in listed).get(tag)
    if not python:
        print(f"skipped: there is no Python {tag} any more")
        return 77
    libpython = subprocess.check_output([python, "-c", ASK], text=True).strip()
    if not libpython:
        print(f"skipped: {python} has no shared libpython")
        return 77
    command = [conform, "--require-all", "--quiet", "--python", libpython, plugin]
    tree = pathlib.Path(python).parents[1] / "tree"
    if tree.is_dir():  # this Python lives in a tree of its own, with a libc of its own
        command = [ROOT / "scripts/pythons/enter", tree, *command]
    return subprocess.run(command).returncode


sys.exit(main())
