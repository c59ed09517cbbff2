"""Very many calls: the amount of drawing depends on the pixels, not on the calls. bench/tables/report_table.py measures
times."""

from page import Page, main

PROGRAM = """
def a(n): return n
def b(n): return a(n) + a(n)
def deep(n):
    if n: deep(n - 1)
    else:
        for i in range(60): b(i)
for i in range(%d): deep(i %% 25)
"""
CALLS = 400_000


class Many(Page):
    program, options = PROGRAM % (CALLS // 190), ()

    def test_frames_are_bounded_at_every_zoom(self):
        calls = self.ask("kpytrace.model.sections[0].stats.calls")
        self.assertGreater(calls, CALLS)
        x, y = self.middle()
        self.browser.move(x, y)
        most = self.ask("kpytrace.timeline.view.width * 2 * (kpytrace.timeline.scroller.clientHeight / ROW + 1)")
        frames = self.ask("kpytrace.timeline.frames")
        counts = self.ask("""(async () => { const line = kpytrace.timeline, counts = [];
            for (let i = 0; i < 160; i++) { line.zoom(i < 80 ? 0.85 : 1 / 0.85, line.view.width / 2);
              await new Promise(requestAnimationFrame); counts.push(line.boxes.count); } return counts; })()""")
        self.assertGreaterEqual(self.ask("kpytrace.timeline.frames") - frames, 100, "each was drawn")
        self.assertLess(max(counts), most)
        self.assertLess(max(counts), calls / 10)
        self.assertGreater(min(counts), 0)

    def test_no_call_is_lost_when_it_is_narrow(self):
        """In each row, a pixel is drawn if and only if it contains a call."""
        wrong = self.ask("""(() => { const line = kpytrace.timeline, wrong = [];
            line.fitAll(); line.draw(); const track = kpytrace.model.tracks[0], width = Math.floor(line.view.width);
            for (let row = 0; row < track.rows; row++) {
              const boxes = new Boxes(), drawn = new Uint8Array(width + 2), there = new Uint8Array(width + 2);
              drawRow(boxes, track, row, 0, line.view, line.colors, kpytrace.model.names);
              for (const list of boxes.lists) for (let i = 0; list && i < list.length; i += 4)
                for (let x = Math.floor(list[i]); x < Math.min(Math.ceil(list[i] + list[i + 2]), width); x++) drawn[x] = 1;
              for (let k = track.rowAt[row]; k < track.rowAt[row + 1]; k++) {
                const i = track.rowItems[k];
                there[Math.floor(line.x(track.start[i]))] = 1;
                for (let x = Math.ceil(line.x(track.start[i])); x < line.x(track.end[i]) - 1; x++) there[x] = 1;
              }
              for (let x = 0; x < width; x++) if (there[x] && !drawn[x] && !drawn[x + 1]) wrong.push([row, x]);
              let lone = 0;
              for (let x = 1; x < width; x++) if (drawn[x] && !there[x] && !there[x - 1]) lone++;
              if (lone > 2) wrong.push([row, 'drawn where nothing is', lone]);
            }
            return wrong.slice(0, 5); })()""")
        self.assertEqual(wrong, [])

    def test_search_and_the_other_tabs_bear_it(self):
        self.browser.key("/")
        self.browser.type("a")
        self.browser.key("Enter")
        self.assertIn("1 of", self.browser.text("#found"))
        self.browser.press("[data-tab=flame]")
        self.browser.frames()
        self.assertLess(self.ask("kpytrace.flame.boxes.count"), 20000)
        self.browser.press("[data-tab=top]")
        self.assertIn("functions", self.browser.text("#top-text"))


if __name__ == "__main__":
    main()
