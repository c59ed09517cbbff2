"""Operators and annotations: their layer, their table, their forward functions, and steps with their parts."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import hostile
from page import Page, kpytrace, main

CUPTI, CUDA = os.environ.get("KPT_STAND_IN_CUPTI"), os.environ.get("KPT_STAND_IN_CUDA")
HERE = pathlib.Path(__file__).parent
HEAD = f"""
import gc, sys, threading, time
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent / "fixtures" / "cupti")!r}]
import hostile, kpytrace, played_operators
"""
PROGRAM = HEAD + f"""
import played
kernel = played.launcher({CUPTI!r}, {CUDA!r}, "a_kernel", 7) if {bool(CUPTI)} else lambda: None
trace = kpytrace.start(sys.argv[1], gpu={bool(CUPTI)}, gc=True,
                       exclude=played_operators.EXCLUDE)
ops = played_operators.Played(trace)
def pausing(): time.sleep(.002)
def inside(): pausing()
def loss(n):
    with ops.operator("aten::linear", sequence=n):
        with ops.operator("aten::addmm"):
            inside()
            kernel()
def backward(n, main):
    with ops.operator("engine: AddmmBackward0"):
        with ops.operator("AddmmBackward0", sequence=n, forward_thread=main):
            with ops.operator("aten::mm"):
                pausing()
                kernel()
    with ops.operator("LostBackward0", sequence=999, forward_thread=main): pass
def train(n):
    loss(n)
    thread = threading.Thread(target=backward, args=(n, ops.thread()), name="autograd")
    thread.start()
    thread.join()
    gc.collect()
    if n == 2: time.sleep(.2)
def run():
    for n in range(4):
        with ops.annotation(f"ProfilerStep#{{n + 5}}"):
            train(n)
run()
trace.stop()
"""
HOSTILE = HEAD + """
trace = kpytrace.start(sys.argv[1], exclude=played_operators.EXCLUDE)
ops = played_operators.Played(trace)
for n, name in enumerate(hostile.NAMES):
    name = name.replace("\\0", "0")
    with ops.annotation(name), ops.operator(name): pass
    with ops.annotation("Optimizer.step#" + name): pass
trace.stop()
"""
SPANS = """
import kpytrace
def f(): pass
for _ in range(3):
    with kpytrace.span("step"): f()
"""


def reload(page):
    """Loads the page again, by the address that it has given itself."""
    page.ask("window.kpytrace = undefined, location.reload()")
    page.browser.wait("!!window.kpytrace")


class Played(Page):
    """Shows the trace of a program that starts it itself."""

    @classmethod
    def make(cls):
        path = cls.folder / "trace.kpt"
        subprocess.run([sys.executable, "-c", cls.program, str(path)], check=True, timeout=120, cwd=cls.folder)
        kpytrace("report", path, "-o", cls.folder / "report.html")

    def rows(self):
        """Returns the rows of the panel, by label."""
        return dict(self.ask("[...document.querySelectorAll('#details dt')].map((t) => [t.textContent, t.nextSibling.textContent])"))

    def select(self, label, number=0):
        track, span = self.find(label, number)
        self.ask(f"kpytrace.showSpan({{track: kpytrace.model.tracks[{track}], span: {span}}})")

    def parents(self):
        """Returns the labels of the rows above an inner call in the timeline, with its own."""
        track, span = self.find("inside")
        return self.ask(f"""(() => {{ const t = kpytrace.model.tracks[{track}]; let i = {span}, labels = [];
            for (; i >= 0; i = t.shownParent[i]) labels.unshift(kpytrace.model.names[t.nameOf[i]].label);
            return [t.rowOf[{span}] + 1 === labels.length, labels]; }})()""")


class Operators(Played):
    program = PROGRAM

    # --- the layer ---

    def test_names_have_their_kind(self):
        kinds = dict(self.ask("kpytrace.model.names.map(({label, kind}) => [label, kind])"))
        self.assertEqual([kinds[name] for name in ("loss", "aten::linear", "AddmmBackward0", "ProfilerStep#5")],
                         ["python", "operator", "operator", "annotation"])
        self.select("aten::linear")
        self.assertEqual(self.rows()["kind"], "operator")
        self.select("ProfilerStep#5")
        self.assertEqual(self.rows()["kind"], "annotation")
        self.select("loss")
        self.assertNotIn("kind", self.rows())

    def test_the_layer_can_be_switched_off(self):
        whole = ["run", "ProfilerStep#5", "train", "loss", "aten::linear", "aten::addmm", "inside"]
        self.assertEqual([self.parents()[0], [name for name in self.parents()[1] if name in whole]], [True, whole])
        x, y = self.place("aten::linear")
        drawn = self.pixel("#rows-canvas", x, y)
        self.browser.press("#operators-switch")
        self.browser.frames(3)
        self.assertEqual(self.ask("document.getElementById('operators-switch').getAttribute('aria-pressed')"), "false")
        shown = [name for name in whole if not name.startswith("aten")]
        self.assertEqual([self.parents()[0], [name for name in self.parents()[1] if name in whole]], [True, shown])
        self.assertNotEqual(self.pixel("#rows-canvas", x, y), drawn)
        hit = self.ask(f"(() => {{ const box = kpytrace.timeline.canvas.getBoundingClientRect(); "
                       f"const {{track, span}} = kpytrace.timeline.hit({x} - box.x, {y} - box.y); "
                       "return track ? kpytrace.model.names[track.nameOf[span]].kind : null; })()")
        self.assertNotEqual(hit, "operator")
        self.browser.key("o")
        self.browser.frames(3)
        self.assertEqual(self.pixel("#rows-canvas", x, y), drawn)

    def test_the_flame_graph_and_the_table_follow(self):
        labels = "kpytrace.flame.tree.name.slice(1).map((name) => kpytrace.model.names[name].kind)"
        self.browser.press("[data-tab=flame]")
        total = self.ask("kpytrace.flame.tree.total[0]")
        self.assertIn("operator", self.ask(labels))
        self.browser.key("o")
        kinds = self.ask(labels)
        self.assertNotIn("operator", kinds)
        self.assertIn("annotation", kinds)
        self.assertLessEqual(self.ask("kpytrace.flame.tree.total[0]"), total)
        own = "kpytrace.top.rows.find((row) => kpytrace.model.names[row.name].label === 'loss').own"
        kinds = "kpytrace.top.rows.map((row) => kpytrace.model.names[row.name].kind)"
        self.browser.press("[data-tab=top]")
        self.assertNotIn("operator", self.ask(kinds))
        without = self.ask(own)
        self.browser.key("o")
        self.assertIn("operator", self.ask(kinds))
        self.assertLess(self.ask(own), without, "a call has the time of its operators while they are hidden")

    def test_own_times_add_up_in_both_cases(self):
        code = """(() => { const of = kpytrace.model.tracks.filter((t) => t.group.name === THREADS && t.tid);
            const own = topRows(kpytrace.model, of).reduce((sum, row) => sum + row.own, 0);
            const roots = of.reduce((sum, t) => { for (let i = 0; i < t.count; i++) if (t.shownParent[i] < 0
                && !t.hidden?.[t.nameOf[i]]) sum += t.end[i] - t.start[i]; return sum; }, 0);
            return [own, roots]; })()"""
        for _ in range(2):
            own, roots = self.ask(code)
            self.assertAlmostEqual(own, roots, delta=1)
            self.browser.key("o")

    def test_the_address_keeps_the_choice(self):
        self.browser.press("#operators-switch")
        self.assertEqual(self.ask("location.hash"), "#operators=off")
        reload(self)
        self.assertTrue(self.ask("kpytrace.model.hidesOperators"))
        self.assertEqual(self.browser.text("#operators-switch"), "operators off")
        self.browser.press("#operators-switch")
        self.assertFalse(self.ask("kpytrace.model.hidesOperators"))
        self.assertEqual(self.ask("location.hash"), "")

    def test_what_is_shown_on_demand_switches_the_layer_on(self):
        self.browser.key("o")
        self.browser.press("#search")
        self.browser.type("aten::mm")
        self.assertEqual(self.browser.text("#found"), "0 found", "the search finds what is shown")
        self.browser.key("Escape")
        self.select("aten::mm")
        self.assertFalse(self.ask("kpytrace.model.hidesOperators"))
        self.assertEqual(self.selected(), "aten::mm")
        self.browser.key("o")
        self.assertIsNone(self.selected(), "what is hidden is not selected")

    # --- forward functions ---

    def test_backward_work_has_the_function_of_its_forward_operator(self):
        for label in ("AddmmBackward0", "aten::mm", "engine: AddmmBackward0"):
            self.select(label)
            self.assertRegex(self.rows()["forward at"], r"\(\d+\): loss$", label)
        self.select("LostBackward0")
        self.assertEqual(self.rows()["forward at"], "(not recorded)")
        for label in ("aten::linear", "ProfilerStep#5", "loss"):
            self.select(label)
            self.assertNotIn("forward at", self.rows())

    @unittest.skipUnless(CUPTI, "the GPU tracer was not built")
    def test_kernels_have_it_too(self):
        forwards = self.ask("""kpytrace.model.tracks.filter((t) => t.group.name === STREAMS).flatMap((track) =>
            [...track.nameOf.keys()].map((i) => JSON.parse('{' + kpytrace.model.note(track.get('note', i)).args + '}')['forward at'] ?? ''))""")
        self.assertEqual(len(forwards), 8)
        self.assertEqual(len([text for text in forwards if text.endswith(": loss")]), 4)
        self.assertEqual(forwards.count(""), 4)

    def test_a_caller_is_one_that_is_shown(self):
        self.select("inside")
        self.assertEqual(self.rows()["called by"], "aten::addmm")
        self.browser.key("o")
        self.select("inside")
        self.assertRegex(self.rows()["called by"], r": loss$")

    # --- the table ---

    def test_the_table_says_what_kpytrace_top_says(self):
        self.browser.press("[data-tab=operators]")
        expected = json.loads(kpytrace("top", "--ops", "--json", "--count", "0", self.folder / "trace.kpt").stdout)
        rows = {row[0]: row[1:] for row in self.ask("""kpytrace.operators.rows.map((row) =>
            [kpytrace.model.names[row.name].text, row.calls, row.own, row.total, row.longest, row.gpuOwn, row.gpu])""")}
        self.assertEqual(len(rows), len(expected))
        for row in expected:
            values = [row["calls"], row["own_ns"], row["total_ns"], row["max_ns"], row.get("gpu_own_ns", 0),
                      row.get("gpu_total_ns", 0)]
            self.assertEqual([round(value) for value in rows[row["name"]]], values, row["name"])

    def test_the_table_sorts_filters_and_leads_to_the_timeline(self):
        self.browser.press("[data-tab=operators]")
        for column in ("calls", "total", "longest", "mean", *(["gpu", "gpuOwn"] if CUPTI else [])):
            self.browser.press(f"#operators-table [data-column={column}]")
            values = self.ask(f"kpytrace.operators.shown.map((row) => row.{column})")
            self.assertEqual(values, sorted(values, reverse=True), column)
        self.assertIn("annotation", self.browser.text("#operators-table"))
        self.browser.press("#search")
        self.browser.type("addmm")
        self.assertEqual(self.browser.text("#operators-text"), "3 operators and annotations")
        self.browser.press("#operators-table tbody tr")
        self.assertEqual(self.tab(), "timeline")
        self.assertIn("ddmm", self.selected())

    def test_it_is_of_one_thread_or_all(self):
        self.browser.press("[data-tab=operators]")
        self.assertIn("ProfilerStep#5", self.browser.text("#operators-table"))
        names = self.ask("kpytrace.model.tracks.map((track) => track.name)")
        self.browser.choose("#operators-scope", " ".join(next(n for n in names if n.startswith("autograd")).split()))
        text = self.browser.text("#operators-table")
        self.assertIn("aten::mm", text)
        self.assertNotIn("ProfilerStep#5", text)

    # --- steps ---

    def steps(self):
        self.browser.press("[data-tab=steps]")
        return self.ask("""kpytrace.steps.rows.map(({number, took, operators, python, collections, rest, elsewhere, gpu, note}) =>
            ({number, took, operators, python, collections, rest, elsewhere, gpu, note}))""")

    def test_steps_have_parts_that_add_up(self):
        steps = self.steps()
        self.assertEqual([step["number"] for step in steps], [5, 6, 7, 8])
        linear = self.ask("""kpytrace.model.tracks.flatMap((t) => [...t.nameOf.keys()].filter((i) =>
            kpytrace.model.names[t.nameOf[i]].label === 'aten::linear').map((i) => t.end[i] - t.start[i]))""")
        engine = self.ask("""kpytrace.model.tracks.flatMap((t) => [...t.nameOf.keys()].filter((i) =>
            /^(engine|Lost)/.test(kpytrace.model.names[t.nameOf[i]].label)).map((i) => t.end[i] - t.start[i]))""")
        for step, operator in zip(steps, linear):
            parts = step["operators"] + step["python"] + step["collections"] + step["rest"]
            self.assertAlmostEqual(parts, step["took"], delta=1)
            self.assertAlmostEqual(step["operators"], operator, delta=1)
            self.assertGreater(step["collections"], 0)
            self.assertEqual(step["rest"], 0)
            if CUPTI:
                self.assertGreater(step["gpu"], 0)
        self.assertAlmostEqual(sum(step["elsewhere"] for step in steps), sum(engine), delta=4)

    def test_the_median_and_the_slowest_are_flagged(self):
        notes = [step["note"] for step in self.steps()]
        self.assertRegex(notes[2], r"^slowest, \d+\.\d\d × the median$")
        self.assertEqual(notes.count("median"), 1)
        self.assertIn("4 steps, median", self.browser.text("#steps-text"))
        self.assertIn("(step 7)", self.browser.text("#steps-text"))
        widths = self.ask("[...document.querySelectorAll('#steps-table .parts')].map((bar) => bar.getBoundingClientRect().width)")
        self.assertEqual(widths.index(max(widths)), 2)
        self.browser.press("#steps-table [data-column=took]")
        self.assertIn("slowest", self.ask("document.querySelector('#steps-table tbody tr').textContent"))

    def test_a_click_fits_the_step_into_the_timeline(self):
        self.steps()
        self.browser.press("#steps-table tbody tr:nth-child(3)")
        self.assertEqual(self.tab(), "timeline")
        start, end = self.ask("[kpytrace.model.steps[2].start, kpytrace.model.steps[2].end]")
        self.assertEqual(self.ask("kpytrace.timeline.range"), [start, end])
        self.assertAlmostEqual(self.width(), (end - start) * 1.04, delta=2)

    def test_keys_select_the_tabs(self):
        for key, tab in zip("123456", ("timeline", "flame", "top", "operators", "steps", "notes")):
            self.browser.key(key)
            self.assertEqual(self.tab(), tab)


class WithoutOperators(Page):
    program, options = SPANS, ()

    def test_spans_named_step_are_steps(self):
        self.assertEqual(self.ask("kpytrace.available"), ["summary", "timeline", "flame", "top", "steps", "notes"])
        self.browser.press("[data-tab=steps]")
        self.assertEqual(self.ask("kpytrace.steps.rows.map((row) => [row.number, row.step.name])"),
                         [[0, "step"], [1, "step"], [2, "step"]])
        for column in ("Operators", "GPU busy", "Collections"):
            self.assertNotIn(column, self.browser.text("#steps-table thead"))

    def test_there_is_no_layer(self):
        self.assertFalse(self.browser.shown("#operators-switch"))
        self.browser.key("o")
        self.assertFalse(self.ask("kpytrace.model.hidesOperators"))
        self.ask("location.hash = 'operators=off'")
        reload(self)
        self.assertFalse(self.ask("kpytrace.model.hidesOperators"))

    def test_a_section_of_an_older_version_is_shown(self):
        """It says nothing about operators and steps."""
        self.assertEqual(self.ask("""(() => {
            const {operators, annotations, forwards, steps, ...json} = kpytrace.model.sections[0];
            Object.assign(json, {names: [[0, 'f', '', 0]], tracks: [{name: 'T', tid: 1, id: 0, spans: 1, start: 0}], notes: [], loose: []});
            const model = new Model(), text = new TextEncoder().encode(JSON.stringify(json));
            const section = new TraceSection(model, Uint8Array.from([3, 0, 1, 0, 80, 0, ...text]), '');
            section.owner = 0;
            section.decode(0);
            model.finish();
            return [model.kinds, model.steps.length, model.tracks[0].count, model.tracks[0].end[0]]; })()"""), [None, 0, 1, 10])


class Hostile(Played):
    program = HOSTILE

    def test_names_are_text(self):
        names = [hostile.visible(name.replace("\0", "0")) for name in hostile.NAMES]
        for tab in ("operators", "steps", "flame", "top", "timeline"):
            self.browser.press(f"[data-tab={tab}]")
            self.browser.frames()
        shown = {(text, kind) for text, kind in self.ask("kpytrace.model.names.map(({text, kind}) => [text, kind])")}
        for name in names:
            self.assertIn((name, "operator"), shown)
            self.assertIn((name, "annotation"), shown)
        self.assertIsNone(self.ask("window.hacked ?? null"))
        self.assertEqual([address for address in self.browser.requests if not address.startswith("file:")], [])
        self.browser.press("[data-tab=operators]")
        text = self.ask("[...document.querySelectorAll('#operators-table td:last-child')].map((cell) => cell.textContent)")
        for name in names:
            self.assertTrue(any(name in cell for cell in text), name)

    def test_steps_of_hostile_optimizers(self):
        """Each name is another optimizer, and the first one is the clock."""
        steps = self.ask("kpytrace.model.steps.map(({name, flags}) => [name, flags])")
        self.assertEqual(steps, [["Optimizer.step#" + hostile.visible(hostile.NAMES[0]), 1]])
        self.browser.press("[data-tab=steps]")
        self.assertIn("began before the trace", self.browser.text("#steps-table"))


if __name__ == "__main__":
    main()
