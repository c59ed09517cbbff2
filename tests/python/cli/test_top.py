"""kpytrace top: qualified names, shares, folded start-up, callers and callees, JSON and CSV, terminals."""

import csv
import io
import json
import os
import pathlib
import pty
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import Case, run_python

PROGRAM = """
import this_module_is_imported

class Greeter:
    def greet(self, names):
        return [self.one(name) for name in names] if names else []
    def one(self, name):
        return len(name) + len(name)

def main():
    for i in range(50):
        Greeter().greet(["a", "b"])
main()
"""
METHOD = "Greeter.one" if sys.version_info >= (3, 11) else "one"


class Top(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import shutil
        import tempfile
        cls.where = pathlib.Path(tempfile.mkdtemp(prefix="kpt-top-"))
        cls.addClassCleanup(shutil.rmtree, cls.where)
        (cls.where / "hello.py").write_text(PROGRAM)
        (cls.where / "this_module_is_imported.py").write_text("def unused(): pass\nunused()\n")
        cls.kpt = cls.where / "hello.kpt"
        reply = run_python("-m", "kpytrace", "run", "-q", "-o", str(cls.kpt), "hello.py", cwd=cls.where)
        assert reply.returncode == 0, reply.stderr

    def top(self, *words, status=0, **options):
        reply = run_python("-m", "kpytrace", "top", *map(str, words), **{"cwd": self.where, **options})
        self.assertEqual(reply.returncode, status, reply.stderr)
        return reply.stdout if status == 0 else reply.stderr

    def functions(self, *words):
        return json.loads(self.top("--json", "-n", "0", *words))


class Rows(Top):
    def test_the_program_comes_first_and_start_up_is_folded(self):
        text = self.top("-n", "0", self.kpt)
        self.assertIn(f"hello.py(7): {METHOD}\n", text)
        self.assertIn("this_module_is_imported.py(1): unused\n", text)
        for folded in ("<frozen importlib", "/kpytrace/", "acquire_lock"):
            self.assertNotIn(folded, text)
        self.assertRegex(text, r"\n +[\d,]+ +[\d.]+ \w+ +of start-up, imports and kpytrace itself are folded away "
                               r"\(--all lists them\)\n$")
        whole = self.top("--all", "-n", "0", self.kpt)
        self.assertIn("<frozen importlib._bootstrap>", whole)
        self.assertNotIn("folded", whole)

    def test_what_is_folded_and_what_is_not_are_all_calls(self):
        folded, whole = self.functions(self.kpt), self.functions("--all", self.kpt)
        for key, sums in (("calls", lambda t: sum(f["calls"] for f in t["functions"])),
                          ("self_ns", lambda t: sum(f["self_ns"] for f in t["functions"]))):
            self.assertEqual(sums(folded) + folded["folded"][key], sums(whole))
        self.assertEqual(whole["folded"], {"calls": 0, "self_ns": 0})
        self.assertEqual(whole["self_ns"], sum(f["self_ns"] for f in whole["functions"]))

    def test_the_calls_of_builtins_that_the_program_makes_stay(self):
        rows = {f["name"]: f["calls"] for f in self.functions(self.kpt)["functions"]}
        everything = {f["name"]: f["calls"] for f in self.functions("--all", self.kpt)["functions"]}
        self.assertEqual(rows["<built-in function len>"], 200)
        self.assertGreater(everything["<built-in function len>"], 200)

    def test_json_has_the_promised_keys_and_whole_paths(self):
        row = next(f for f in self.functions(self.kpt)["functions"] if f["name"] == METHOD)
        self.assertEqual(list(row), ["name", "file", "line", "calls", "self_ns", "total_ns", "max_ns"])
        self.assertEqual((row["file"], row["line"], row["calls"]), (str(self.where / "hello.py"), 7, 100))
        self.assertLessEqual(row["self_ns"], row["total_ns"])
        self.assertLessEqual(row["max_ns"], row["total_ns"])

    def test_csv_is_the_same(self):
        rows = list(csv.DictReader(io.StringIO(self.top("--csv", "-n", "0", self.kpt))))
        known = self.functions(self.kpt)["functions"]
        self.assertEqual([(r["name"], r["file"], int(r["line"]), int(r["calls"]), int(r["self_ns"])) for r in rows],
                         [(f["name"], f["file"], f["line"], f["calls"], f["self_ns"]) for f in known])
        self.assertAlmostEqual(sum(float(r["percent"]) for r in rows), 100, delta=0.5)

    def test_paths_are_short_unless_whole_ones_are_wanted(self):
        self.assertIn(f"  {self.where}/hello.py(7): {METHOD}\n", self.top("-n", "0", "--full-paths", self.kpt))
        self.assertIn(f"  hello.py(7): {METHOD}\n", self.top("-n", "0", self.kpt))
        self.assertIn(f"  {self.where}/hello.py(7): {METHOD}\n", self.top("-n", "0", self.kpt, cwd="/"))

    def test_collections_of_garbage_are_rows(self):
        out = self.folder / "gc.kpt"
        run_python("-m", "kpytrace", "run", "-q", "--gc", "-o", str(out), "-c", "import gc; gc.collect()")
        for words in ((), ("--all",), ("--threads",)):
            self.assertIn("Python GC", [f["name"] for f in self.functions(*words, out)["functions"]])

    def test_in_a_folder_that_is_gone(self):
        gone = self.folder / "gone"
        gone.mkdir()
        code = f"import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, [sys.executable, '-m', 'kpytrace', 'top', " \
               f"{str(self.kpt)!r}])"
        reply = run_python("-c", code, cwd=gone)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertIn(f"{self.where}/hello.py(7)", reply.stdout)

    def test_several_files_are_added_up(self):
        one, two = self.functions(self.kpt), self.functions(self.kpt, self.kpt)
        self.assertEqual([f["calls"] * 2 for f in one["functions"]], [f["calls"] for f in two["functions"]])

    def test_rows_that_are_left_out_are_counted(self):
        self.assertRegex(self.top("-n", "1", self.kpt), r"% +… in \d+ more rows \(all: -n 0\)\n")
        self.assertEqual(len(self.top("-q", "-n", "1", self.kpt).splitlines()), 2)


class Of(Top):
    def test_callers_and_callees(self):
        found = json.loads(self.top("--json", "--of", METHOD, self.kpt))
        self.assertEqual([f["name"] for f in found["functions"]], [METHOD])
        self.assertEqual([(e["name"], e["calls"]) for e in found["callees"]], [("<built-in function len>", 200)])
        self.assertEqual(sum(e["calls"] for e in found["callers"]), 100)
        self.assertEqual(sum(e["total_ns"] for e in found["callers"]), found["functions"][0]["total_ns"])
        for name in ("one", "hello.py(7): " + METHOD, "*one"):
            text = self.top("--of", name, self.kpt)
            self.assertRegex(text, r"\n +200 +.* <built-in function len>\n")
            self.assertIn("called by", text)

    def test_a_function_that_is_not_there(self):
        self.assertIn("did you mean main?", self.top("--of", "mian", self.kpt, status=1))


class Missing(Top):
    def test_children_that_were_not_recorded(self):
        out = self.folder / "out.kpt"
        code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'for i in range(10**6): pass'])"
        for options, is_missing in (((), True), (("--children",), False)):
            run_python("-m", "kpytrace", "run", "-q", *options, "-o", str(out), "-c", code)
            reply = run_python("-m", "kpytrace", "top", str(out))
            self.assertEqual("kpytrace run --children" in reply.stderr, is_missing, reply.stderr)
            text = run_python("-m", "kpytrace", "info", str(out)).stdout
            self.assertEqual("not recorded: processes" in text, is_missing, text)

    def test_threads_that_were_not_recorded(self):
        out = self.folder / "out.kpt"
        run_python("-m", "kpytrace", "run", "-q", "--this-thread", "-o", str(out), "-c", "pass")
        self.assertIn("not recorded: other threads", run_python("-m", "kpytrace", "info", str(out)).stdout)


class Terminal(Top):
    def on_terminal(self, columns, **env):
        """Returns the output on a terminal of so many columns."""
        reader, writer = pty.openpty()
        import fcntl
        import struct
        import termios
        fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        clean = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
        child = subprocess.Popen([sys.executable, "-m", "kpytrace", "top", "-q", "--full-paths", "-n", "0", str(self.kpt)],
                                 stdout=writer, stderr=subprocess.DEVNULL, env={**clean, "TERM": "xterm", **env})
        os.close(writer)
        text = b""
        try:
            while piece := os.read(reader, 4096):
                text += piece
        except OSError:  # the child has ended
            pass
        os.close(reader)
        self.assertEqual(child.wait(), 0)
        return text.decode()

    def test_lines_fit_and_have_colours(self):
        import re
        for columns in (80, 140):
            text = self.on_terminal(columns)
            self.assertIn("\x1b[2m", text)
            lines = re.sub(r"\x1b\[\dm", "", text).splitlines()
            self.assertLessEqual(max(map(len, lines)), max(columns, 49 + 30))
            self.assertTrue(any(line.endswith(METHOD) for line in lines))
            self.assertEqual("per call" in lines[0], columns == 140)
        self.assertNotIn("\x1b", self.on_terminal(80, NO_COLOR="1"))

    def test_piped_output_has_no_escapes_and_is_whole(self):
        text = self.top("--full-paths", "-n", "0", self.kpt)
        self.assertNotIn("\x1b", text)
        self.assertNotIn("…", text)


if __name__ == "__main__":
    unittest.main()
