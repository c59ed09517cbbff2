"""Lines of source on the page, and pages without paths, command lines, users and hosts."""

import base64
import getpass
import gzip
import os
import re
import sys

from page import Page, kpytrace, main

PROGRAM = """\
import functools, json
import kpytrace
def leaf(n): return sum(range(n))
@functools.lru_cache
def memoized(n):
    return leaf(n)
def numbers():
\tfor i in range(5):
        \tleaf(100)
        \tyield i  # </script><img src=x onerror=alert(1)>
twice = lambda n: leaf(n) * 2
def main():
    memoized(3); twice(4); list(numbers()); json.dumps([1, {}], indent=1)
    kpytrace.mark("where", path="/srv/very/secret/data.bin", host=HOST)
main()
"""


class Source(Page):
    options = ()

    @classmethod
    def make(cls):
        cls.project = cls.folder / "project"
        cls.project.mkdir()
        cls.script = cls.project / "program.py"
        cls.script.write_text(PROGRAM.replace("HOST", repr(os.uname().nodename)), encoding="utf-8")
        kpytrace("run", "-o", cls.folder / "trace.kpt", cls.script, "--token=geheim")
        for name, *options in (("report",), ("source", "--source"), ("redacted", "--redact"), ("both", "--redact", "--source")):
            kpytrace("report", *options, cls.folder / "trace.kpt", "-o", cls.folder / f"{name}.html")

    def lines(self):
        """Returns the lines in the panel: number, own time if there is a column of them, and text."""
        return self.ask("""[...document.querySelectorAll('#details .source tr')].map((row) => [...row.cells].map((c) => c.textContent))""")

    def select(self, label):
        """Selects a call of a function of the program."""
        self.ask(f"""(() => {{ const [track] = kpytrace.model.tracks, {{names}} = kpytrace.model;
            const name = names.findIndex((one) => one.label === '{label}' && /(program|changed|gone).py$/.test(one.file));
            kpytrace.showSpan({{track, span: track.nameOf.indexOf(name)}}); }})()""")

    # --- source ---

    def test_a_page_has_no_source_unless_it_is_asked_for(self):
        self.select("leaf")
        self.assertEqual(self.lines(), [])
        self.assertNotIn("data-kind=\"source\"", (self.folder / "report.html").read_text(encoding="utf-8"))

    def test_the_panel_has_the_lines_of_the_function(self):
        self.show("source.html")
        self.select("leaf")
        self.assertEqual(self.lines(), [["3", "def leaf(n): return sum(range(n))"]])
        self.select("memoized")
        self.assertEqual(self.lines(), [["4", "@functools.lru_cache"], ["5", "def memoized(n):"], ["6", "    return leaf(n)"]])
        self.select("<lambda>")
        self.assertEqual(self.lines(), [["11", "twice = lambda n: leaf(n) * 2"]])
        self.browser.press("[data-tab=flame]")
        self.ask("kpytrace.flame.select(kpytrace.flame.tree.name.findIndex((n) => n >= 0 && kpytrace.model.names[n].label === 'memoized'))")
        self.assertEqual(len(self.lines()), 3)

    def test_own_time_by_line_where_lines_are_known(self):
        self.show("source.html")
        self.select("numbers")
        lines = self.lines()
        self.assertEqual([line[0] for line in lines], ["7", "8", "9", "10"])
        self.assertEqual([bool(line[1]) for line in lines], [True, False, False, True], "it began, and went on at the yield")
        self.assertTrue(lines[3][2].endswith("yield i  # </script><img src=x onerror=alert(1)>"))
        sums = self.ask("""(() => { const byLine = {}; const t = kpytrace.model.tracks[0];
            for (let i = 0; i < t.count; i++) if (kpytrace.model.names[t.nameOf[i]].label === 'numbers')
                byLine[t.get('line', i)] = (byLine[t.get('line', i)] ?? 0) + t.own[i];
            return [showTime(byLine[0]), showTime(byLine[10])]; })()""")
        self.assertEqual([lines[0][1], lines[3][1]], sums)

    def test_a_file_that_has_changed_is_told(self):
        copy = self.project / "changed.py"
        copy.write_text("def f(): pass\nf()\n", encoding="utf-8")
        kpytrace("run", "-o", self.folder / "changed.kpt", copy)
        copy.write_text("def g(): pass\ng()\n", encoding="utf-8")
        kpytrace("report", "--source", self.folder / "changed.kpt", "-o", self.folder / "changed.html")
        self.show("changed.html")
        self.select("f")
        self.assertIn("changed after the recording", self.details())

    def test_a_file_that_is_gone_or_no_python_is_left_out(self):
        copy = self.project / "gone.py"
        copy.write_text("def f(): pass\nf()\n", encoding="utf-8")
        kpytrace("run", "-o", self.folder / "gone.kpt", copy)
        copy.write_text("no python !", encoding="utf-8")
        kpytrace("report", "--source", self.folder / "gone.kpt", "-o", self.folder / "broken.html")
        copy.unlink()
        kpytrace("report", "--source", self.folder / "gone.kpt", "-o", self.folder / "gone.html")
        for page in ("broken.html", "gone.html"):
            self.show(page)
            self.select("f")
            self.assertEqual(self.lines(), [])

    # --- redaction ---

    def content(self, name):
        """Returns all texts of a page, without its code: the heads of sections, and their JSON."""
        page = (self.folder / name).read_text(encoding="utf-8")
        texts = []
        for head, packed in re.findall(r'(<script [^>]*class="section"[^>]*>)([^<]*)</script>', page):
            data = gzip.decompress(base64.b64decode(packed))
            texts += [head, data[max(data.find(b'{"format"'), 0):].decode("utf-8")]
        self.assertGreaterEqual(len(texts), 2)
        return "\n".join(texts)

    def has(self, content, secret):
        return re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", content) is not None

    def test_what_identifies_a_machine_is_left_out(self):
        secrets = [str(self.folder), self.folder.name, sys.prefix, sys.base_prefix, "geheim", os.uname().nodename, "/srv/very/secret"]
        if getpass.getuser() != "root":
            secrets.append(getpass.getuser())
        plain = self.content("report.html")
        for name in ("redacted.html", "both.html"):
            content = self.content(name)
            for secret in secrets:
                self.assertFalse(self.has(content, secret), (secret, name))
        for secret in (str(self.script), "geheim", os.uname().nodename, "/srv/very/secret"):
            self.assertTrue(self.has(plain, secret), "or this test finds nothing")

    def test_a_redacted_page_has_all_calls_and_short_files(self):
        labels = "kpytrace.model.tracks[0].nameOf.length"
        calls = self.ask(labels)
        self.show("redacted.html")
        self.assertEqual(self.ask(labels), calls)
        self.select("memoized")
        self.assertIn("program.py:4", self.details())
        files = self.ask("[...new Set(kpytrace.model.names.map((name) => name.file))].sort()")
        self.assertIn("json/encoder.py", files)
        self.assertEqual([file for file in files if file.startswith("/")], [])
        self.assertEqual(self.browser.text("#title"), "recording")
        self.show("both.html")
        self.select("memoized")
        self.assertEqual(len(self.lines()), 3)


if __name__ == "__main__":
    main()
