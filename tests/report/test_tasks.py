"""Tasks of asyncio: each has a track with its resumes, its awaits, and links to its calls. Also greenlets."""

import importlib.util
import os
import sys
import unittest

from page import Page, kpytrace, main

if os.environ.get("KPT_GREENLETS"):
    sys.path.append(os.environ["KPT_GREENLETS"])

PROGRAM = """
import asyncio
async def read(n):
    await asyncio.sleep(.002)
async def answer(n):
    for i in range(3):
        await read(i)
async def serve():
    await asyncio.gather(*(asyncio.create_task(answer(i), name=f"client-{i}") for i in range(4)))
asyncio.run(serve())
"""
MANY = """
import asyncio
async def short(): pass
async def longer():
    for i in range(3): await asyncio.sleep(0)
    sum(range(200000))
async def run():
    for i in range(12):
        await asyncio.gather(*(asyncio.create_task(short()) for _ in range(1000)))
    await asyncio.create_task(longer(), name="the last")
asyncio.run(run())
"""


GREENLETS = f"""
import sys
sys.path += {sys.path[-1:]}
import greenlet, threading
def work(n):
    greenlet.getcurrent().parent.switch()
def make(count):
    for i in range(count):
        one = greenlet.greenlet(work)
        one.switch(i)
        one.switch()
make(3)
thread = threading.Thread(target=make, args=(300 if "many" in sys.argv else 2,), name="other")
thread.start()
thread.join()
"""


class Tasks(Page):
    program, options = PROGRAM, ()

    def track(self, name):
        return f"kpytrace.model.tracks.find((track) => track.name === '{name}')"

    def click_resume(self, name, number):
        """Clicks on a resume, on the task's track."""
        self.ask(f"kpytrace.timeline.reveal({{track: {self.track(name)}, span: {number}}}, true)")
        self.browser.frames()
        index = self.ask(f"kpytrace.model.tracks.indexOf({self.track(name)})")
        self.browser.click(*self.spot(index, number))

    def place_selected(self):
        """Returns the group, the track and the span that are selected."""
        return self.ask("""(() => { const {track, span} = kpytrace.timeline.selected;
            return [track.group.name, track.name, span]; })()""")

    def test_each_has_a_track_with_its_resumes(self):
        names = self.ask("kpytrace.model.tracks.filter((t) => t.group.name === 'Tasks').map((t) => t.name)")
        self.assertEqual(names[0].split()[1], "serve")
        # asyncio.run itself makes two, at its end.
        self.assertEqual(sorted(names[1:-2]), [f"client-{i} answer" for i in range(4)])
        self.assertIn("Tasks", self.ask("kpytrace.timeline.bands.map((b) => b.heading)"))
        self.assertEqual(self.ask(f"{self.track('client-2 answer')}.count"), 4, "its start, and three times after a sleep")
        wrong = self.ask("""kpytrace.model.tracks.filter((t) => t.isTask).flatMap((t) => [...t.nameOf.keys()].filter((i) => {
            const [thread, call] = callOf(kpytrace.model, t, i);
            return thread.start[call] !== t.start[i] || thread.end[call] !== t.end[i] ||
                !t.name.endsWith(kpytrace.model.names[thread.nameOf[call]].label); }))""")
        self.assertEqual(wrong, [])

    def test_a_resume_tells_whose_it_is_and_what_was_awaited(self):
        self.click_resume("client-1 answer", 1)
        self.assertEqual(self.place_selected(), ["Tasks", "client-1 answer", 1])
        self.assertIn("resume ofclient-1 answer: 2 of 4", self.details())
        self.assertIn("had waited", self.details())
        for what in ("had awaited", "then awaits"):
            self.assertIn(f"{what}answer:7 › read:4", self.details())
        self.click_resume("client-1 answer", 0)
        self.assertNotIn("had awaited", self.details())
        self.click_resume("client-1 answer", 3)
        self.assertNotIn("then awaits", self.details())

    def test_g_goes_to_the_call_and_back(self):
        self.click_resume("client-3 answer", 2)
        start = self.ask("kpytrace.timeline.selected.track.start[2]")
        self.browser.key("g")
        group, track, span = self.place_selected()
        self.assertEqual((group, self.selected()), ("Threads", "answer"))
        self.assertEqual(self.ask(f"kpytrace.timeline.selected.track.start[{span}]"), start)
        self.assertIn("resume ofclient-3 answer: 3 of 4", self.details())
        self.browser.key("n")
        self.assertIn("client-3 answer: 4 of 4", self.details())
        self.assertEqual(self.place_selected()[:2], [group, track])
        self.browser.key("n")
        self.assertIn("client-3 answer: 4 of 4", self.details(), "it is the last")
        self.browser.key("g")
        self.assertEqual(self.place_selected(), ["Tasks", "client-3 answer", 3])
        for number in (2, 1, 0, 0):
            self.browser.key("p")
            self.assertEqual(self.place_selected()[2], number)

    def test_buttons_go_there_too(self):
        self.click_resume("client-0 answer", 0)
        buttons = self.ask("[...document.querySelectorAll('#details dt')].map((t) => t.textContent)")
        self.assertIn("the call (g)", buttons)
        self.browser.press("#details dd button")
        self.assertEqual(self.place_selected()[0], "Threads")

    def test_an_arrow_is_drawn(self):
        self.click_resume("client-0 answer", 1)
        self.ask("kpytrace.timeline.fitAll()")
        self.browser.frames()
        drawn = self.ask("""(() => { const line = kpytrace.timeline, count = (links) => {
              line.links = links; line.draw();
              const {width, height} = line.canvas, copy = document.createElement('canvas');
              copy.width = width; copy.height = height;
              const context = copy.getContext('2d', {willReadFrequently: true});
              context.drawImage(line.canvas, 0, 0);
              return context.getImageData(0, 0, width, height).data.join(); };
            const links = line.links; return [links.length, count(links) === count([])]; })()""")
        self.assertEqual(drawn, [3, False])

    def test_time_is_not_counted_twice(self):
        self.browser.press("[data-tab=top]")
        calls = self.ask("kpytrace.top.rows.filter((r) => kpytrace.model.names[r.name].label === 'answer').map((r) => r.calls)")
        self.assertEqual(calls, [16])
        self.browser.press("[data-tab=flame]")
        roots = self.ask("""kpytrace.model.tracks.reduce((sum, t) => { for (let i = 0; i < t.count && !t.isTask; i++)
            if (t.parent[i] < 0) sum += t.end[i] - t.start[i]; return sum; }, 0)""")
        self.assertAlmostEqual(self.ask("kpytrace.flame.tree.total[0]"), roots, delta=1)
        self.assertEqual(self.ask("[...document.getElementById('top-scope').options].some((o) => o.text.includes('client'))"), False)

    def test_the_search_finds_a_task(self):
        self.browser.key("/")
        self.browser.type("client-2")
        self.assertEqual(self.browser.text("#found"), "4 found")
        self.browser.key("Enter")
        self.assertEqual(self.place_selected(), ["Tasks", "client-2 answer", 0])
        self.browser.key("Escape")
        self.browser.key("/")
        self.browser.type("answer")
        self.assertEqual(self.browser.text("#found"), "16 found", "calls, and not once more as resumes")

    def test_a_heading_closes_its_group(self):
        height = self.ask("kpytrace.timeline.height")
        x, y = self.ask("""(() => { const line = kpytrace.timeline, box = line.canvas.getBoundingClientRect();
            const band = line.bands.find((b) => b.heading === 'Tasks'); line.scroller.scrollTop = band.y - 100;
            return [box.x + 40, box.y + band.y - line.scroller.scrollTop + GROUP / 2]; })()""")
        self.browser.frames()
        self.browser.click(x, y)
        self.assertLess(self.ask("kpytrace.timeline.height"), height)
        self.assertIn("7 tracks", self.ask("kpytrace.timeline.headingText(kpytrace.timeline.bands.find((b) => b.heading === 'Tasks'))"))
        self.browser.click(*self.place("read"))
        self.browser.key("/")
        self.browser.type("client-1")
        self.browser.key("Enter")
        self.assertEqual(self.ask("kpytrace.timeline.height"), height, "what is gone to is opened")


class ManyTasks(Page):
    program, options = MANY, ()

    def test_those_that_ran_longest_have_a_track(self):
        self.assertEqual(self.ask("kpytrace.model.tasks.length"), 12004)
        self.assertEqual(self.ask("kpytrace.model.tracks.filter((t) => t.isTask).length"), 10000)
        headings = self.ask("kpytrace.timeline.bands.filter((b) => b.heading).map((b) => b.heading)")
        self.assertIn("Tasks: 10,000 of 12,004, those that ran longest", headings)
        self.assertTrue(self.ask("kpytrace.model.tracks.some((t) => t.name === 'the last longer')"), "though it came last")
        self.browser.press("[data-tab=notes]")
        self.assertIn("2,004 tasks of asyncio", self.browser.text("#notes"))
        warnings = self.ask("[...document.querySelectorAll('#notes .warn')].map((line) => line.textContent)")
        self.assertFalse([text for text in warnings if "tasks" in text], "no call is missing")

    def test_all_else_is_in_sight_and_the_page_bears_it(self):
        self.assertLess(self.ask("kpytrace.timeline.height"), 3000, "the group is closed at first")
        number = self.ask("""(() => { const [track] = kpytrace.model.tracks, {task} = track.more;
            return task.findIndex((t) => t && !kpytrace.model.tasks[t - 1].track); })()""")
        self.ask(f"kpytrace.showSpan({{track: kpytrace.model.tracks[0], span: {number}}})")
        self.assertIn("which has no track, since there are 12,004 tasks", self.details())
        self.browser.key("/")
        self.browser.type("the last")
        self.browser.key("Enter")
        self.assertEqual(self.selected(), "longer")
        self.assertGreater(self.ask("kpytrace.timeline.height"), 400000)
        self.assertLess(self.ask("kpytrace.timeline.boxes.count"), 20000)


@unittest.skipUnless(importlib.util.find_spec("greenlet"), "there is no greenlet")
class Greenlets(Page):
    program, options = GREENLETS, ()

    def groups(self):
        return self.ask("kpytrace.model.tracks.map((track) => [track.group.name, track.name.split('  ')[0]])")

    def test_they_stand_behind_the_threads(self):
        self.assertEqual(self.groups(), [["Threads", "MainThread"], ["Threads", "other"],
                                         *(["Greenlets", f"greenlet-{i}"] for i in range(1, 6))])
        self.browser.click(*self.place("work", 1))
        self.assertIn("trackGreenlets: greenlet-2", self.details())

    def test_many_of_them_do_not_hide_the_threads(self):
        script = self.folder / "program.py"
        kpytrace("run", "-o", self.folder / "many.html", script, "many")
        self.show("many.html")
        self.assertEqual(len(self.groups()), 305)
        bands = self.ask("kpytrace.timeline.bands.map((band) => band.heading || band.track.group.name)")
        self.assertEqual(bands, ["Threads", "Threads", "Threads", "Greenlets"])


if __name__ == "__main__":
    main()
