"""The flame graph, the table of functions, the notes and the memory."""

from page import MEMORY_PROGRAM, Page, kpytrace, main


class Views(Page):

    @classmethod
    def make(cls):
        super().make()
        script = cls.folder / "memory.py"
        script.write_text(MEMORY_PROGRAM, encoding="utf-8")
        kpytrace("run", "--memory", cls.folder / "memory.tables.json", script)
        kpytrace("report", cls.folder / "trace.kpt", "--memory", cls.folder / "memory.tables.json", "-o",
                 cls.folder / "both.html")
        kpytrace("report", cls.folder / "memory.tables.json", "-o", cls.folder / "memory.html")

    def frame(self, flame, label):
        """The middle of a frame of a flame graph, on the screen."""
        return self.ask(f"""(() => {{ const flame = kpytrace.{flame}, box = flame.canvas.getBoundingClientRect();
            const [, row, from, to] = flame.frames.find(([node]) => flame.nameOf(node).label.startsWith('{label}'));
            return [box.x + (from + to) / 2 * box.width, box.y + 4 + (row + 0.5) * ROW - flame.scroller.scrollTop]; }})()""")

    def shown_width(self, flame, label):
        return self.ask(f"""(() => {{ const [, , from, to] = kpytrace.{flame}.frames
            .find(([node]) => kpytrace.{flame}.nameOf(node).label.startsWith('{label}')); return to - from; }})()""")

    # --- the flame graph ---

    def test_stacks_have_the_time_of_their_calls(self):
        self.browser.press("[data-tab=flame]")
        self.assertEqual(self.tab(), "flame")
        total = self.ask("kpytrace.flame.tree.total[0]")
        roots = self.ask("""kpytrace.model.tracks.reduce((sum, t) => { for (let i = 0; i < t.count; i++)
            if (t.parent[i] < 0) sum += t.end[i] - t.start[i]; return sum; }, 0)""")
        self.assertAlmostEqual(total, roots, delta=1)
        x, y = self.frame("flame", "outer")
        self.assertNotEqual(self.pixel("#flame-rows canvas", x, y + 6), self.pixel("#flame-rows canvas", 3, 700))

    def test_a_click_gives_a_frame_the_whole_width(self):
        self.browser.press("[data-tab=flame]")
        self.assertLess(self.shown_width("flame", "outer"), 1)
        self.browser.click(*self.frame("flame", "outer"))
        self.assertEqual(self.shown_width("flame", "outer"), 1)
        self.assertIn("program.py:5", self.details())
        self.browser.press("#flame-reset")
        self.assertLess(self.shown_width("flame", "outer"), 1)
        self.browser.click(*self.frame("flame", "outer"))
        self.browser.key("f")
        self.assertLess(self.shown_width("flame", "outer"), 1)
        self.browser.click(*self.frame("flame", "outer"))
        self.browser.click(*self.frame("flame", "all"))
        self.assertLess(self.shown_width("flame", "outer"), 1)
        self.assertIsNone(self.details())

    def test_the_flame_graph_is_of_one_thread_or_all(self):
        self.browser.press("[data-tab=flame]")
        labels = "kpytrace.flame.frames.map(([node]) => kpytrace.flame.nameOf(node).label)"
        self.assertIn("main", self.ask(labels))
        worker = " ".join(self.ask("kpytrace.model.tracks[1].name").split())
        self.browser.choose("#flame-scope", worker)
        self.assertNotIn("main", self.ask(labels))
        self.assertIn("work", self.ask(labels))
        self.browser.press("[data-tab=top]")
        self.assertEqual(self.ask("document.getElementById('top-scope').selectedOptions[0].text"), worker)
        self.assertNotIn("down", self.browser.text("#top-table"))

    def test_a_frame_has_a_tip(self):
        self.browser.press("[data-tab=flame]")
        self.browser.move(*self.frame("flame", "outer"))
        self.browser.frames()
        self.assertIn("outer", self.browser.text("#tip"))
        self.assertIn("%", self.browser.text("#tip"))

    # --- the table ---

    def column(self, number):
        return self.ask(f"[...document.querySelectorAll('#top-table tbody td:nth-child({number})')].map((c) => c.textContent)")

    def test_the_table_says_what_kpytrace_top_says(self):
        self.browser.press("[data-tab=top]")
        lines = kpytrace("top", "-q", "--all", "--full-paths", "--count", "0", self.folder / "trace.kpt").stdout.decode().splitlines()[1:]
        rows = self.ask("""kpytrace.top.rows.filter((row) => kpytrace.model.names[row.name].kind !== 'span')
            .map((row) => [kpytrace.model.names[row.name].text, row.calls, showTime(row.total)])""")
        expected = {(line.split("  ")[-1].strip(), int(line.split()[0].replace(",", ""))) for line in lines if "(" in line}
        for name, calls in expected:
            self.assertIn([name, calls], [row[:2] for row in rows])
        down = next(row for row in self.ask("kpytrace.top.rows.map((r) => [kpytrace.model.names[r.name].label, r.calls, r.total, r.longest])")
                    if row[0] == "down")
        self.assertEqual(down[1], 31)
        self.assertEqual(down[2], down[3], "of calls within calls only the outermost counts")

    def test_a_click_on_a_column_sorts(self):
        self.browser.press("[data-tab=top]")
        for column in ("calls", "total", "own", "mean", "longest"):
            self.browser.press(f"[data-column={column}]")
            values = self.ask(f"kpytrace.top.shown.map((row) => row.{column})")
            self.assertEqual(values, sorted(values, reverse=True), column)
            self.browser.press(f"[data-column={column}]")
            values = self.ask(f"kpytrace.top.shown.map((row) => row.{column})")
            self.assertEqual(values, sorted(values), column)
        self.browser.press("[data-column=name]")
        self.assertEqual(self.ask("document.querySelector('th[aria-sort]').textContent"), "Function ↑")

    def test_a_click_on_a_row_shows_the_longest_call(self):
        self.browser.press("[data-tab=top]")
        row = self.ask("""(() => { const rows = [...document.querySelectorAll('#top-table tbody tr')];
            const row = rows.find((r) => r.textContent.includes('pausing')); row.scrollIntoView({block: 'center'});
            const box = row.getBoundingClientRect(); return [box.x + 300, box.y + 8]; })()""")
        self.browser.click(*row)
        self.assertEqual(self.tab(), "timeline")
        self.assertEqual(self.selected(), "pausing")
        self.assertEqual(self.browser.text("#found"), "4 found")
        longest = self.ask("(() => { const {track, span} = kpytrace.timeline.selected; return track.end[span] - track.start[span]; })()")
        self.assertEqual(longest, self.ask("kpytrace.top.rows.find((r) => kpytrace.model.names[r.name].label === 'pausing').longest"))

    def test_more_rows_come_when_they_are_asked_for(self):
        self.browser.press("[data-tab=top]")
        self.ask("kpytrace.top.most = 10; kpytrace.top.draw(); kpytrace.tellTop()")
        self.assertEqual(len(self.column(1)), 10)
        self.browser.press("#more")
        self.assertEqual(len(self.column(1)), self.ask("kpytrace.top.rows.length"))
        self.assertFalse(self.browser.shown("#more"))

    # --- notes ---

    def test_notes_have_the_collections(self):
        self.browser.press("[data-tab=notes]")
        text = self.browser.text("#notes")
        for part in ("trace.kpt", "kpytrace ", "threads", "began before the trace"):
            self.assertIn(part, text)
        self.assertIn("Uncollectable", self.browser.text("#collections"))
        self.browser.press("#collections tr:last-child button")
        self.assertEqual(self.tab(), "timeline")
        self.assertEqual(self.selected(), "Python GC")
        self.assertIn("generation2", self.details())
        self.assertFalse(self.ask("!!document.querySelector('.badge')"))

    def test_what_was_dropped_is_told(self):
        self.record("def f(): pass\nfor i in range(1000): f()", "short.kpt", "--max-events", "100")
        kpytrace("report", self.folder / "short.kpt", "-o", self.folder / "short.html")
        self.show("short.html")
        self.assertTrue(self.browser.shown("[data-tab=notes] .badge"))
        self.browser.press("[data-tab=notes]")
        self.assertIn("events were dropped", self.browser.text("#notes .warn"))

    # --- memory ---

    def test_memory_is_a_tab_beside_a_trace(self):
        self.assertFalse(self.browser.shown("[data-tab=memory]"), "there is none in this one")
        self.show("both.html")
        self.browser.press("[data-tab=memory]")
        self.assertEqual(self.tab(), "memory")
        self.assertGreater(self.shown_width("memory", "drop"), 0.5)
        self.browser.press("[data-tab=timeline]")
        self.assertTrue(self.browser.shown("#rows"))

    def test_memory_alone(self):
        self.show("memory.html")
        self.assertEqual(self.tab(), "memory")
        self.assertEqual(self.ask("[...document.querySelectorAll('#tabs button')].filter((b) => !b.hidden).length"), 1)
        total = self.ask("kpytrace.memory.tree.total[0]")
        lines = kpytrace("memory", "--at", "peak", self.folder / "memory.tables.json").stdout.decode()
        self.assertIn(self.ask(f"showBytes({total})"), lines.splitlines()[0])
        self.assertIn("drop", self.ask("kpytrace.memory.frames.map(([n]) => kpytrace.memory.nameOf(n).label).join()"))

    def test_memory_at_the_peak_and_what_was_not_freed(self):
        self.show("memory.html")
        peak = self.ask("kpytrace.memory.tree.total[0]")
        self.browser.choose("#memory-at", "Not freed at the end")
        left = self.ask("kpytrace.memory.tree.total[0]")
        self.assertLess(left, peak)
        self.assertIn("keep", self.ask("kpytrace.memory.frames.map(([n]) => kpytrace.memory.nameOf(n).label).join()"))
        self.browser.choose("#memory-at", "All allocations")
        self.assertGreaterEqual(self.ask("kpytrace.memory.tree.total[0]"), peak)
        self.browser.choose("#memory-at", "At the peak")
        self.browser.choose("#memory-device", self.ask("kpytrace.tables.devices[0]"))
        self.assertLess(self.ask("kpytrace.memory.tree.total[0]"), peak)

    def test_a_click_on_memory_zooms_and_tells(self):
        self.show("memory.html")
        self.browser.click(*self.frame("memory", "drop"))
        self.assertEqual(self.shown_width("memory", "drop"), 1)
        self.assertIn("memory.py:4", self.details())
        self.browser.press("#memory-reset")
        self.assertLess(self.shown_width("memory", "drop"), 1)
        self.browser.key("/")
        self.browser.type("drop")
        self.assertTrue(self.ask("kpytrace.memory.is.includes(1)"))


if __name__ == "__main__":
    main()
