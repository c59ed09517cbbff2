"""Commands that are interrupted, and names with characters that control a terminal."""

import asyncio
import contextlib
import io
import json
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import Case, run_python

import kpytrace
from kpytrace import _standalone
from kpytrace._api import native
from kpytrace._cli import gpu
from kpytrace._files.kpt_header import File


def leaf():
    pass


class Commands(Case):
    def setUp(self):
        super().setUp()
        self.kpt = self.folder / "trace.kpt"


class CompactJson(Commands):
    def setUp(self):
        super().setUp()
        with kpytrace.trace(self.kpt):
            for _ in range(1000):
                leaf()

    def convert(self, name, *options):
        reply = run_python("-m", "kpytrace", "convert", "-q", *options, str(self.kpt), str(self.folder / name))
        return reply

    def test_it_has_the_same_calls_in_half_the_bytes(self):
        self.assertEqual(self.convert("full.json").returncode, 0)
        self.assertEqual(self.convert("compact.json", "--compact").returncode, 0)
        full, compact = ((self.folder / f"{name}.json").read_text(encoding="utf-8") for name in ("full", "compact"))
        calls = [[(event["tid"], event["ts"], event["dur"], event["name"].rpartition("/")[2])
                  for event in json.loads(text)["traceEvents"] if event["ph"] == "X"] for text in (full, compact)]
        self.assertEqual(*calls)
        self.assertIn("cli/test_commands.py(", compact)
        self.assertNotIn(str(pathlib.Path(__file__).parents[1]), compact)
        self.assertLess(len(compact) * 2, len(full))
        self.assertLess(len(compact), 126 * len(calls[0]), "viztracer 1.1.1 has 126 to 162 bytes a call")

    def test_other_formats_have_no_compact_form(self):
        for name in ("out.pftrace", "out.speedscope.json", "out.html", "out.kpt"):
            reply = self.convert(name, "--compact")
            self.assertEqual(reply.returncode, 2)
            self.assertIn("--compact is for Chrome's JSON format", reply.stderr)


class Interrupts(Commands):
    def test_an_exception_ends_the_reading_of_a_file(self):
        """Also Ctrl-C does. Before the fix, a file of hours was converted to its end first."""
        with kpytrace.trace(self.kpt):
            for _ in range(100_000):
                leaf()
        handle, _, _ = _standalone.open(native.load(), self.kpt, False)

        def stop(done):
            raise KeyboardInterrupt

        for suffix in (".json", ".json.gz", ".pftrace", ".speedscope.json", ".collapsed", ".html"):
            with self.subTest(suffix):
                target = self.folder / f"out{suffix}"
                with self.assertRaises(KeyboardInterrupt):
                    _standalone.write(handle, target, stop)
                self.assertFalse(target.exists())
        self.assertEqual(_standalone.write(handle, self.path, None)["calls"],
                         _standalone.write(handle, None, None)["calls"])


class Entry(Commands):
    def test_python_m_is_the_command(self):
        """Also in a folder with a file that is named like a module. Before the fix, python -m imported it."""
        for name in ("difflib", "json", "textwrap"):
            (self.folder / f"{name}.py").write_text("raise SystemExit('the wrong module')")
        with kpytrace.trace(self.kpt):
            leaf()
        command = self.folder / "bin" / "kpytrace"  # as an installer writes it
        command.parent.mkdir()
        command.write_text("import sys\nfrom kpytrace.__main__ import main\nsys.exit(main())\n")
        for words in ((), ("--help",), ("--version",), ("rum",), ("top", "--json", self.kpt), ("run", "--help")):
            with self.subTest(words):
                ends = []
                for start in (["-m", "kpytrace"], [str(command)]):
                    reply = run_python(*start, *map(str, words), cwd=self.folder)
                    ends.append((reply.returncode, reply.stdout, reply.stderr))
                self.assertEqual(*ends)
                self.assertNotIn("wrong module", ends[0][2])

    def test_dir_shows_the_api_and_nothing_else(self):
        reply = run_python("-c", "import kpytrace; print(*dir(kpytrace))")
        names = reply.stdout.split()
        self.assertEqual(names, sorted({*kpytrace.__all__, "traceback"}))
        self.assertEqual([name for name in names if not getattr(kpytrace, name).__doc__], [])


class Names(Commands):
    STRANGE = "a\nb\x1b[31m\u202e\u00e9"

    def setUp(self):
        super().setUp()

        async def main():
            await asyncio.create_task(asyncio.sleep(0), name=self.STRANGE)

        with kpytrace.trace(self.kpt):
            thread = threading.Thread(target=leaf, name=self.STRANGE)
            thread.start()
            thread.join()
            asyncio.run(main())

    def assert_harmless(self, text):
        """Checks that the output has no control characters, and that each line is one of ours."""
        self.assertEqual([c for c in text if not c.isprintable() and c != "\n"], [])

    def said(self, *words, encoding="utf-8"):
        reply = run_python("-m", "kpytrace", *words, env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
                           encoding=encoding)
        self.assertEqual((reply.returncode, reply.stderr), (0, ""))
        return reply.stdout

    def test_a_name_stays_on_its_line_and_commands_no_terminal(self):
        for words in (("info",), ("top", "--threads", "-n", "0"), ("top", "--tasks", "-n", "0")):
            with self.subTest(words):
                self.assertIn("a\\nb\\x1b[31m\\u202e\u00e9", self.said(*words, str(self.kpt)))

    def test_kernels_devices_and_their_lines(self):
        strange = self.STRANGE.encode()
        line = (strange, 3, strange)
        report = {"devices": [{"index": 0, "name": strange, "kernels": 1, "span_ns": 9, "busy_ns": 3,
                               "gaps": [(1, 2, strange, line)]}],
                  "kernels": [(strange, 1, 3, 3)], "lines": [(line, 1, 3, 3)], "dropped": 0, "lost_kernels": 0}
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            gpu.print_report(report, 10)
        self.assert_harmless(out.getvalue())
        self.assertEqual(out.getvalue().count("a\\nb\\x1b[31m\\u202e"), 7)

    def test_operators(self):
        trace = self.folder / "et.json"
        node = {"id": 1, "name": self.STRANGE, "ctrl_deps": 1, "inputs": {}, "outputs": {}, "attrs": []}
        trace.write_text(json.dumps({"schema": self.STRANGE, "pid": 1, "time": self.STRANGE, "nodes": [node]}))
        other = self.folder / "other.json"
        other.write_text(json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": []}))
        for words in (("info", trace), ("check", trace), ("diff", "--times", trace, other), ("convert", trace, other)):
            with self.subTest(words):
                reply = run_python("-m", "kpytrace", "et", *map(str, words))
                self.assertNotIn("Traceback", reply.stderr)
                self.assert_harmless(reply.stdout)
                self.assert_harmless(reply.stderr)

    def test_names_of_files(self):
        path = self.folder / f"{self.STRANGE}.kpt"
        path.write_bytes(self.kpt.read_bytes()[:-100])
        (self.folder / f"{self.STRANGE}.txt").write_text("no trace")
        for words in (("info", path), ("top", path), ("merge", path, path, "-o", self.folder / "out.json"),
                      ("merge", "--align", "marks", path, "-o", self.folder / "out.json"), ("diff", path, path),
                      ("info", self.folder / f"{self.STRANGE}.txt"), ("info", self.folder / f"none{self.STRANGE}"),
                      (self.STRANGE,), ("top", "--sort", self.STRANGE, path)):
            with self.subTest(words):
                reply = run_python("-m", "kpytrace", *map(str, words))
                self.assert_harmless(reply.stdout)
                self.assert_harmless(reply.stderr)

    def test_a_command_line_adds_no_line_to_the_info(self):
        """str.splitlines() splits at these."""
        other = self.folder / "other.kpt"
        for end in "\v\f\x1c\x85\u2028":
            run_python("-m", "kpytrace", "run", "-q", "-o", str(other), "-c", "pass", f"x{end}name=evil{end}rank=7")
            self.assertNotRegex(self.said("info", str(other)), "(?m)^(name|rank):")
            self.assertNotIn("rank", File(str(other)).info)

    def test_an_output_that_lacks_the_letters(self):
        for words in (("info",), ("top", "--threads", "-n", "0"), ("top", "--tasks", "-n", "0"),
                      ("diff", "-n", "0", str(self.kpt))):
            with self.subTest(words):
                self.assertTrue(self.said(*words, str(self.kpt), encoding="ascii"))
        self.assertIn("\\xb5s", self.said("top", "-n", "0", str(self.kpt), encoding="ascii"))


if __name__ == "__main__":
    unittest.main()
