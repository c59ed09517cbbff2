"""The summary: findings in words, with links to their stretches, as `kpytrace explain` says them."""

import json
import os
import pathlib
import subprocess
import sys

from page import STRANGE, Page, kpytrace, main

CUPTI, CUDA = os.environ.get("KPT_STAND_IN_CUPTI"), os.environ.get("KPT_STAND_IN_CUDA")
GPU = pathlib.Path(__file__).parents[1] / "fixtures" / "cupti"
GAP = f"""
import sys, time
sys.path.insert(0, {str(GPU)!r})
import kpytrace, played
launch = played.launcher({CUPTI!r}, {CUDA!r}, "gemm", 7)
def load(): time.sleep(.1)
def train(): launch()
trace = kpytrace.start(sys.argv[1], gpu=True)
for i in range(20): train()
load()
for i in range(20): train()
assert trace.stop().kernels == 40
"""
FAULTS = f"""
import asyncio, threading, time
lock, started = threading.Lock(), threading.Semaphore(0)
def update():
    lock.acquire()
    time.sleep(.02)
    lock.release()
def work():
    started.release()
    update()
def locks():
    lock.acquire()
    threads = [threading.Thread(target=work, name={STRANGE!r}) for i in range(4)]
    for t in threads: t.start()
    for t in threads: started.acquire()
    time.sleep(.1)
    lock.release()
    for t in threads: t.join()
async def answer():
    time.sleep(.2)
async def main():
    await asyncio.gather(answer(), asyncio.sleep(0))
locks()
asyncio.run(main())
"""


class Summary(Page):
    program, options = FAULTS, ()

    def setUp(self):
        super().setUp()
        self.browser.press("[data-tab=summary]")

    def cards(self):
        return self.ask("[...document.querySelectorAll('#summary .finding')].map((card) => [card.dataset.kind, card.innerText])")

    def follow(self, selector):
        """Presses a link of the tab."""
        self.ask(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        self.browser.frames()
        self.browser.press(selector)
        self.browser.frames(3)
        self.assertEqual(self.tab(), "timeline")

    def duration(self):
        return self.ask("(() => { const {track, span} = kpytrace.timeline.selected; return track.end[span] - track.start[span]; })()")

    def explained(self):
        return json.loads(kpytrace("explain", "--json", self.folder / "trace.kpt").stdout)

    def test_it_is_the_first_tab_and_has_the_number_of_findings(self):
        self.assertEqual(self.ask("document.querySelector('#tabs button:not([hidden])').dataset.tab"), "summary")
        self.assertEqual(self.ask("kpytrace.available[0]"), "summary")
        self.assertEqual(self.browser.text("[data-tab=summary] .count"), str(len(self.explained()["findings"])))
        self.browser.key("1")
        self.assertEqual(self.tab(), "timeline")
        self.browser.key("0")
        self.assertEqual(self.tab(), "summary")

    def test_it_says_what_explain_says(self):
        found = self.explained()
        kinds = [kind for kind, _ in self.cards()]
        self.assertEqual(kinds, [finding["kind"] for finding in found["findings"]])
        self.assertIn("lock", kinds)
        self.assertIn("blocked_loop", kinds)
        for (_, text), finding in zip(self.cards(), found["findings"]):
            self.assertIn(finding["title"], text)
            self.assertIn(finding["text"], text)
        text = self.browser.text("#summary")
        for row in found["own"] + [row["in"] for row in found["waits"]]:
            self.assertIn(row["short"], text)
        for part in [row["module"] for row in found["modules"]] + found["limits"]:
            self.assertIn(part, text)

    def test_a_finding_leads_to_its_stretch(self):
        finding = next(finding for finding in self.explained()["findings"] if finding["kind"] == "lock")
        self.follow(".finding[data-kind=lock] button")
        self.assertIn("acquire", self.selected())
        self.assertEqual(self.duration(), finding["places"][0]["ns"])
        self.assertIn("update", self.details())
        self.browser.press("[data-tab=summary]")
        self.follow(".finding[data-kind=blocked_loop] button")
        self.assertEqual(self.selected(), "answer")
        self.assertGreaterEqual(self.duration(), 200_000_000)
        self.assertFalse(self.ask("kpytrace.timeline.selected.track.isTask"))

    def test_an_own_time_leads_to_the_call_with_the_most(self):
        found = self.explained()["own"][0]
        self.follow("#summary table button")
        self.assertEqual(self.ask("(() => { const s = kpytrace.timeline.selected; return kpytrace.model.names[s.track.nameOf[s.span]].text; })()"),
                         found["name"])
        own = self.ask("(() => { const {track, span} = kpytrace.timeline.selected; return track.own[span]; })()")
        self.assertEqual(own, found["longest"]["ns"])

    def test_names_are_text(self):
        self.assertEqual(self.ask("document.querySelectorAll('#summary img, #summary script').length"), 0)
        self.assertIn("alert(1)", self.browser.text(".finding[data-kind=lock] button"))

    def test_a_stretch_that_is_no_call_is_a_range(self):
        self.ask("kpytrace.showPlace(stretchOf(kpytrace.model, 0, {at_ns: 1000, ns: 5000, tid: 0}))")
        self.browser.frames(3)
        self.assertEqual(self.tab(), "timeline")
        start, end = self.view()
        self.assertLessEqual(start, 1000)
        self.assertGreaterEqual(end, 6000)
        self.assertLess(end - start, 20_000)

    def test_several_processes_have_their_own_findings(self):
        kpytrace("report", self.folder / "trace.kpt", self.folder / "trace.kpt", "-o", self.folder / "two.html")
        self.show("two.html")
        self.browser.press("[data-tab=summary]")
        count = len(self.explained()["findings"])
        self.assertEqual(len(self.cards()), 2 * count)
        heads = self.ask("[...document.querySelectorAll('#summary h2')].map((head) => head.textContent)")
        process = self.ask("`${kpytrace.model.sections[0].process} ${kpytrace.model.sections[0].pid}`")
        self.assertEqual(heads.count(process), 2)
        last = self.ask("(() => { [...document.querySelectorAll('.finding[data-kind=lock] button')].pop().click(); return kpytrace.timeline.selected.track.group.owner; })()")
        self.assertEqual(last, 1)

    def test_nothing_stands_out_in_nothing(self):
        self.record("pass", "short.kpt", "--this-thread")
        kpytrace("report", self.folder / "short.kpt", "-o", self.folder / "short.html")
        self.show("short.html")
        self.browser.press("[data-tab=summary]")
        if not self.cards():  # a machine that is busy can make a finding true
            self.assertIn("Nothing stands out", self.browser.text(".no-findings"))
            self.assertFalse(self.ask("!!document.querySelector('#tabs .count')"))
        self.assertIn("Largest own times", self.browser.text("#summary"))

    def test_a_narrow_window_needs_no_scrolling_to_the_side(self):
        self.browser.resize(420, 800)
        self.addCleanup(self.browser.resize, 1280, 800)
        self.browser.frames(3)
        self.assertLessEqual(*self.ask("(() => { const box = document.getElementById('summary'); return [box.scrollWidth, box.clientWidth]; })()"))


class GpuGaps(Page):

    @classmethod
    def make(cls):
        subprocess.run([sys.executable, "-c", GAP, str(cls.folder / "gap.kpt")], check=True, timeout=120, cwd=cls.folder)
        kpytrace("report", cls.folder / "gap.kpt", "-o", cls.folder / "report.html")

    def test_a_gap_leads_to_its_time_and_names_the_line_that_ended_it(self):
        finding, = (finding for finding in json.loads(kpytrace("explain", "--json", self.folder / "gap.kpt").stdout)["findings"]
                    if finding["kind"] == "gpu_gap")
        self.assertRegex(finding["text"], r"until gemm, launched by .*played\.py:\d+ ")
        self.assertGreaterEqual(finding["evidence"]["ns"], 100_000_000)
        self.browser.press("[data-tab=summary]")
        self.assertIn(finding["text"], self.browser.text(".finding[data-kind=gpu_gap]"))
        self.browser.press(".finding[data-kind=gpu_gap] button")
        self.browser.frames(3)
        self.assertEqual(self.tab(), "timeline")
        start, end = self.ask("kpytrace.timeline.range")
        self.assertEqual(end - start, finding["places"][0]["ns"])
        pause, = self.ask("""kpytrace.model.tracks.flatMap((track) => [...track.nameOf.keys()].filter((i) =>
            kpytrace.model.names[track.nameOf[i]].label === 'load').map((i) => [[track.start[i], track.end[i]]]))""")
        self.assertLessEqual(start, pause[0][0])
        self.assertGreaterEqual(end, pause[0][1])


if not CUPTI:
    del GpuGaps  # the GPU tracer was not built

if __name__ == "__main__":
    main()
