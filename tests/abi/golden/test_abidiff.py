#!/usr/bin/env python3
"""Tests scripts/abi_check on edited copies of the headers: a moved, missing or retyped field must be
found, an appended one must not.

usage: test_abidiff.py CHECKOUT BUILD_DIR      (77, which means skipped, where abidiff is not here)
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import header_edits as edit

TRACER = "kpt_tracer.h"

# What is done to the headers, and whether abi_check must find it.
CASES = [
    ("nothing", False, lambda abi: None),
    ("two fields swapped", True,
     lambda abi: edit.swap(abi, "kpt_tracer_args", "max_events", "max_bytes")),
    ("a struct that is shorter", True, lambda abi: edit.shorten(abi, "kpt_stats")),
    ("a field inserted before the last", True, lambda abi: edit.insert(abi, "kpt_stats")),
    ("a field of another type", True,
     lambda abi: edit.replace(abi, TRACER, "uint64_t max_events;", "int64_t max_events;")),
    ("a function with one more argument", True,
     lambda abi: edit.replace(abi, TRACER, r"\(\*stop\)\(kpt_handle self\)",
                              "(*stop)(kpt_handle self, uint32_t how)")),
    ("a field with another name, which no binary sees (layout.py does)", False,
     lambda abi: edit.replace(abi, TRACER, "uint64_t max_events;", "uint64_t most_events;")),
    ("a registry function moved, which the entry does not lead to", True,
     lambda abi: edit.swap(abi, "kpt_registry", "add", "remove")),
    ("a longer kpt_str", True, lambda abi: edit.append(abi, "kpt_str")),
    ("swapped and appended", True,
     lambda abi: (edit.append(abi, "kpt_stats"), edit.swap(abi, "kpt_stats", "events", "threads"))),
    ("a field appended", False, lambda abi: edit.append(abi, "kpt_stats")),
    ("a function appended", False,
     lambda abi: edit.append(abi, "kpt_host", "uint64_t (*extra)(void *ctx, kpt_str name);")),
    ("a struct added", False,
     lambda abi: edit.replace(abi, TRACER, "#define KPT_WATCH_V1_SIZE",
                              "typedef struct kpt_new {\n    uint64_t number;\n} kpt_new;\n"
                              "#define KPT_NEW_V1_SIZE KPT_FIELD_END(kpt_new, number)\n"
                              "#define KPT_WATCH_V1_SIZE")),
    ("an enumerator added", False,
     lambda abi: edit.replace(abi, TRACER, "KPT_STATE_STOPPED = 2",
                              "KPT_STATE_STOPPED = 2, KPT_STATE_LOST = 3")),
]


def main():
    checkout, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    if not shutil.which("abidiff"):
        print("test_abidiff: skipped: abidiff is missing; install it with: scripts/setup abi")
        return 77
    failures = 0
    for name, must_fail, change in CASES:
        with tempfile.TemporaryDirectory() as work:
            abi = edit.copy_headers(checkout / "abi", pathlib.Path(work, "abi"))
            change(abi)
            reply = subprocess.run([checkout / "scripts" / "abi_check", build, abi], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        found = reply.returncode == 1 and "the headers differ from the baseline" in reply.stdout
        if found != must_fail or (not must_fail and reply.returncode):
            failures += 1
            print(f"FAILED: {name}: abi_check {'missed it' if must_fail else 'objects'}:\n"
                  + reply.stdout)
    print(f"test_abidiff: {len(CASES) - failures} of {len(CASES)} cases")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
