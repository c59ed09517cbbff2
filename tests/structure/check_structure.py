#!/usr/bin/env python3
"""Checks the rules of the source tree that no compiler checks: which files include or import each other, the
length of files, the number of files in a folder, where platform and Python version are tested, that every function
of the contract documents its five points, that no file has a path of one machine, that every test_*.py and
*_test.cc is run, that every link of the documentation leads somewhere, and that the
messages which it quotes exist.

usage: check_structure.py ROOT            one line per violation; exit 1 if there is any
       check_structure.py --self-test     every rule catches a small tree that breaks it

Frozen peers (tests/abi/v1) are exempt, since they must stay as they were released. So are the inputs of fuzzers, which
are not text, even if they look like it.
"""

import argparse
import pathlib
import re
import subprocess
import sys

from include_rules import check_circles, check_includes
from link_rules import check_links
from message_rules import check_messages
from python_rules import check_folders, check_imports

MAX_LINES = 400

# The only files that may test these macros in the preprocessor.
PYTHON_VERSION_FILES = {"python_tracer/interpreter/cpython.h"}
PLATFORM_FILES = {"core/base/tick_counter.h", "core/base/platform.h"}
PYTHON_VERSION = re.compile(r"\bPY_(VERSION_HEX|MAJOR_VERSION|MINOR_VERSION|MICRO_VERSION)\b")
PLATFORM = re.compile(r"\b(__x86_64__|__amd64__|__i386__|__aarch64__|__arm__|__linux__|__APPLE__"
                      r"|__FreeBSD__|_WIN32)\b")

FIVE_POINTS = ("thread", "GIL", "ownership", "errors", "since")
# A type as which function pointers are stored; it is never called through.
NOT_CALLED = {"kpt_any_fn"}

# Assembled from parts, so that this file does not contain what it searches for. It does not match inside a longer
# path: a URL or $X/opt/ is not a path of a machine.
MACHINE_PATH = re.compile(r"(?<![\w.$}~-])/(?:%s)/" % "|".join(("work", "root", "opt")))

C_SOURCE = (".c", ".h", ".cc", ".cpp", ".hpp")
OTHER_SOURCE = (".py", ".pyi", ".sh", ".cmake", ".js")
FROZEN = "tests/abi/v1/"
INPUTS = "tests/native/fuzz/corpus/"


def project_files(root):
    """Returns names relative to root: the files that git would have in the next commit, or all files if there is
    no git, as in an unpacked archive."""
    try:
        reply = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        names = reply.stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = [path.relative_to(root).as_posix() for path in sorted(root.rglob("*"))]
        names = [name for name in names if not name.startswith(("build/", ".git/"))]
    return [name for name in names if name and (root / name).is_file()]


def read_text(path):
    """Returns the file as text, or None if it is binary."""
    data = path.read_bytes()
    return None if b"\0" in data else data.decode("utf-8", "replace")


def blank_comments(text):
    """Returns the text with comments and the contents of strings replaced by spaces. Offsets and lines stay."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


# --- (b) length ---------------------------------------------------------------------------------

def check_length(texts):
    for name, text in texts.items():
        is_source = (name.endswith(C_SOURCE + OTHER_SOURCE) or name.endswith("CMakeLists.txt")
                     or text.startswith("#!"))
        lines = text.count("\n")
        if is_source and not name.startswith(FROZEN) and lines > MAX_LINES:
            yield name, lines, f"has {lines} lines; split it: a file is one noun, {MAX_LINES} at most"


# --- (c) platform and Python version --------------------------------------------------------------

def check_questions(sources):
    for name, text in sources.items():
        code = blank_comments(text)
        for match in re.finditer(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(?:\\\n|[^\n])*", code,
                                 re.M):
            line = line_of(code, match.start())
            if PLATFORM.search(match.group()) and name not in PLATFORM_FILES:
                yield name, line, ("asks for the platform; that belongs in "
                                   + " or ".join(sorted(PLATFORM_FILES)))
        for match in PYTHON_VERSION.finditer(code):
            if name not in PYTHON_VERSION_FILES:
                yield name, line_of(code, match.start()), (
                    "asks for the Python version; that belongs in "
                    + " or ".join(sorted(PYTHON_VERSION_FILES)))


# One build of these files works with all Pythons. With the headers of 3.12, Py_RETURN_NONE takes no reference,
# also for the limited API, and before 3.12 that frees None.
def check_none(sources):
    for name, text in sources.items():
        if not name.startswith(("hosts/standalone/", "hosts/torch/exporter/")):
            continue
        code = blank_comments(text)
        for match in re.finditer(r"\bPy_RETURN_(NONE|TRUE|FALSE)\b", code):
            yield name, line_of(code, match.start()), (
                f"{match.group()} takes no reference when built with new headers: use Py_NewRef")


# OPENS finds functions that may return descriptor 0, 1 or 2 (see file_descriptor.h). Only DESCRIPTOR_FILE may call
# them.
DESCRIPTOR_FILE = "core/base/file_descriptor.c"
OPENS = re.compile(r"(?<![\w.>:])(?:open|openat|creat|fopen|fdopen|mkstemp|mkostemp|pipe2?|dup)\("
                   r"|\bF_DUPFD"
                   r"|(?<!kpti_descriptor_above\()\bmemfd_create\s*\(")


def check_descriptors(sources):
    others = ("tests/", "bench/", "examples/")
    for name, text in sources.items():
        is_cxx = name.startswith("hosts/torch/") and not name.startswith("hosts/torch/exporter/")
        if name.startswith(others) or is_cxx or name == DESCRIPTOR_FILE:
            continue
        code = blank_comments(text)
        for match in OPENS.finditer(code):
            yield name, line_of(code, match.start()), (
                f"{match.group()} may return descriptor 0, 1 or 2: use core/base/file_descriptor.h")


# --- (d) the five points --------------------------------------------------------------------------

def declarations(code):
    """Yields (offset, text) of each declaration of a header without comments, also inside structs. Bodies of
    functions are left out."""
    # Directives (with their continued lines) and the opening of extern "C" are not declarations.
    code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: re.sub(r"[^\n]", " ", m.group()), code,
                  flags=re.M)
    code = re.sub(r"\bextern\s*\{", lambda m: re.sub(r"[^\n]", " ", m.group()[:-1]) + ";", code)
    start, position = 0, 0
    while position < len(code):
        if code[position] in ";{}":
            body = code[start:position]
            stripped = body.strip()
            if stripped:
                yield start + len(body) - len(body.lstrip()), stripped
            if code[position] == "{" and stripped.endswith(")"):
                depth = 1
                while depth and position + 1 < len(code):
                    position += 1
                    depth += {"{": 1, "}": -1}.get(code[position], 0)
            start = position + 1
        position += 1


def declared_function(declaration):
    """Returns the name of the declared function or function pointer, or None."""
    declaration = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", declaration, flags=re.S).strip()
    if declaration.startswith(("static ", "_Static_assert", "static_assert")):
        return None
    head, parenthesis, tail = declaration.partition("(")
    if not parenthesis or "=" in head:
        return None
    pointer = re.match(r"\s*\*\s*(?:const\s+)?(\w+)\s*\)\s*\(", tail)
    if pointer:
        return pointer.group(1)
    plain = re.search(r"[\w*\s]\s*\b(\w+)\s*$", head)
    return plain.group(1) if plain and re.search(r"\w[\s*]+\w+\s*$", head) else None


def check_five_points(sources):
    for name, text in sources.items():
        if not re.fullmatch(r"abi/[^/]+\.h", name):
            continue
        for offset, declaration in declarations(blank_comments(text)):
            function = declared_function(declaration)
            if function is None or function in NOT_CALLED:
                continue
            # The comment must end on the line above.
            before = text[:offset].rstrip(" \t")
            above = ""
            if before.endswith("*/\n"):
                above = before[before.rindex("/*"):]
            missing = [point for point in FIVE_POINTS
                       if not re.search(rf"^[ \t]*/?\**[ \t]*{point}:[ \t]*\S", above, re.M)]
            if missing:
                yield (name, line_of(text, offset),
                       f"{function}: the comment above lacks {', '.join(f'{m}:' for m in missing)}")


# --- (e) paths of a machine -------------------------------------------------------------------------

def check_traces(texts):
    for name, text in texts.items():
        for number, line in enumerate(text.split("\n"), 1):
            found = MACHINE_PATH.search(line)
            if found:
                yield name, number, f"names a path of one machine ({found.group()})"
            if line != line.rstrip():
                yield name, number, "ends in white space"


# --- (f) tests that run -------------------------------------------------------------------------------

# Files that run tests which no CMakeLists.txt registers.
RUNNERS = (".ci/", "Makefile", "scripts/")


def registers(cmake, name):
    """Returns whether a CMakeLists.txt registers the test NAME, a path from its folder: by name, or by file(GLOB) of
    all tests in the folder of NAME."""
    cmake = re.sub(r"#[^\n]*", "", cmake)
    folder = name[:name.rindex("/") + 1] if "/" in name else ""
    globs = " ".join(re.findall(r"\bfile\(\s*GLOB([^)]*)\)", cmake)).split()
    return f"{folder}test_*.py" in globs or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", cmake) is not None


def check_registered(texts):
    """Checks that each test_*.py is registered in its folder or in one above, or is run by a script."""
    runners = [text for name, text in texts.items() if name.startswith(RUNNERS)]
    for name in texts:
        if not re.fullmatch(r"tests/.*/test_\w+\.py", name) or any(name in text for text in runners):
            continue
        folders = [parent.as_posix() for parent in pathlib.PurePosixPath(name).parents if parent.name]
        if not any(registers(texts.get(f"{folder}/CMakeLists.txt", ""), name[len(folder) + 1:]) for folder in folders):
            yield name, 1, "is in no list of a CMakeLists.txt, so nobody runs it"


def check_compiled(texts):
    """Checks that each *_test.cc is a source of a program of its folder."""
    for name in texts:
        match = re.fullmatch(r"(tests/.*)/(\w+_test\.cc)", name)
        if not match:
            continue
        cmake = re.sub(r"#[^\n]*", "", texts.get(f"{match[1]}/CMakeLists.txt", ""))
        if not re.search(rf"(?<![\w/.]){re.escape(match[2])}(?![\w/.])", cmake):
            yield name, 1, f"is in no list of {match[1]}/CMakeLists.txt, so nobody compiles it"


def violations(root):
    """Returns the violations of a tree, as lines to print, and the number of its text files."""
    texts, names = {}, project_files(root)
    for name in names:
        text = None if name.startswith(INPUTS) else read_text(root / name)
        if text is not None:
            texts[name] = text
    sources = {name: text for name, text in texts.items()
               if name.endswith(C_SOURCE) and not name.startswith(FROZEN)}
    found = [*check_includes(sources), *check_circles(sources), *check_length(texts), *check_questions(sources),
             *check_none(sources), *check_descriptors(sources), *check_five_points(sources),
             *check_traces(texts), *check_registered(texts), *check_compiled(texts), *check_imports(texts),
             *check_folders(names, INPUTS), *check_links(names, texts), *check_messages(texts)]
    return [f"{name}:{line}: {message}" for name, line, message in found], len(texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("root", nargs="?", type=pathlib.Path, help="the checkout")
    parser.add_argument("--self-test", action="store_true", help="check the checker")
    arguments = parser.parse_args()
    if arguments.self_test:
        import structure_cases  # beside this file, and needed only here
        sys.exit(structure_cases.run(violations))
    if arguments.root is None:
        parser.error("give the checkout's root")
    lines, count = violations(arguments.root.resolve())
    for line in lines:
        print(line)
    print(f"structure: {count} files, {len(lines)} violations")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
