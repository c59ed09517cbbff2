"""The page as a whole: themes, help, tabs, names of any kind, no network, several processes, other sections."""

import base64
import gzip
import json
import subprocess
import sys
import time

from page import STRANGE, Page, kpytrace, main


class Whole(Page):

    def background(self):
        return self.ask("getComputedStyle(document.body).backgroundColor")

    def test_dark_and_light_go_with_the_system(self):
        light = self.background()
        self.addCleanup(self.browser.prefer, "light")
        self.browser.prefer("dark")
        self.browser.frames()
        self.assertNotEqual(self.background(), light)
        self.show()
        self.assertNotEqual(self.background(), light)
        self.assertEqual(self.pixel("#rows-canvas", 2, 790), "21,23,28,255")

    def test_the_button_and_t_change_the_theme(self):
        light, canvas = self.background(), self.pixel("#rows-canvas", 2, 790)
        self.browser.press("#theme")
        self.assertNotEqual(self.background(), light)
        self.assertNotEqual(self.pixel("#rows-canvas", 2, 790), canvas)
        self.browser.key("t")
        self.assertEqual(self.background(), light)

    def test_help_opens_and_closes(self):
        for opened, closed in (((self.browser.key, "?"), (self.browser.key, "Escape")),
                               ((self.browser.press, "#help-button"), (self.browser.press, "#close-help"))):
            opened[0](opened[1])
            self.assertTrue(self.browser.shown("#help"))
            closed[0](closed[1])
            self.assertFalse(self.browser.shown("#help"))

    def test_numbers_and_clicks_choose_tabs(self):
        for number, tab in enumerate(("timeline", "flame", "top", "notes"), 1):
            self.browser.key(str(number))
            self.assertEqual(self.tab(), tab)
        for tab in ("timeline", "flame", "top", "notes"):
            self.browser.press(f"[data-tab={tab}]")
            self.assertEqual(self.tab(), tab)
            self.assertEqual(self.ask("document.querySelectorAll('section.tab:not([hidden])').length"), 1)
            self.assertEqual(self.ask("document.querySelector('[aria-selected=true]').dataset.tab"), tab)

    def test_names_of_any_kind_are_text(self):
        self.browser.click(*self.place(STRANGE))
        self.assertIn(STRANGE, self.details())
        self.browser.key("3")
        self.assertIn(STRANGE, self.browser.text("#top-table"))
        self.browser.key("2")
        self.assertEqual(self.ask("document.images.length + document.scripts.length"), 1, "the page's own")

    def test_nothing_comes_from_elsewhere(self):
        self.browser.network(False)
        self.addCleanup(self.browser.network, True)
        self.show()
        self.browser.click(*self.place("pausing"))
        self.assertIn("pausing", self.details())
        self.assertEqual(self.ask("performance.getEntriesByType('resource').filter((e) => !e.name.startsWith('data:')).length"), 0)

    def test_run_and_convert_write_the_same_page(self):
        kpytrace("convert", self.folder / "trace.kpt", self.folder / "converted.html")
        self.show("converted.html")
        self.assertEqual(self.browser.text("#title"), "converted.html")
        self.find("outer")
        self.record("def f(): pass\nf()", "run.html")
        self.show("run.html")
        self.find("f")

    def test_view_shows_the_same_page(self):
        view = subprocess.Popen([sys.executable, "-m", "kpytrace", "view", "--no-browser", "--quiet", self.folder / "trace.kpt"],
                                stdout=subprocess.PIPE, text=True, cwd=self.folder)
        try:
            self.browser.open(view.stdout.readline().strip())
            self.browser.frames(3)
            self.browser.click(*self.place("pausing"))
            self.assertIn("pausing", self.details())
        finally:
            view.terminate()
            view.communicate()

    def test_an_empty_trace_is_shown(self):
        self.record("pass", "empty.kpt", "--include", "no.such.module", "--no-c-calls")
        kpytrace("report", self.folder / "empty.kpt", "-o", self.folder / "empty.html")
        self.show("empty.html")
        for key in "w2341":
            self.browser.key(key)
        self.assertEqual(self.tab(), "timeline")

    def test_several_processes_stand_beside_each_other(self):
        time.sleep(0.05)
        self.record("def second(): pass\nsecond()", "second.kpt")
        kpytrace("report", self.folder / "trace.kpt", self.folder / "second.kpt", "-o", self.folder / "two.html")
        self.show("two.html")
        processes = self.ask("[...new Set(kpytrace.model.tracks.map((t) => t.group.process))]")
        self.assertEqual(len(processes), 2)
        headings = self.ask("kpytrace.timeline.bands.filter((b) => b.heading).map((b) => b.heading)")
        self.assertTrue(all(any(process in heading for heading in headings) for process in processes))
        first, second = self.ask("kpytrace.model.sections.map((s) => s.first_ns)")
        track, span = self.find("second")
        self.assertGreaterEqual(self.ask(f"kpytrace.model.tracks[{track}].start[{span}]"), int(second) - int(first))

    def append(self, kind, data, name):
        packed = base64.b64encode(gzip.compress(data)).decode()
        section = f'<script type="text/plain" class="section" data-kind="{kind}" data-pack="gzip">{packed}</script>\n'
        page = (self.folder / "report.html").read_text(encoding="utf-8")
        (self.folder / name).write_text(page + section, encoding="utf-8")
        self.show(name)

    def test_others_append_tracks(self):
        first = int(self.ask("kpytrace.model.sections[0].first_ns"))
        stream = {"group": "GPU 0", "name": "stream 7", "marks": [["launched", 500, {}]],
                  "spans": [["kernel", 1000, 90000, {"grid": [8, 1, 1]}], ["copy", 50000, 120000, None]]}
        used = {"group": "GPU 0", "name": "memory", "values": [[0, 1], [2000, 5]]}
        self.append("tracks", json.dumps({"process": "python", "first_ns": str(first + 1000000),
                                          "tracks": [stream, used]}).encode(), "tracks.html")
        self.assertIn("python · GPU 0", self.ask("kpytrace.timeline.bands.filter((b) => b.heading).map((b) => b.heading)"))
        self.browser.click(*self.place("kernel"))
        self.assertIn("grid[8,1,1]", self.details())
        track, span = self.find("kernel")
        self.assertEqual(self.ask(f"kpytrace.model.tracks[{track}].start[{span}]"), 1001000)
        self.assertEqual(self.ask(f"kpytrace.model.tracks[{track}].rows"), 2, "they overlap")

    def test_a_damaged_section_is_told(self):
        self.append("trace", b"no trace at all", "damaged.html")
        self.assertIn("This report can’t be shown", self.browser.text("#message"))
        self.assertEqual(len(self.browser.problems), 1)
        self.browser.problems.clear()


if __name__ == "__main__":
    main()
