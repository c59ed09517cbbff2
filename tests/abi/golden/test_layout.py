#!/usr/bin/env python3
"""Tests layout.py on edited copies of the headers: what it takes for an addition, what for a break,
and what it refuses because it can't read it.

usage: test_layout.py ABI_DIR [--cc CC] [--emulator COMMAND]
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest

import abi_headers
import header_edits as edit
import layout

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("abi", type=pathlib.Path)
OPTIONS.add_argument("--cc", default="cc")
OPTIONS.add_argument("--emulator", default="")

TRACER, BASE = "kpt_tracer.h", "kpt_base.h"
NEW_STRUCT = ("#define KPT_WATCH_V1_SIZE", "typedef struct kpt_new {\n    uint32_t struct_size;\n"
              "    uint32_t flags;\n} kpt_new;\n#define KPT_NEW_V1_SIZE "
              "KPT_FIELD_END(kpt_new, flags)\n#define KPT_WATCH_V1_SIZE")


class Layout(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.abi = edit.copy_headers(options.abi, self.folder / "abi")

    def measure(self):
        return layout.measure(self.abi, options.cc, options.emulator)

    def breaks(self):
        return list(layout.breaks(golden, self.measure()))

    def test_nothing_changed(self):
        self.assertEqual(self.measure(), golden)
        self.assertEqual(self.breaks(), [])

    def test_every_struct_and_enumerator_is_there(self):
        """Counted another way than the reader's own."""
        text = "".join(path.read_text() for path in self.abi.glob("*.h"))
        self.assertEqual(sum(line.startswith("struct ") for line in golden),
                         text.count("typedef struct "))
        code = abi_headers.blank(text, comments=True)
        self.assertEqual(sum(line.startswith("enumerator ") for line in golden),
                         len(set(abi_headers.re.findall(r"\b(KPT_\w+) = [-\d]", code))))

    def test_additions_are_additions(self):
        additions = {
            "a field": lambda: edit.append(self.abi, "kpt_stats"),
            "a function": lambda: edit.append(self.abi, "kpt_tracer_ops",
                                              "kpt_status (*extra)(kpt_handle self);"),
            "a struct": lambda: edit.replace(self.abi, TRACER, *NEW_STRUCT),
            "an enumerator": lambda: edit.replace(self.abi, TRACER, "KPT_STATE_STOPPED = 2",
                                                  "KPT_STATE_STOPPED = 2, KPT_STATE_LOST = 3"),
            "a minor version": lambda: edit.replace(self.abi, BASE, "KPT_ABI_MINOR 2",
                                                    "KPT_ABI_MINOR 3"),
        }
        for name, change in additions.items():
            change()
            with self.subTest(name):
                self.assertEqual(self.breaks(), [])
        self.assertNotEqual(self.measure(), golden)

    def test_a_view_has_no_additions(self):
        edit.append(self.abi, "kpt_stats")
        edit.append(self.abi, "kpt_host", "void (*extra)(void *ctx);")
        edit.append(self.abi, "kpt_host", "const kpt_str *more;")
        layout.write_view(self.abi, golden, self.folder / "view")
        self.assertEqual(layout.measure(self.folder / "view", options.cc, options.emulator), golden)

    def test_breaks_are_found(self):
        breaks = {
            "max_events at 16": lambda: edit.swap(self.abi, "kpt_tracer_args", "max_events",
                                                  "max_bytes"),
            "functions_disabled is gone": lambda: edit.shorten(self.abi, "kpt_stats"),
            "kpt_stats: functions_disabled at": lambda: edit.insert(self.abi, "kpt_stats"),
            "kpt_str: it is frozen for ever": lambda: edit.append(self.abi, "kpt_str"),
            "enumerator KPT_E_IO was -9 and is -19": lambda: edit.replace(
                self.abi, BASE, "KPT_E_IO = -9", "KPT_E_IO = -19"),
            "enumerator KPT_THREAD_ENDED is gone": lambda: edit.replace(
                self.abi, "kpt_activity.h", "KPT_THREAD_ENDED", "KPT_THREAD_DEAD"),
            "scalar kpt_status was": lambda: edit.replace(
                self.abi, BASE, "typedef int32_t kpt_status", "typedef uint32_t kpt_status"),
            "constant KPT_EXT_MEMORY was kpt.memory.v1": lambda: edit.replace(
                self.abi, "kpt_memory.h", '"kpt.memory.v1"', '"kpt.memory.v2"'),
            "its V1 size was 88 and is 80": lambda: edit.replace(
                self.abi, TRACER, r"kpt_stats, functions_disabled\)",
                "kpt_stats, threads_unreached)"),
            "struct kpt_watch is gone": lambda: [
                edit.replace(self.abi, TRACER, "kpt_watch", "kpt_look") for _ in range(4)],
        }
        for words, change in breaks.items():
            with self.subTest(words):
                self.setUp()
                change()
                self.assertIn(words, "\n".join(self.breaks()))

    def test_what_it_can_not_read_it_refuses(self):
        field = r"uint64_t max_events;"
        unreadable = {
            "no fixed width": (TRACER, field, "long max_events;"),
            "the member uint64_t max_events : 3": (TRACER, field, "uint64_t max_events : 3;"),
            "the member uint32_t a, b": (TRACER, field, "uint32_t a, b;"),
            "holds a nested type": (TRACER, field, "union { int32_t a; } u;"),
            "has no plain value": (TRACER, "KPT_FULL_RING = 1", "KPT_FULL_RING"),
            "its V1 size is missing": (TRACER, "KPT_STATS_V1_SIZE KPT_FIELD_END.*", "OTHER 1"),
            "is not written typedef struct": (TRACER, "typedef struct kpt_watch", "struct kpt_watch"),
            "belong to no field": (TRACER, field, "uint16_t max_events;"),
            "is there twice": (TRACER, "KPT_FULL_RING = 1", "KPT_FULL_STOP = 1"),
            "named, but not read: kpt_nobody": (TRACER, field, "kpt_nobody *max_events;"),
            "typedef": (BASE, "typedef int32_t kpt_status", "typedef int kpt_status"),
            "the constant KPT_ODD": (BASE, "#define KPT_ABI_MAJOR 1",
                                     "#define KPT_ABI_MAJOR 1\n#define KPT_ODD (1 + 1)"),
        }
        for words, (header, pattern, text) in unreadable.items():
            with self.subTest(words):
                self.setUp()
                edit.replace(self.abi, header, pattern, text)
                with self.assertRaises(abi_headers.Unknown) as caught:
                    self.measure()
                self.assertIn(words, str(caught.exception))

    def test_the_command_tells_by_its_exit(self):
        def run(*arguments):
            return subprocess.run([sys.executable, layout.__file__, *arguments, "--cc", options.cc,
                                   "--emulator", options.emulator], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        file = self.folder / "golden"
        file.write_text("\n".join(golden) + "\n")
        self.assertEqual(run("check", self.abi, file).returncode, 0)
        edit.append(self.abi, "kpt_stats")
        self.assertIn("scripts/freeze_v1", run("check", self.abi, file).stdout)
        self.assertEqual(run("check", self.abi, file).returncode, 1)
        self.assertEqual(run("check", self.abi, file, "--frozen").returncode, 0)
        edit.swap(self.abi, "kpt_stats", "events", "threads")
        self.assertEqual(run("check", self.abi, file, "--frozen").returncode, 1)


if __name__ == "__main__":
    options, rest = OPTIONS.parse_known_args()
    golden = layout.measure(options.abi, options.cc, options.emulator)
    unittest.main(argv=[sys.argv[0], *rest])
