"""Links: calls and the kernels that they launched, with the stand-ins of CUPTI and CUDA, and flows of the program.
Arrows, buttons and keys lead from one end to the other."""

import os
import pathlib
import sys

from page import Page, kpytrace, main

CUPTI, CUDA = os.environ.get("KPT_STAND_IN_CUPTI"), os.environ.get("KPT_STAND_IN_CUDA")
GPU = pathlib.Path(__file__).parents[1] / "fixtures" / "cupti"
PROGRAM = f"""
import sys
sys.path.insert(0, {str(GPU)!r})
import kpytrace, played
first = played.launcher({CUPTI!r}, {CUDA!r}, "first_kernel", 7)
second = played.launcher({CUPTI!r}, {CUDA!r}, "second_kernel", 9)
def forward(): first()
def backward(): second(); first()
def step(): forward(); backward()
trace = kpytrace.start(sys.argv[1], gpu=True)
step()
step()
assert trace.stop().kernels == 6
"""
FLOWS = """
import kpytrace
def produce(): kpytrace.mark("made", flow=5)
def hand_on():
    with kpytrace.span("handing on", flow=5): pass
def consume(): kpytrace.mark("used", flow=5)
def alone(): kpytrace.mark("alone", flow=6)
produce(); hand_on(); consume(); alone()
"""


class Kernels(Page):

    @classmethod
    def make(cls):
        cls.run_program("one.kpt")
        kpytrace("report", cls.folder / "one.kpt", "-o", cls.folder / "report.html")

    @classmethod
    def run_program(cls, name):
        import subprocess

        subprocess.run([sys.executable, "-c", PROGRAM, str(cls.folder / name)], check=True, timeout=120, cwd=cls.folder)

    def place_selected(self):
        return self.ask("""(() => { const {track, span} = kpytrace.timeline.selected;
            return [track.group.name, kpytrace.model.names[track.nameOf[span]].label]; })()""")

    def rows(self):
        """Returns the rows of the panel, as pairs of label and text."""
        return self.ask("""[...document.querySelectorAll('#details dt')].map((t) => [t.textContent, t.nextSibling.textContent])""")

    def test_from_a_kernel_to_the_call_and_back(self):
        self.browser.click(*self.place("second_kernel"))
        rows = dict(self.rows())
        self.assertIn("played.py", rows["called by (g)"])
        self.assertEqual(rows["launched by"], "cuLaunchKernel")
        kernel = self.ask("kpytrace.timeline.selected.track.start[kpytrace.timeline.selected.span]")
        self.browser.key("g")
        group, label = self.place_selected()
        self.assertEqual(group, "Threads")
        self.assertRegex(label, r"^(launcher\.<locals>\.)?<lambda>$")  # qualified from Python 3.11 on
        self.assertIn("backward", dict(self.rows())["called by"])
        self.browser.key("g")
        self.assertEqual(self.place_selected(), ["streams", "second_kernel"])
        self.assertEqual(self.ask("kpytrace.timeline.selected.track.start[kpytrace.timeline.selected.span]"), kernel)

    def test_a_call_has_all_that_it_launched(self):
        self.browser.click(*self.place("backward"))
        launched = [text for what, text in self.rows() if what.startswith("started on the GPU")]
        self.assertEqual(launched, ["second_kernel", "first_kernel"])
        self.assertEqual(self.ask("kpytrace.timeline.links.length"), 2)
        self.browser.click(*self.place("step"))
        self.assertEqual(len([what for what, _ in self.rows() if what.startswith("started on the GPU")]), 3)
        self.browser.key("g")
        self.assertEqual(self.place_selected(), ["streams", "first_kernel"])

    def test_calls_of_cuda_are_between_them(self):
        self.browser.click(*self.place("cuLaunchKernel"))
        self.assertEqual(self.place_selected()[0], "CUDA calls")
        rows = dict(self.rows())
        self.assertEqual(rows["started on the GPU (g)"], "first_kernel")
        self.assertIn("called by", rows)
        self.browser.key("g")
        self.assertEqual(self.place_selected(), ["streams", "first_kernel"])

    def test_buttons_go_there(self):
        self.browser.click(*self.place("first_kernel"))
        self.browser.press("#details dd button")
        self.assertEqual(self.place_selected()[0], "Threads")

    def test_nothing_is_selected(self):
        for key in "gnp":
            self.browser.key(key)
        self.assertIsNone(self.selected())

    def test_processes_are_not_mixed_up(self):
        """Both processes number their calls from 1."""
        self.run_program("two.kpt")
        kpytrace("report", self.folder / "one.kpt", self.folder / "two.kpt", "-o", self.folder / "both.html")
        self.show("both.html")
        ends = self.ask("""kpytrace.links.index() || [...kpytrace.links.gpu.values()].map((ends) =>
            [ends.length, new Set(ends.map((end) => end.track.group.owner)).size])""")
        self.assertEqual(ends, [[2, 1]] * 12)
        owners = self.ask("""kpytrace.model.tracks.filter((t) => t.flow && !t.isCalls).flatMap((track) => [...track.nameOf.keys()]
            .map((span) => [track.group.owner, ...kpytrace.links.of({track, span}).map((l) => l.to.track.group.owner)]))""")
        self.assertEqual(sorted(map(tuple, owners)), [(0, 0, 0)] * 6 + [(1, 1, 1)] * 6)


class Flows(Page):
    program, options = FLOWS, ()

    def test_n_and_p_go_along_a_flow(self):
        self.browser.click(*self.place("handing on"))
        self.assertIn("flow from (p)made", self.details())
        self.assertIn("flow to (n)used", self.details())
        self.assertEqual(self.ask("kpytrace.timeline.links.length"), 2)
        for key, name in (("n", "used"), ("n", "used"), ("p", "handing on"), ("p", "made"), ("p", "made"),
                          ("g", "handing on"), ("g", "used"), ("g", "handing on")):
            self.browser.key(key)
            self.assertEqual(self.selected(), name)

    def test_one_end_alone_has_no_link(self):
        self.ask("""kpytrace.model.tracks.forEach((track) => track.marks.forEach((mark) => {
            if (kpytrace.model.note(mark.note).name === 'alone') kpytrace.showSpan({track, mark}); }))""")
        self.assertEqual(self.selected(), "alone")
        self.assertIn("flow6", self.details())
        self.assertEqual(self.ask("kpytrace.timeline.links"), [])


if not CUPTI:
    del Kernels  # the GPU tracer was not built

if __name__ == "__main__":
    main()
