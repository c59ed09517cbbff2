#!/usr/bin/env python3
"""Tests scripts/freeze_v1 in a copy of what it keeps: freezing, what --check notices, and that what
is frozen stays so.

usage: test_freeze.py CHECKOUT      (77, which means skipped, where abidw is not here)
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import header_edits as edit


def freeze(root, *options):
    return subprocess.run([root / "scripts" / "freeze_v1", *options], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


class Freeze(unittest.TestCase):
    """Each test has a copy of its own of one state: as provisional as can be, whatever the checkout's is."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.provisional = pathlib.Path(folder.name).resolve() / "provisional"
        for name in ("abi", "tests/abi/v1", "tests/abi/golden"):
            shutil.copytree(checkout / name, cls.provisional / name)
        (cls.provisional / "scripts").mkdir()
        for name in ("freeze_v1", "abi_check"):
            shutil.copy(checkout / "scripts" / name, cls.provisional / "scripts")
        (cls.provisional / "tests/abi/v1/FROZEN").write_text("provisional\n")
        reply = freeze(cls.provisional)
        assert reply.returncode == 0 and "provisional: " in reply.stdout, reply.stdout

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve() / "root"
        shutil.copytree(self.provisional, self.root)
        self.abi, self.frozen = self.root / "abi", self.root / "tests/abi/v1/FROZEN"

    def freeze(self, code, *options):
        reply = freeze(self.root, *options)
        self.assertEqual(reply.returncode, code, reply.stdout)
        return reply.stdout

    def contents(self):
        return {path: path.read_bytes() for path in sorted(self.root.rglob("*"))
                if path.is_file() and "__pycache__" not in path.parts}

    def test_provisional_is_in_order_and_can_be_repeated(self):
        self.assertIn("provisional", self.freeze(0, "--check"))
        before = self.contents()
        self.freeze(0)
        self.assertEqual(self.contents(), before)
        self.assertIn("v1/v1_host.c", self.frozen.read_text())
        self.assertIn("v1/abi/kpt_tracer.h", self.frozen.read_text())
        self.assertIn("golden/abi_layout.txt", self.frozen.read_text())

    def test_check_changes_nothing(self):
        before = self.contents()
        self.freeze(0, "--check")
        self.assertEqual(self.contents(), before)

    def test_provisional_follows_the_headers(self):
        edit.append(self.abi, "kpt_stats")
        self.assertIn("scripts/freeze_v1", self.freeze(1, "--check"))
        self.freeze(0)
        self.freeze(0, "--check")
        edit.swap(self.abi, "kpt_stats", "events", "threads")
        self.freeze(1, "--check")
        self.freeze(0)
        self.freeze(0, "--check")

    def test_provisional_notices_a_comment(self):
        edit.replace(self.abi, "kpt_tracer.h", "Ends recording", "Ends all recording")
        self.assertIn("abi/ differs from tests/abi/v1/abi", self.freeze(1, "--check"))

    def test_provisional_notices_an_edited_peer(self):
        path = self.root / "tests/abi/v1/v1_host.c"
        path.write_text(path.read_text() + "\n")
        self.assertIn("tests/abi/v1/v1_host.c", self.freeze(1, "--check"))
        self.freeze(0)
        self.freeze(0, "--check")

    def test_frozen_is_in_order(self):
        self.assertIn("frozen 1.0: ", self.freeze(0, "--final"))
        self.assertEqual(self.frozen.read_text().split("\n")[0], "frozen 1.0")
        self.assertIn("frozen 1.0", self.freeze(0, "--check"))

    def test_frozen_refuses_to_be_frozen_again(self):
        self.freeze(0, "--final")
        edit.append(self.abi, "kpt_stats")
        before = self.contents()
        for options in ([], ["--final"]):
            self.assertIn("V1 is frozen", self.freeze(1, *options))
            self.assertEqual(self.contents(), before)

    def test_frozen_notices_every_edited_file(self):
        self.freeze(0, "--final")
        for name in ("tests/abi/v1/v1_host.c", "tests/abi/v1/abi/kpt_base.h", "tests/abi/golden/abi_layout.txt",
                     "tests/abi/golden/abi_types.abi"):
            with self.subTest(name):
                path = self.root / name
                before = path.read_bytes()
                path.write_bytes(before + b"\n")
                output = self.freeze(1, "--check")
                self.assertIn(name, output)
                self.assertIn("restore it", output)
                path.write_bytes(before)
        self.freeze(0, "--check")

    def test_frozen_notices_files_that_come_and_go(self):
        self.freeze(0, "--final")
        extra = self.root / "tests/abi/v1/abi/kpt_extra.h"
        extra.write_text("")
        self.assertIn("kpt_extra.h", self.freeze(1, "--check"))
        extra.unlink()
        (self.root / "tests/abi/v1/v1_plugin.c").unlink()
        self.assertIn("v1_plugin.c", self.freeze(1, "--check"))

    def test_frozen_lets_its_build_change(self):
        self.freeze(0, "--final")
        (self.root / "tests/abi/v1/CMakeLists.txt").write_text("# another build system\n")
        self.freeze(0, "--check")

    def test_frozen_lets_the_headers_grow(self):
        self.freeze(0, "--final")
        edit.append(self.abi, "kpt_stats")
        edit.append(self.abi, "kpt_host", "void (*extra)(void *ctx);")
        edit.replace(self.abi, "kpt_tracer.h", "Ends recording", "Ends all recording")
        self.freeze(0, "--check")

    def test_frozen_notices_a_moved_field(self):
        self.freeze(0, "--final")
        edit.swap(self.abi, "kpt_tracer_args", "max_events", "max_bytes")
        self.assertIn("kpt_tracer_args", self.freeze(1, "--check"))

    def test_frozen_notices_a_missing_field_and_a_new_number(self):
        self.freeze(0, "--final")
        edit.shorten(self.abi, "kpt_stats")
        edit.replace(self.abi, "kpt_base.h", "KPT_E_IO = -9", "KPT_E_IO = -19")
        output = self.freeze(1, "--check")
        self.assertIn("functions_disabled is gone", output)
        self.assertIn("KPT_E_IO was -9 and is -19", output)

    def test_a_file_that_says_neither_is_refused(self):
        self.frozen.write_text(self.frozen.read_text().replace("provisional", "frozen 2.0"))
        self.freeze(1, "--check")
        self.freeze(1)


if __name__ == "__main__":
    checkout = pathlib.Path(sys.argv.pop(1)).resolve()
    if not shutil.which("abidw"):
        print("test_freeze: skipped: abidw is missing; install it with: scripts/setup abi")
        sys.exit(77)
    unittest.main()
