"""kpytrace report and view, without a browser. tests/report uses a browser."""

import base64
import gzip
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import FREE_THREADED, Case, run_python

SECTION = re.compile(rb'<script (?:data-name="([^"]*)" )?(?:data-title="[^"]*" )?(?:data-command="[^"]*" )?type="text/plain" class="section" data-kind="(\w+)" '
                     rb'data-pack="gzip">([A-Za-z0-9+/=]*)</script>\n')


def sections(path):
    """Returns the name, kind and data of each section."""
    found = SECTION.findall(path.read_bytes())
    return [(name.decode(), kind.decode(), gzip.decompress(base64.b64decode(data))) for name, kind, data in found]


def text_of(data):
    """Returns the JSON of a trace's section, which follows its blocks."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if not data[at - 1] & 0x80:
                return value

    while size := varint():
        varint()
        at += size
    return json.loads(data[at:])


class ReportCase(Case):

    def setUp(self):
        super().setUp()
        self.script = self.folder / "program.py"
        self.script.write_text("def f(): pass\nf()\nf()\n")
        self.kpt, self.html = self.folder / "a&b.kpt", self.folder / "report.html"
        self.kpytrace("run", "-o", self.kpt, self.script)

    def kpytrace(self, *words, status=0):
        done = run_python("-m", "kpytrace", *map(str, words), cwd=self.folder)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def tables(self):
        path = self.folder / "m.tables.json"
        self.kpytrace("run", "--memory", path, self.script)
        return path


class Report(ReportCase):

    def test_the_page_and_the_trace(self):
        done = self.kpytrace("report", self.kpt, "-o", self.html)
        self.assertRegex(done.stderr, r"calls, [\d,]+ bytes in .* s: .*report\.html")
        page = self.html.read_text(encoding="utf-8")
        self.assertTrue(page.startswith("<!doctype html>"))
        self.assertNotRegex(page, r"(src|href)=[\"']?(https?:)?//", "nothing comes from elsewhere")
        ((name, kind, data),) = sections(self.html)
        self.assertEqual((name, kind), ("a&amp;b.kpt", "trace"))
        text = text_of(data)
        self.assertIn("f", [name[1].rpartition(" ")[2] for name in text["names"]])
        self.assertEqual(sorted(os.listdir(self.folder)), ["a&b.kpt", "program.py", "report.html"])

    def test_run_and_convert_write_one(self):
        for words in (("run", "-o", self.html, self.script), ("convert", self.kpt, self.html)):
            self.kpytrace(*words)
            self.assertEqual([kind for _, kind, _ in sections(self.html)], ["trace"])
            self.html.unlink()

    def test_the_default_name(self):
        self.kpytrace("report", "--quiet", self.kpt)
        self.assertTrue(self.html.exists())

    def test_several_processes(self):
        self.kpytrace("report", self.kpt, self.kpt, "-o", self.html)
        self.assertEqual([kind for _, kind, _ in sections(self.html)], ["trace", "trace"])

    @unittest.skipIf(FREE_THREADED, "memory is not recorded there")
    def test_memory(self):
        tables = self.tables()
        for words, kinds in (((tables,), ["memory"]), ((self.kpt, "--memory", tables), ["trace", "memory"]),
                             ((tables, self.kpt), ["trace", "memory"])):
            self.kpytrace("report", *words, "-o", self.html)
            self.assertEqual([kind for _, kind, _ in sections(self.html)], kinds)
            self.assertEqual(json.loads(sections(self.html)[-1][2]), json.loads(tables.read_text()))
        done = self.kpytrace("report", tables, tables, status=2)
        self.assertIn("only one memory recording", done.stderr)

    def test_a_file_that_was_cut_off(self):
        whole = self.kpt.read_bytes()
        self.kpt.write_bytes(whole[:-40])
        done = self.kpytrace("report", self.kpt, "-o", self.html)
        self.assertIn("was killed", done.stderr)
        self.assertEqual(len(sections(self.html)), 1)

    def test_invalid_arguments(self):
        for words, text in (((), "usage"), ((self.kpt, "-o", "x.json"), ".html"), (("program.py",), "not a .kpt file")):
            self.assertIn(text, self.kpytrace("report", *words, status=2).stderr)
        for words in ((self.folder / "none.kpt",), (self.kpt, "-o", "none/x.html"), (self.kpt, "--memory", "none.json")):
            self.assertIn("kpytrace: ", self.kpytrace("report", *words, status=1).stderr)
        self.assertFalse(self.html.exists())
        self.assertIn("usage: kpytrace report", self.kpytrace("report", "--help").stdout)

    def test_a_failure_leaves_the_old_report(self):
        self.html.write_text("old")
        self.kpytrace("report", self.kpt, "--memory", self.script, "-o", self.html, status=1)
        self.assertEqual(self.html.read_text(), "old")
        self.assertEqual(sorted(os.listdir(self.folder)), ["a&b.kpt", "program.py", "report.html"])

    def test_a_link_stays_and_its_file_has_the_report(self):
        link = self.folder / "link.html"
        self.html.write_text("old")
        link.symlink_to(self.html)
        self.kpytrace("report", self.kpt, "-o", link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(len(sections(self.html)), 1)

    def test_a_pipe_gets_the_report(self):
        os.mkfifo(self.html)
        copy = self.folder / "copy.html"
        with open(copy, "wb") as file:
            reader = subprocess.Popen(["cat", self.html], stdout=file)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        self.kpytrace("report", self.kpt, "-o", self.html)
        self.assertTrue(self.html.is_fifo())
        reader.wait(60)
        self.assertEqual(len(sections(copy)), 1)


class View(ReportCase):

    def view(self, *words):
        """Returns the process and the address that it printed."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("KPYTRACE")}
        process = subprocess.Popen([sys.executable, "-m", "kpytrace", "view", "--no-browser", *map(str, words)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process, process.stdout.readline().strip()

    def get(self, address, path=None, method="GET", **headers):
        place = urllib.parse.urlsplit(address)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
        self.addCleanup(connection.close)
        connection.request(method, path or place.path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def test_it_serves_the_report_on_loopback(self):
        process, address = self.view(self.kpt)
        self.assertRegex(address, r"^http://127\.0\.0\.1:\d+/[\w-]{20,}/report\.html$")
        status, headers, content = self.get(address)
        self.assertEqual(status, 200)
        self.assertEqual(headers["Content-Type"], "text/html; charset=utf-8")
        self.assertEqual(len(SECTION.findall(content)), 1)
        self.assertNotIn("Access-Control-Allow-Origin", headers)
        self.assertEqual(self.get(address, method="HEAD")[2], b"")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(30), 0)
        self.assertNotIn("Traceback", process.stderr.read())

    def test_another_path_or_name_gets_nothing(self):
        _, address = self.view(self.kpt)
        self.assertEqual(self.get(address, "/")[0], 404)
        self.assertEqual(self.get(address, "/x/report.html")[0], 404)
        self.assertEqual(self.get(address, Host="evil.example")[0], 421)
        port = urllib.parse.urlsplit(address).port
        self.assertEqual(self.get(address, Host=f"localhost:{port}")[0], 200)

    def test_a_report_is_shown_as_it_is(self):
        self.kpytrace("report", self.kpt, "-o", self.html)
        _, address = self.view(self.html)
        self.assertEqual(self.get(address)[2], self.html.read_bytes())

    def test_only_perfetto_may_fetch_the_trace(self):
        process, address = self.view("--perfetto", self.kpt)
        if not address and "in use" in process.stderr.read():
            self.skipTest("port 9001 is taken")
        site, _, trace = address.partition("/#!/?url=")
        self.assertEqual(site, "https://ui.perfetto.dev")
        self.assertTrue(trace.startswith("http://127.0.0.1:9001/"))
        status, headers, content = self.get(trace, Origin=site)
        self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (200, site))
        self.assertIn(b"MainThread", content)
        self.assertEqual(self.get(trace, method="OPTIONS", Origin=site)[0], 204)
        self.assertNotIn("Access-Control-Allow-Origin", self.get(trace, Origin="https://evil.example")[1])

    def test_it_opens_the_browser(self):
        code = ("import sys, webbrowser\nfrom kpytrace._cli import commands, view\n"
                "webbrowser.open = lambda address: print('opened', address, flush=True)\n"
                "view._Server.serve_forever = lambda self: (_ for _ in ()).throw(KeyboardInterrupt)\n"
                "sys.exit(commands.main(['view', sys.argv[1]]))")
        done = run_python("-c", code, self.kpt)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = done.stdout.splitlines()
        self.assertEqual(second, f"opened {first}")

    def test_invalid_arguments(self):
        for words, text in ((("--port", "x", self.kpt), "--port"), (("--perfetto", "--port", "80", self.kpt), "9001"),
                            (("--perfetto", self.kpt, self.kpt), "one trace"), ((), "usage")):
            self.assertIn(text, self.kpytrace("view", *words, status=2).stderr)
        self.assertIn("usage: kpytrace view", self.kpytrace("view", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
