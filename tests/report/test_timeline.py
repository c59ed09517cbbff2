"""The timeline: each key, each gesture, and the drawing."""

from browser import CTRL, SHIFT
from page import Page, main


class Timeline(Page):

    def test_every_call_is_there_and_drawn(self):
        calls = self.ask("kpytrace.model.sections[0].stats.calls")
        spans = self.ask("kpytrace.model.tracks.reduce((sum, track) => sum + track.count, 0)")
        self.assertEqual(spans, calls + 1, "all calls, and the span")
        x, y = self.place("outer")
        self.assertNotEqual(self.pixel("#rows-canvas", x, y - 5), self.pixel("#rows-canvas", x, 700))
        names = self.ask("kpytrace.model.tracks.map((track) => track.name.split('  ')[0])")
        self.assertEqual(names, ["MainThread", "worker", "queue"])

    def test_calls_nest(self):
        track, span = self.find("down", 5)
        self.assertEqual(self.ask(f"""(() => {{ const t = kpytrace.model.tracks[{track}]; let i = {span}, names = [];
            for (; i >= 0; i = t.parent[i]) names.push(kpytrace.model.names[t.nameOf[i]].label);
            return names.slice(4, 9); }})()"""), ["down", "down", "first part", "main", "<module>"])

    def test_w_and_s_zoom_where_the_pointer_is(self):
        x, y = self.middle()
        self.browser.move(x - 300, y)
        before = self.width()
        at = self.ask(f"kpytrace.timeline.time({x - 300})")
        self.browser.key("w")
        self.assertLess(self.width(), before)
        self.assertAlmostEqual(self.ask(f"kpytrace.timeline.time({x - 300})"), at, delta=before / 1000)
        zoomed = self.width()
        self.browser.key("s")
        self.assertGreater(self.width(), zoomed)

    def test_a_key_that_is_held_goes_on(self):
        self.browser.hold("w")
        self.browser.frames(4)
        after_some = self.width()
        self.browser.frames(10)
        after_more = self.width()
        self.browser.release("w")
        self.browser.frames(3)
        self.assertLess(after_more, after_some)
        rest = self.width()
        self.browser.frames(5)
        self.assertEqual(self.width(), rest)

    def test_a_and_d_and_the_arrows_go_left_and_right(self):
        self.place("pausing")
        for right, left in (("d", "a"), ("ArrowRight", "ArrowLeft")):
            before = self.view()
            self.browser.key(right)
            moved = self.view()
            self.assertGreater(moved[0], before[0])
            self.assertAlmostEqual(moved[1] - moved[0], before[1] - before[0], delta=1)
            self.browser.key(left)
            self.assertLess(self.view()[0], moved[0])

    def test_arrows_scroll(self):
        self.browser.key("ArrowDown")
        moved = self.ask("kpytrace.timeline.scroller.scrollTop")
        self.assertGreater(moved, 0)
        self.browser.key("ArrowUp")
        self.assertLess(self.ask("kpytrace.timeline.scroller.scrollTop"), moved)

    def test_the_view_stays_within_the_trace(self):
        least, most = self.ask("kpytrace.timeline.bounds")
        for key in "sad":
            self.browser.hold(key)
            self.browser.frames(10)
            self.browser.release(key)
            start, end = self.view()
            self.assertGreaterEqual(start, least - 1)
            self.assertLessEqual(end, most + 1)
        for _ in range(300):
            self.ask("kpytrace.timeline.zoom(0.5, 100)")
        self.assertGreaterEqual(self.width(), 19)

    def test_the_wheel_scrolls_zooms_and_goes_sideways(self):
        x, y = self.middle()
        before, at = self.width(), self.ask(f"kpytrace.timeline.time({x})")
        self.browser.wheel(x, y, down=-300, modifiers=CTRL)
        self.assertLess(self.width(), before)
        self.assertAlmostEqual(self.ask(f"kpytrace.timeline.time({x})"), at, delta=before / 100)
        start = self.view()[0]
        self.browser.wheel(x, y, down=200, modifiers=SHIFT)
        self.assertGreater(self.view()[0], start)
        start = self.view()[0]
        self.browser.wheel(x, y, across=-100)
        self.assertLess(self.view()[0], start)
        view = self.view()
        self.browser.wheel(x, y, down=150)
        self.browser.wait("kpytrace.timeline.scroller.scrollTop > 0")
        self.assertEqual(self.view(), view)

    def test_a_wheel_that_counts_in_lines_zooms_as_far(self):
        before = self.width()
        self.ask("""kpytrace.timeline.canvas.dispatchEvent(new WheelEvent('wheel',
            {deltaMode: 1, deltaY: -3, ctrlKey: true, cancelable: true}))""")
        self.assertLess(self.width(), before * 0.9)

    def test_a_drag_moves(self):
        self.place("pausing")
        x, y = self.middle()
        start = self.view()[0]
        self.browser.drag((x, y), (x - 200, y))
        self.assertGreater(self.view()[0], start)
        self.assertIsNone(self.selected(), "no click")

    def test_a_click_selects_and_tells(self):
        x, y = self.place("pausing")
        self.browser.click(x, y)
        self.assertEqual(self.selected(), "pausing")
        text = self.details()
        for part in ("pausing", "duration", "own time", "program.py:4", "MainThread", "called by"):
            self.assertIn(part, text)
        self.browser.press("#details dd button")
        self.assertEqual(self.selected(), "outer")
        self.assertIn("first part", self.details())
        self.browser.click(x, self.middle()[1] + 200)
        self.assertIsNone(self.selected(), "a click on nothing")
        self.assertIsNone(self.details())

    def test_escape_and_the_cross_close_the_details(self):
        for close in (lambda: self.browser.key("Escape"), lambda: self.browser.press("#close-details")):
            self.browser.click(*self.place("pausing"))
            self.assertIsNotNone(self.details())
            close()
            self.assertIsNone(self.details())
            self.assertIsNone(self.selected())

    def test_what_is_selected_has_a_frame(self):
        x, y = self.place("pausing")
        before = self.pixel("#rows-canvas", x, y - 8)
        self.browser.click(x, y)
        self.assertNotEqual(self.pixel("#rows-canvas", x, y - 8), before)

    def test_f_fits_what_is_selected_or_everything(self):
        self.browser.click(*self.place("pausing"))
        self.ask("kpytrace.timeline.fitAll()")
        whole = self.width()
        self.browser.key("f")
        took = self.ask("(() => { const {track, span} = kpytrace.timeline.selected; return track.end[span] - track.start[span]; })()")
        self.assertAlmostEqual(self.width(), took * 1.2, delta=took / 100)
        self.browser.key("Escape")
        self.browser.key("f")
        self.assertEqual(self.width(), whole)

    def test_a_double_click_fits_the_call(self):
        self.ask("kpytrace.timeline.fitAll()")
        self.browser.frames()
        track, span = self.find("first part")
        self.browser.click(*self.spot(track, span), count=2)
        took = self.ask(f"kpytrace.model.tracks[{track}].end[{span}] - kpytrace.model.tracks[{track}].start[{span}]")
        self.assertAlmostEqual(self.width(), took * 1.2, delta=took / 100)

    def test_a_drag_with_shift_measures(self):
        x, y = self.place("first part")
        self.browser.drag((x - 200, y), (x + 200, y), SHIFT)
        start, end = self.ask("kpytrace.timeline.range")
        self.assertAlmostEqual(end - start, self.width() * 400 / self.ask("kpytrace.timeline.view.width"), delta=2)
        self.assertIn("Range: ", self.details())
        self.assertIn("pausing", self.browser.text("#range-table"))
        own = self.ask(f"topRows(kpytrace.model, kpytrace.model.tracks, {start}, {end}).reduce((sum, row) => sum + row.own, 0)")
        busy = self.ask(f"""kpytrace.model.tracks.reduce((sum, t) => {{ for (let i = 0; i < t.count; i++) if (t.parent[i] < 0)
            sum += Math.max(0, Math.min(t.end[i], {end}) - Math.max(t.start[i], {start})); return sum; }}, 0)""")
        self.assertAlmostEqual(own, busy, delta=1)
        self.browser.key("f")
        self.assertAlmostEqual(self.width(), end - start, delta=1)
        self.browser.press("#range-table tbody tr")
        self.assertIsNotNone(self.selected())
        self.assertIsNone(self.ask("kpytrace.timeline.range"))

    def test_a_click_on_its_heading_folds_a_track(self):
        height = self.ask("kpytrace.timeline.height")
        y = self.ask("kpytrace.timeline.bands.find((band) => band.track).y + HEAD / 2") + self.browser.place("#rows-canvas")[1]
        y -= self.ask("kpytrace.timeline.canvas.getBoundingClientRect().height / 2")
        self.browser.click(60, y)
        self.assertLess(self.ask("kpytrace.timeline.height"), height)
        self.browser.click(60, y)
        self.assertEqual(self.ask("kpytrace.timeline.height"), height)

    def test_the_pointer_has_a_tip(self):
        x, y = self.place("outer")
        self.browser.move(x, y)
        self.browser.frames()
        self.assertTrue(self.browser.shown("#tip"))
        self.assertIn("outer", self.browser.text("#tip"))
        self.browser.move(x, 20)
        self.browser.frames()
        self.assertFalse(self.browser.shown("#tip"))

    def test_marks_and_spans_tell_what_was_given_with_them(self):
        self.browser.click(*self.place("first part"))
        self.assertIn("number3", self.details())
        self.assertIn("text</script>", self.details())
        x, y = self.ask("""(() => { const line = kpytrace.timeline, track = kpytrace.model.tracks[0], mark = track.marks[0];
            line.reveal({track, mark}); const box = line.canvas.getBoundingClientRect();
            return [box.x + line.x(mark.at), box.y + line.marksAt(line.bandOf(track)) + 6 - line.scroller.scrollTop]; })()""")
        self.browser.frames()
        self.browser.click(x, y)
        self.assertEqual(self.selected(), "half way")
        self.assertIn("done0.5", self.details())

    def test_a_counter_is_drawn(self):
        track = "kpytrace.model.tracks.find((t) => t.values)"
        self.assertEqual(self.ask(f"{track}.values.map(([, v]) => v).sort()"), [2, 4])
        self.ask("kpytrace.timeline.scroller.scrollTop = 1e6")
        self.browser.frames()
        x, bottom = self.ask(f"""(() => {{ const line = kpytrace.timeline, track = {track}, band = line.bandOf(track);
            const box = line.canvas.getBoundingClientRect(), y = box.y + band.y - line.scroller.scrollTop;
            return [line.x(track.values[1][0]), y + band.height - 5]; }})()""")
        self.assertNotEqual(self.pixel("#rows-canvas", x + 3, bottom), self.pixel("#rows-canvas", 3, bottom))

    def test_a_generator_tells_where_it_went_on(self):
        self.browser.click(*self.place("numbers", 1))
        self.assertIn("resumed at line", self.details())

    def test_the_minimap_moves_the_view(self):
        box = self.ask("(() => { const b = kpytrace.minimap.canvas.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()")
        y = box[1] + box[3] / 2
        whole = self.ask("kpytrace.model.end")
        self.ask(f"kpytrace.timeline.show({whole} * .4, {whole} * .6)")
        self.browser.frames()
        width = self.width()
        before = self.view()[0]
        left, right = self.ask("kpytrace.minimap.window")
        self.browser.drag(((left + right) / 2, y), ((left + right) / 2 + 100, y))
        self.assertAlmostEqual(self.width(), width, delta=2)
        self.assertGreater(self.view()[0], before)
        left, right = self.ask("kpytrace.minimap.window")
        self.browser.drag((right, y), (right + 60, y))
        self.assertGreater(self.width(), width * 1.1, "its right edge")
        width, end = self.width(), self.view()[1]
        left, right = self.ask("kpytrace.minimap.window")
        self.browser.drag((left, y), (left + 50, y))
        self.assertLess(self.width(), width, "its left edge")
        self.assertAlmostEqual(self.view()[1], end, delta=2)
        self.browser.click(60, y)
        self.assertLess(self.view()[0], whole * 0.05, "a press beside it")

    def test_the_minimap_shows_where_something_ran(self):
        _, y = self.browser.place("#minimap")
        busy = self.ask("kpytrace.model.tracks[0].start[0]")
        x = self.ask(f"kpytrace.timeline.x({busy})")
        self.assertNotEqual(self.pixel("#minimap", x + 2, y - 4), self.pixel("#minimap", 4, y - 4))

    def test_the_canvas_goes_with_the_window(self):
        self.addCleanup(self.browser.resize, 1280, 800)
        self.browser.resize(900, 600, 2)
        self.browser.wait("kpytrace.timeline.canvas.width === 2 * kpytrace.timeline.scroller.clientWidth")
        self.browser.frames()
        self.browser.click(*self.place("outer"))
        self.assertEqual(self.selected(), "outer")


if __name__ == "__main__":
    main()
