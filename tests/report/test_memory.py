"""The memory over time: the curve, the flame graph at a moment that is clicked, temporary allocations, and pages that `run
--memory` and recordings write."""

from page import Page, kpytrace, main

PROGRAM = """
import time
def make(n): return [bytes(1000) for _ in range(n)]
def keep(): return make(300)
def drop():
    held = make(4000)
    time.sleep(.2)
    return len(held)
def temporary():
    for i in range(5000): str(i) + "x"
kept = keep(); time.sleep(.2); drop(); time.sleep(.2); temporary()
"""


class Memory(Page):

    @classmethod
    def make(cls):
        script = cls.folder / "memory.py"
        script.write_text(PROGRAM, encoding="utf-8")
        kpytrace("run", "--memory", cls.folder / "report.html", script)
        kpytrace("run", "--memory", cls.folder / "aggregated.html", "--memory-aggregate", script)
        kpytrace("run", "--memory", cls.folder / "sampled.html", "--memory-sample", "10kB", script)
        kpytrace("run", "--memory", cls.folder / "memory.kpt", script)
        kpytrace("report", cls.folder / "memory.kpt", "-o", cls.folder / "of_a_file.html")

    def labels(self):
        return self.ask("kpytrace.memory.frames.map(([n]) => kpytrace.memory.nameOf(n).label).join()")

    def click_at(self, share):
        """Clicks the curve at a share of its width."""
        x, y, width = self.ask("""(() => { const box = document.querySelector('#memory-curve').getBoundingClientRect();
            return [box.x, box.y + 60, box.width]; })()""")
        self.browser.click(x + share * width, y)

    def share_of(self, when):
        """Returns where the curve has a time in the middle of one of the program's pauses: before, in or after drop()."""
        return self.ask(f"""(() => {{
            const {{last, most, tables: {{series: {{step_ns}}}}, duration}} = kpytrace.memoryTab.curve;
            const half = most.reduce((a, b) => Math.max(a, b)) / 2;
            const begin = most.findIndex((v) => v > half) * step_ns, end = last.findLastIndex((v) => v > half) * step_ns;
            return {{before: begin - 1e8, in: end - 1e8, after: end + 1e8}}['{when}'] / duration; }})()""")

    def test_a_click_on_the_curve_shows_a_moment(self):
        for name in ("report.html", "of_a_file.html"):
            self.show(name)
            self.assertEqual(self.tab(), "memory")
            total = "kpytrace.memory.tree.total[0]"
            peak = self.ask(total)
            self.assertIn("drop", self.labels())
            self.click_at(self.share_of("before"))
            before = self.ask(total)
            self.assertIn("keep", self.labels())
            self.assertNotIn("drop", self.labels())
            self.assertLess(before, peak / 2)
            self.assertIn("after the begin", self.ask("document.getElementById('memory-at').selectedOptions[0].text"))
            self.click_at(self.share_of("in"))
            self.assertIn("drop", self.labels())
            self.assertAlmostEqual(self.ask(total), peak, delta=peak * .02)
            self.click_at(self.share_of("after"))
            self.assertNotIn("drop", self.labels())
            self.browser.choose("#memory-at", "At the peak")
            self.assertEqual(self.ask(total), peak)

    def test_a_moment_has_the_bytes_of_the_curve(self):
        """The sums of all moments are the levels that the curve has at their time."""
        differences = self.ask("""kpytrace.tables.moments.map(([time], i) => {
            const {bytes} = memoryAmounts(kpytrace.tables, 'moment', i), {last, most, step_ns} = kpytrace.tables.series;
            const sum = bytes.reduce((a, b) => a + b, 0), at = Math.min(Math.floor((time - 1) / step_ns), last[0].length - 1);
            return Math.max(sum - most[0][at], 0); })""")
        self.assertGreater(len(differences), 20)
        self.assertEqual(set(differences), {0})
        end = self.ask("memoryAmounts(kpytrace.tables, 'moment', kpytrace.tables.moments.length - 1).bytes.reduce((a, b) => a + b, 0)")
        self.assertEqual(end, self.ask("memoryAmounts(kpytrace.tables, 'end').bytes.reduce((a, b) => a + b, 0)"))

    def test_the_peak_is_marked(self):
        self.click_at(self.share_of("after"))
        self.assertNotIn("drop", self.labels())
        self.click_at(self.ask("kpytrace.memoryTab.curve.peak / kpytrace.memoryTab.curve.duration"))
        self.assertEqual(self.ask("document.getElementById('memory-at').value"), "peak")
        self.assertEqual(self.ask("kpytrace.memoryTab.curve.highest"), self.ask("kpytrace.memory.tree.total[0]"))
        box = self.ask("(() => { const b = document.querySelector('#memory-curve').getBoundingClientRect(); return [b.x, b.y]; })()")
        x = box[0] + self.ask("kpytrace.memoryTab.curve.x(kpytrace.memoryTab.curve.peak)")
        self.assertNotEqual(self.pixel("#memory-curve", x, box[1] + 30), self.pixel("#memory-curve", box[0] + 2, box[1] + 30))

    def test_arrow_keys_choose_the_next_moment(self):
        self.click_at(self.share_of("in"))
        before = self.ask("kpytrace.memoryTab.curve.moment")
        self.ask("document.getElementById('memory-curve').focus()")
        self.browser.key("ArrowRight")
        self.assertEqual(self.ask("kpytrace.memoryTab.curve.moment"), before + 1)
        self.browser.key("ArrowLeft")
        self.assertEqual(self.ask("kpytrace.memoryTab.curve.moment"), before)

    def test_temporary_allocations(self):
        self.browser.choose("#memory-at", "Temporary allocations")
        self.assertIn("temporary", self.labels())
        self.assertIn("freed before their thread allocated 2 more", self.browser.text("#memory-text"))
        self.show("sampled.html")
        self.assertNotIn("Temporary", self.browser.text("#memory-at"))

    def test_a_device_has_a_curve_of_its_own(self):
        all_bytes = self.ask("kpytrace.memoryTab.curve.highest")
        self.browser.choose("#memory-device", "python mem")
        self.assertLess(self.ask("kpytrace.memoryTab.curve.highest"), all_bytes)
        self.click_at(self.share_of("in"))
        self.browser.choose("#memory-device", "numpy")
        self.assertEqual(self.ask("kpytrace.memory.tree.total[0]"), 0)

    def test_an_aggregated_recording_has_no_moments(self):
        self.show("aggregated.html")
        peak = self.ask("kpytrace.memory.tree.total[0]")
        self.assertIn("drop", self.labels())
        self.assertTrue(self.browser.shown("#memory-curve"))
        self.click_at(self.share_of("after"))
        self.assertEqual(self.ask("kpytrace.memory.tree.total[0]"), peak)
        self.browser.choose("#memory-at", "Temporary allocations")
        self.assertIn("temporary", self.labels())


if __name__ == "__main__":
    main()
