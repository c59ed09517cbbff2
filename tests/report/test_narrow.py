"""Narrow windows, fingers, the keyboard alone, and screen readers."""

from browser import SHIFT
from page import Page, main

TABS = ("timeline", "flame", "top", "notes")


class Narrow(Page):

    def setUp(self):
        self.browser.resize(420, 800)
        super().setUp()

    def box(self, selector):
        return self.ask(f"""(() => {{ const box = document.querySelector('{selector}').getBoundingClientRect();
            return [box.left, box.top, box.right, box.bottom]; }})()""")

    # --- 420 px ---

    def test_nothing_is_wider_than_the_window(self):
        for tab in TABS:
            self.browser.press(f"[data-tab={tab}]")
            wide = self.ask("""[...document.querySelectorAll('body *')].filter((e) => e.getClientRects().length &&
                !e.closest('#tabs') && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80))""")
            self.assertEqual(wide, [], tab)

    def test_a_row_of_a_table_has_its_name_on_top_and_all_numbers_in_sight(self):
        self.browser.press("[data-tab=top]")
        boxes = self.ask("""[...document.querySelector('#top-table tbody tr').cells].map((cell) => {
            const box = cell.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom]; })""")
        *numbers, name = boxes
        self.assertGreater(name[2] - name[0], 380)
        for left, top, right, _ in numbers:
            self.assertGreaterEqual(top, name[3] - 1)
            self.assertTrue(0 <= left < right <= 420)
        heads = self.ask("[...document.querySelectorAll('#top-table th')].map((c) => c.getBoundingClientRect().left)")
        self.assertEqual(heads, [box[0] for box in boxes], "each number is below its title")
        self.browser.press("[data-column=calls]")
        self.assertEqual(self.ask("kpytrace.top.key"), "calls")

    def test_the_panel_is_below(self):
        self.browser.click(*self.place("pausing"))
        left, top, right, bottom = self.box("#details")
        self.assertEqual([left, right, bottom], [0, 420, 800])
        self.assertGreaterEqual(top, 400 - 1, "half of the window is left")
        self.assertGreaterEqual(self.box("#rows")[3] - self.box("#rows")[1], 100)

    # --- fingers ---

    def use_fingers(self):
        self.browser.touchscreen(True)
        self.addCleanup(self.browser.touchscreen, False)
        self.assertGreaterEqual(self.box("#theme")[3] - self.box("#theme")[1], 36, "buttons are larger")

    def test_one_finger_moves_and_two_zoom(self):
        self.use_fingers()
        x, y = self.middle()
        self.browser.press("#zoom-in")
        width, (before, _) = self.width(), self.view()
        self.browser.touch([(x + 60 - 10 * i, y) for i in range(8)])
        self.assertAlmostEqual(self.width(), width, delta=1)
        self.assertGreater(self.view()[0], before)
        from_, to = self.view()
        self.browser.touch([(x - 20 - 10 * i, y) for i in range(8)], [(x + 20 + 10 * i, y) for i in range(8)])
        self.assertLess(self.width(), width / 3)
        self.assertTrue(from_ < self.view()[0] and self.view()[1] < to)
        self.browser.touch([(x - 90 + 10 * i, y) for i in range(8)], [(x + 90 - 10 * i, y) for i in range(8)])
        self.assertAlmostEqual(self.width(), width, delta=width / 100)

    def test_a_tap_selects(self):
        self.use_fingers()
        x, y = self.place("pausing")
        self.browser.touch([(x, y)])
        self.assertEqual(self.selected(), "pausing")

    def test_buttons_zoom_and_fit(self):
        width = self.width()
        self.browser.press("#zoom-in")
        self.assertAlmostEqual(self.width(), width / 2, delta=1)
        self.browser.press("#zoom-out")
        self.assertAlmostEqual(self.width(), width, delta=1)
        self.browser.press("#zoom-in")
        self.browser.press("#zoom-fit")
        self.assertAlmostEqual(self.width(), width, delta=1)

    # --- the keyboard ---

    def test_calls_are_selected_by_keys(self):
        self.ask("document.getElementById('rows-canvas').focus()")
        self.browser.key("ArrowDown", SHIFT)
        self.assertIsNotNone(self.selected(), "the first in view")
        track, span = self.find("outer")
        self.ask(f"kpytrace.showSpan({{track: kpytrace.model.tracks[{track}], span: {span}}})")
        for key, label in (("ArrowDown", "pausing"), ("ArrowRight", "pausing"), ("ArrowUp", "outer"), ("ArrowUp", "first part")):
            self.browser.key(key, SHIFT)
            self.assertEqual(self.selected(), label, key)
            self.assertIn(label, self.details())
        self.browser.key("ArrowDown", SHIFT)
        first = self.ask("kpytrace.timeline.selected.span")
        self.browser.key("ArrowRight", SHIFT)
        self.assertGreater(self.ask("kpytrace.timeline.selected.span"), first)
        self.browser.key("ArrowLeft", SHIFT)
        self.assertEqual(self.ask("kpytrace.timeline.selected.span"), first)

    def test_frames_are_selected_by_keys(self):
        self.browser.press("[data-tab=flame]")
        self.ask("document.querySelector('#flame-rows canvas').focus()")
        row = "kpytrace.flame.frames.find(([node]) => node === kpytrace.flame.selected)[1]"
        self.browser.key("ArrowDown")
        self.assertEqual(self.ask(row), 1)
        self.browser.key("ArrowDown")
        self.assertEqual(self.ask(row), 2)
        self.assertIn("total", self.details())
        node = self.ask("kpytrace.flame.selected")
        self.browser.key("Enter")
        self.assertEqual(self.ask("kpytrace.flame.focus"), node)
        self.browser.key("ArrowUp")
        self.assertEqual(self.ask(row), 1)

    def test_tabs_are_changed_by_keys(self):
        self.browser.key("2")
        self.ask("document.getElementById('tab-flame').focus()")
        self.browser.key("ArrowRight")
        self.assertEqual(self.tab(), "top")
        self.browser.key("ArrowLeft")
        self.browser.key("ArrowLeft")
        self.assertEqual([self.tab(), self.ask("document.activeElement.id")], ["timeline", "tab-timeline"])
        for tab in ("summary", "notes"):
            self.browser.key("ArrowLeft")
            self.assertEqual(self.tab(), tab)

    def test_arrows_pan_after_a_click_on_a_tab(self):
        self.browser.press("#zoom-in")
        self.browser.press("[data-tab=timeline]")
        start, _ = self.view()
        self.browser.key("ArrowRight")
        self.assertEqual(self.tab(), "timeline")
        self.assertGreater(self.view()[0], start)

    # --- screen readers ---

    def test_everything_that_can_be_used_has_a_name(self):
        used = {"button", "combobox", "searchbox", "tab", "tabpanel", "application", "columnheader", "checkbox", "dialog"}
        for tab in TABS:
            self.browser.press(f"[data-tab={tab}]")
            found = [(role, name) for role, name in self.browser.accessibility() if role in used]
            self.assertGreater(len(found), 8)
            self.assertEqual([role for role, name in found if not name], [], tab)

    def test_a_table_of_blocks_is_a_table(self):
        self.browser.press("[data-tab=top]")
        roles = [role for role, _ in self.browser.accessibility()]
        rows = self.ask("document.querySelectorAll('#top-table tr').length")
        self.assertEqual([roles.count("table"), roles.count("row")], [1, rows])
        self.assertEqual(roles.count("cell"), 6 * (rows - 1))

    def test_the_panel_is_announced(self):
        self.browser.click(*self.place("pausing"))
        self.assertIn(("complementary", "Details"), self.browser.accessibility())
        self.assertEqual(self.ask("document.getElementById('details').ariaLive"), "polite")


if __name__ == "__main__":
    main()
