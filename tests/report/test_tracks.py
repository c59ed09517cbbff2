"""Which tracks the timeline opens with: the busiest first, short-lived threads of one kind in shared lanes, and
idle threads behind a heading."""

import subprocess
import sys

from page import Page, kpytrace, main

BATCHES, CLIENTS, WORKERS = 90, 3, 4
PROGRAM = f"""
import sys, threading
import kpytrace
def leaf(n): return n
def render(n):
    for i in range(n): leaf(i)
def serve(n): render(n)
def idle(end): end.wait()
def worker(gate, n):
    gate.wait()
    render(n)
    gate.wait()
end = threading.Event()
sleeper = threading.Thread(target=idle, args=(end,), name="sleeper")
sleeper.start()
kpytrace.start(sys.argv[1])
gate = threading.Barrier({WORKERS})
workers = [threading.Thread(target=worker, args=(gate, 20 * i), name=f"worker-{{i}}") for i in range({WORKERS})]
for thread in workers: thread.start()
for thread in workers: thread.join()
for i in range({BATCHES}):
    batch = [threading.Thread(target=serve, args=(5,)) for _ in range({CLIENTS})]
    for thread in batch: thread.start()
    for thread in batch: thread.join()
kpytrace.stop()
end.set()
"""
CROWD = 230
MANY = f"""
import threading
def leaf(n): return n
def work(gate, n):
    gate.wait()
    for i in range(n): leaf(i)
    gate.wait()
gate = threading.Barrier({CROWD})
threads = [threading.Thread(target=work, args=(gate, i)) for i in range({CROWD})]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


class Tracks(Page):

    @classmethod
    def make(cls):
        script = cls.folder / "program.py"
        script.write_text(PROGRAM, encoding="utf-8")
        subprocess.run([sys.executable, script, cls.folder / "trace.kpt"], check=True, timeout=120, cwd=cls.folder)
        kpytrace("report", cls.folder / "trace.kpt", "-o", cls.folder / "report.html")
        cls.record(MANY, "many.kpt")
        kpytrace("report", cls.folder / "many.kpt", "-o", cls.folder / "many.html")

    def lanes(self):
        """Returns the name of each visible lane, without the thread's number, and its number of threads."""
        lanes = self.ask("kpytrace.timeline.bands.filter((b) => b.lane).map((b) => [b.lane.name, b.lane.tracks.length])")
        return [(name.split("  ")[0] if count == 1 else name, count) for name, count in lanes]

    def click_heading(self, text):
        self.browser.click(*self.ask(f"""(() => {{ const line = kpytrace.timeline;
            const band = line.bands.find((b) => !b.lane && line.headingText(b).includes('{text}'));
            line.scroller.scrollTop = band.y - 100; const box = line.canvas.getBoundingClientRect();
            return [box.x + 30, box.y + band.y - line.scroller.scrollTop + GROUP / 2]; }})()"""))

    def test_short_lived_threads_share_lanes(self):
        pooled = [(name, count) for name, count in self.lanes() if name.startswith("serve")]
        self.assertEqual(sum(count for _, count in pooled), BATCHES * CLIENTS)
        self.assertLessEqual(len(pooled), 2 * CLIENTS)
        overlaps = self.ask("""kpytrace.timeline.bands.filter((b) => b.lane).some(({lane: {tracks}}) =>
            tracks.some((track, i) => i && track.first < tracks[i - 1].last))""")
        self.assertFalse(overlaps)
        # Those that run beside each other have a lane each, under their own names.
        self.assertEqual({name for name, _ in self.lanes() if name.startswith("worker")}, {f"worker-{i}" for i in range(WORKERS)})

    def test_a_call_in_a_lane_is_drawn_and_found(self):
        track, span = self.find("serve", BATCHES)
        self.ask(f"kpytrace.timeline.reveal({{track: kpytrace.model.tracks[{track}], span: {span}}}, true)")
        self.browser.frames()
        x, y = self.spot(track, span)
        self.assertNotEqual(self.pixel("#rows-canvas", x, y + 6), self.pixel("#rows-canvas", 3, y + 6))
        self.browser.click(x, y)
        self.assertEqual(self.ask("[kpytrace.model.tracks.indexOf(kpytrace.timeline.selected.track), kpytrace.timeline.selected.span]"),
                         [track, span])
        name = self.ask(f"kpytrace.model.tracks[{track}].name")
        self.browser.move(x, y + 1)
        self.browser.frames()
        self.assertIn(name, self.browser.text("#tip"), "whose call it is")

    def test_a_lane_of_many_threads_is_drawn_once_for_a_pixel(self):
        self.assertLess(self.ask("""(() => { const lane = new Lane(Array.from({length: 100000}, (_, i) =>
            ({first: i * 10, last: i * 10 + 9, marks: [], values: null, busy: 1, count: 0, more: {}})), 'x', 'x');
            return [...lane.within(0, 1000000, 1000)].length; })()"""), 1002)

    def test_threads_that_run_beside_each_other_share_none(self):
        lanes = """((together, times) => lanesOfThreads(Array.from({length: together * times}, (_, i) => (
            {name: `t-${i}  ${i}`, tid: i, first: Math.floor(i / together) * 10, last: Math.floor(i / together) * 10 + 9, marks: [],
             values: null, busy: 1, count: 0, more: {}}))).length)"""
        self.assertEqual(self.ask(f"[{lanes}(10, 1), {lanes}(10, 2), {lanes}(3, 40), {lanes}(500, 3), {lanes}(501, 3)]"), [10, 10, 3, 500, 1503])

    def test_an_idle_thread_is_behind_a_heading(self):
        self.assertNotIn("sleeper", [name for name, _ in self.lanes()])
        self.assertIn("▸ 1 idle", self.ask("kpytrace.timeline.bands.filter((b) => b.more).map((b) => kpytrace.timeline.headingText(b))"))
        self.click_heading("1 idle")
        self.assertIn("sleeper", [name for name, _ in self.lanes()])
        self.click_heading("1 idle")
        self.assertNotIn("sleeper", [name for name, _ in self.lanes()])
        self.browser.key("/")
        self.browser.type("idle")
        self.browser.key("Enter")
        self.assertIn("sleeper", [name for name, _ in self.lanes()], "what is gone to is shown")

    def test_the_busiest_are_first_and_other_orders_can_be_chosen(self):
        names = [name for name, _ in self.lanes()]
        self.assertTrue(names[0].startswith(("serve", "MainThread")))
        workers = [name for name in names if name.startswith("worker")]
        self.assertEqual(workers, [f"worker-{i}" for i in reversed(range(WORKERS))])
        self.browser.choose("#order", "By name")
        self.assertEqual([name for name, _ in self.lanes()][0], "MainThread")
        self.browser.choose("#order", "In order of start")
        starts = self.ask("kpytrace.timeline.bands.filter((b) => b.lane).map((b) => b.lane.first)")
        self.assertEqual(starts, sorted(starts))

    def test_a_pool_is_a_choice_of_the_flame_graph(self):
        self.browser.press("[data-tab=flame]")
        self.browser.choose("#flame-scope", f"serve {BATCHES * CLIENTS} threads")
        calls = self.ask("kpytrace.flame.tree.calls.reduce((a, b) => a + b)")
        self.assertEqual(calls, self.ask("""kpytrace.model.tracks.filter((t) => t.name.includes('(serve)'))
            .reduce((sum, t) => sum + t.count, 0)"""))

    def test_of_a_crowd_the_busiest_are_in_sight(self):
        self.show("many.html")
        lanes = self.lanes()
        self.assertEqual(len(lanes), 30)
        counts = self.ask("kpytrace.timeline.bands.filter((b) => b.lane).map((b) => b.lane.busy)")
        self.assertEqual(counts, sorted(counts, reverse=True))
        self.assertGreater(min(counts), CROWD - 40)
        self.assertTrue(self.ask("kpytrace.timeline.boxes.count"), "the view is not empty")
        self.click_heading(f"{CROWD + 1 - 30} less busy")
        self.assertEqual(len(self.lanes()), CROWD + 1)


if __name__ == "__main__":
    main()
