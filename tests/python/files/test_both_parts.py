"""A kept .kpt file with calls and memory, read by every command and converted to every format. Needs no backend."""

import json
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from both_parts import Both, kpytrace_command
from snapshots import Snapshot

GOLDEN = pathlib.Path(__file__).with_name("golden") / "calls_and_memory.kpt"


class Golden(Both):
    def setUp(self):
        super().setUp()
        shutil.copy(GOLDEN, self.path)

    def test_each_command_reads_its_part_of_the_kept_file(self):
        lines = kpytrace_command("top", "-q", "-n", "0", self.path).stdout.splitlines()[1:]
        calls = {line.split("  ")[-1]: int(line.split()[0]) for line in lines}
        self.assertEqual((calls["/program.py(2): keep"], calls["/program.py(5): drop"]), (1, 3))
        self.convert("a.tables.json", "-q")
        from kpytrace._files.memory_tables import Tables

        tables = Tables(self.folder / "a.tables.json")
        rows = {row.name: (row.bytes, row.blocks) for row in tables.rows("end", "function")}
        self.assertEqual(rows["keep.<locals>.<listcomp>"], (104208, 102), "100 blocks of 1,033 bytes, their list and its items")
        self.assertLess(rows["drop"][0], 533)
        begin, end = self.calls_of("keep")[0]
        times = [base + e["ts"] * 1000 for e, base in self.events("memory")
                 if e["name"] == "[memory]" and e["args"]["Bytes"] == 1033]
        self.assertEqual(len(times), 100)
        self.assertTrue(all(begin - 3000 <= at <= end + 1000 for at in times), (begin, end, times))
        info = kpytrace_command("info", self.path).stdout
        self.assertIn("recording:    calls and memory\n", info)
        self.check_page(("trace", "memory"))

    def test_the_suffix_decides_which_part_is_converted(self):
        for name in ("a.json", "a.pftrace"):
            self.assertIn(f"has calls and memory, and {name[1:]} can have either: add --part calls or --part memory",
                          self.convert(name, status=2))
            for part in ("calls", "memory"):
                self.convert(name, "-q", "--part", part)
        for name in ("a.pickle", "a.tables.json", "a.speedscope.json", "a.collapsed", "a.json.gz", "a.html", "a.kpt"):
            self.convert(name, "-q")
        page = (self.folder / "a.html").read_text("utf-8")
        self.assertTrue('data-kind="trace"' in page and 'data-kind="memory"' in page)
        Snapshot(self.folder / "a.pickle").check(self)
        self.assertIn("memory", json.loads((self.folder / "a.tables.json").read_text())["schema"])
        self.assertIn(".kpt has both parts: leave out --part", self.convert("a.kpt", "--part", "calls", status=2))
        self.assertIn("must be calls or memory", self.convert("a.json", "--part", "both", status=2))
        self.path = GOLDEN.with_name("calls.kpt")
        self.assertIn("has no recording of memory", self.convert("a.json", "--part", "memory", status=2))
        self.convert("a.json", "-q", "--part", "calls")

    def test_a_report_of_two_shows_the_memory_that_is_chosen(self):
        other = shutil.copy(self.path, self.folder / "other.kpt")
        done = kpytrace_command("report", self.path, other, "-o", self.folder / "page.html")
        self.assertEqual(done.returncode, 2)
        self.assertIn("only one memory recording, and there are 2", done.stderr)
        done = kpytrace_command("report", self.path, other, "--memory", other, "-o", self.folder / "page.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.folder / "page.html").read_text("utf-8")
        self.assertEqual((page.count('data-kind="trace"'), page.count('data-kind="memory"')), (2, 1))

    def test_a_redacted_page_has_no_paths_in_either_part(self):
        from kpytrace._files.page_sections import Content, sections

        found = []
        for options in ((), ("--redact",)):
            page = self.folder / "page.html"
            done = kpytrace_command("report", "-q", *options, self.path, "-o", page)
            self.assertEqual(done.returncode, 0, done.stderr)
            written = page.read_bytes()
            begin = re.search(rb'<script [^>]*class="section"', written).start()
            parts = [Content(*each) for each in sections(written[begin:])]
            found.append({part.kind: any(file.startswith("/") for file in part.files()) for part in parts})
        self.assertEqual(found, [{"trace": True, "memory": True}, {"trace": False, "memory": False}])

    def test_a_damaged_file(self):
        whole = self.path.read_bytes()
        for cut in (len(whole) - 10, len(whole) // 2, 200, 60):
            self.path.write_bytes(whole[:cut])
            for words in (("info",), ("memory",), ("report", "-o", self.folder / "page.html")):
                done = kpytrace_command(*words, self.path)
                self.assertNotIn("Traceback", done.stderr)
        at = whole.rindex(b"Trace._stop_memory")  # a name of the recording of memory
        self.path.write_bytes(whole[:at] + b"?" + whole[at + 1:])
        self.assertIn("is damaged at byte", self.convert("a.kpt", status=1))
        self.convert("a.kpt", "--recover")


if __name__ == "__main__":
    unittest.main()
