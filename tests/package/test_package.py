#!/usr/bin/env python3
"""Installs the checkout with pip, as a user would, and uses the installed package.

usage: test_package.py CHECKOUT [--python PYTHON]

Prints an "ok:" line per check and exits 1 at the first that fails. Needs the same as a user: a
compiler, and an index from which pip can fetch the build backend.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Runs in the installed interpreter.
USE = """
import ctypes, pathlib, sys
import kpytrace
assert pathlib.Path(kpytrace.__file__).is_relative_to(sys.prefix), kpytrace.__file__
assert pathlib.Path(kpytrace.__file__).with_name("py.typed").is_file()
print(kpytrace.__version__)
print(kpytrace.plugin_path())
print(kpytrace.include_dir())
library = ctypes.CDLL(str(kpytrace.plugin_path()))
library.kpt_plugin_entry_v1
"""

# The standalone host traces a call with the backend that was built for this Python.
TRACE = """
import json, pathlib, sys, warnings
warnings.simplefilter("error")
import kpytrace
def traced(): pass
with kpytrace.trace("trace.json") as t:
    traced()
trace = json.loads(pathlib.Path("trace.json").read_text(encoding="utf-8"))
assert any(event["name"].endswith(": traced") for event in trace["traceEvents"]), trace
assert trace["kpytrace"]["version"] == kpytrace.__version__, trace["kpytrace"]
assert "t" not in sys.abiflags or not sys._is_gil_enabled(), "the module brought the GIL back"
"""

# An unchanged program, in an environment that installs kpytrace. This torch is a fake: the message shows that
# torch was found, and why it can't be traced.
ZERO_TOUCH = """
import sys
assert ("kpytrace" in sys.modules) == (len(sys.argv) > 1), "the .pth file"
import torch
print(torch.number)
"""

# Without the plugin, the error must name the file and what to do.
LACK = """
import kpytrace
kpytrace.plugin_path().unlink()
try:
    kpytrace.plugin_path()
except FileNotFoundError as error:
    assert "libkpytrace.so" in str(error) and "pip install" in str(error), error
else:
    raise SystemExit("no error for a missing plugin")
"""


class Failed(Exception):
    pass


def ok(text):
    print(f"ok: {text}", flush=True)


def check(condition, text):
    if not condition:
        raise Failed(text)
    ok(text)


def run(command, **options):
    """Returns the output of a command. Raises Failed with the output if the command fails."""
    reply = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, **options)
    if reply.returncode:
        raise Failed(f"{' '.join(map(str, command))}\n{reply.stdout}")
    return reply.stdout


def copy_sources(checkout, target):
    """Copies the files that git would have in the next commit. pip must not see build folders, nor write any
    here."""
    names = run(["git", "-C", checkout, "ls-files", "-z", "--cached", "--others",
                 "--exclude-standard"]).split("\0")
    for name in filter(None, names):
        if (checkout / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout / name, target / name)


def check_headers(include, scratch):
    """Checks that each installed header compiles alone, as in a user's program."""
    headers = sorted(include.glob("*.h"))
    check(any(header.name == "kpt.h" for header in headers), "kpt.h is installed")
    compiler = os.environ.get("CC", "cc")
    for header in headers:
        source = scratch / "one_header.c"
        source.write_text(f"#include <{header.name}>\nint nothing_else;\n")
        run([compiler, "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-I", include,
             "-c", source, "-o", scratch / "one_header.o"])
    ok(f"{len(headers)} headers compile alone with {compiler} -std=c11")


def check_zero_touch(python, scratch, clean):
    (scratch / "torch.py").write_text("number = 7\n")
    check(run([python, "-c", ZERO_TOUCH], cwd=scratch, env=clean) == "7\n",
          "the .pth file does nothing where no variable asks for it")
    said = run([python, "-c", ZERO_TOUCH, "asked"], cwd=scratch, env={**clean, "KPYTRACE_TORCH": "1"})
    check("torch keeps its own tracer" in said and said.endswith("7\n"),
          "KPYTRACE_TORCH=1 waits for torch, and the program runs whatever comes of it")
    (scratch / "torch.py").unlink()


# Prints the program's view of itself, which must be the same with and without kpytrace.
PROGRAM = """
import os, sys
print(sys.argv[1:], sys.path, sorted(k for k in os.environ if "KPYTRACE" in k))
def called(): pass
called()
"""


def check_command(venv, scratch, clean):
    (scratch / "program.py").write_text(PROGRAM)
    alone = run([venv / "bin" / "python", "program.py", "a", "b"], cwd=scratch, env=clean)
    output = scratch / "command.kpt"
    for flags in ((), ("-I",)):
        command = [venv / "bin" / "python", *flags, "-m", "kpytrace"] if flags else \
            [venv / "bin" / "kpytrace"]
        said = run([*command, "run", "-q", "-o", output, "program.py", "a", "b"], cwd=scratch, env=clean)
        expected = run([venv / "bin" / "python", *flags, "program.py", "a", "b"], cwd=scratch, env=clean)
        check(said == expected, f"kpytrace run {' '.join(flags)} is python to the program")
        check(": called" in run([*command, "top", "-n", "0", output], cwd=scratch, env=clean),
              "kpytrace top has its calls")
    run([venv / "bin" / "kpytrace", "report", output, "-o", "report.html"], cwd=scratch, env=clean)
    page = (scratch / "report.html").read_text(encoding="utf-8")
    check(page.startswith("<!doctype html>") and 'data-kind="trace"' in page, "kpytrace report has its page")
    said = run([venv / "bin" / "python", "program.py", "a", "b"], cwd=scratch,
               env={**clean, "KPYTRACE": f"{scratch / 'zero.json'} c_calls=0"})
    check(said.startswith(alone) and "called" in (scratch / "zero.json").read_text(),
          "KPYTRACE traces a program that knows nothing of it")


def install_and_use(checkout, python, scratch):
    sources = scratch / "sources"
    copy_sources(checkout, sources)
    stated = re.search(r"project\s*\(\s*kpytrace\s+VERSION\s+([0-9.]+)",
                       (checkout / "CMakeLists.txt").read_text())
    check(stated, f"CMakeLists.txt states version {stated.group(1) if stated else '?'}")

    run([python, "-m", "venv", scratch / "venv"])
    venv_python = scratch / "venv" / "bin" / "python"
    run([venv_python, "-m", "pip", "install", "--disable-pip-version-check", sources])
    ok(f"pip install with {run([venv_python, '--version']).strip()}")

    # A PYTHONPATH with a staged package would hide the installed one.
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    version, plugin, include = run([venv_python, "-c", USE], cwd=scratch, env=clean).split("\n")[:3]
    check(version == stated.group(1), f"installed version is {version}")
    check(pathlib.Path(plugin).is_file(), "the plugin is there, loads, and has kpt_plugin_entry_v1")
    check_headers(pathlib.Path(include), scratch)
    run([venv_python, "-c", TRACE], cwd=scratch, env=clean)
    ok("kpytrace.trace writes a trace with the program's calls")
    check_zero_touch(venv_python, scratch, clean)
    check_command(scratch / "venv", scratch, clean)
    run([venv_python, "-c", LACK], cwd=scratch, env=clean)
    ok("a missing plugin is reported with what to do")
    run([venv_python, "-m", "pip", "uninstall", "--yes", "kpytrace"])
    check(not pathlib.Path(include).exists() and not list((scratch / "venv").rglob("kpytrace*.pth")),
          "uninstalling leaves nothing behind")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable, help="installs into a venv of this one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kpytrace-package-") as scratch:
        try:
            install_and_use(arguments.checkout.resolve(), arguments.python,
                            pathlib.Path(scratch).resolve())
        except Failed as failure:
            sys.exit(f"FAILED: {failure}")


if __name__ == "__main__":
    main()
