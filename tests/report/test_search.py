"""Search: its results, the keys that move through them, and its effect in each tab."""

from browser import SHIFT
from page import Page, main


class Search(Page):

    def search(self, text):
        self.browser.key("/")
        self.browser.type(text)

    def test_slash_goes_to_the_box_and_finds_while_one_types(self):
        self.search("pausing")
        self.assertEqual(self.browser.text("#found"), "4 found")
        self.assertEqual(self.ask("document.getElementById('search').value"), "pausing")
        self.assertEqual(self.tab(), "timeline")

    def test_letters_in_the_box_move_nothing(self):
        view = self.view()
        self.search("wasd f t 2")
        self.assertEqual(self.view(), view)
        self.assertEqual(self.tab(), "timeline")

    def test_case_does_not_matter_and_files_count_too(self):
        self.search("PAUSING")
        self.assertEqual(self.browser.text("#found"), "4 found")
        self.browser.key("Escape")
        self.search("Python GC")  # collections of the program, and those before the program begins
        found = self.browser.text("#found")
        self.assertRegex(found, r"\A[1-9] found\Z")
        self.browser.key("Escape")
        self.search("python gc")
        self.assertEqual(self.browser.text("#found"), found)
        self.browser.key("Escape")
        self.search("program.py")
        self.assertGreater(self.ask("kpytrace.search.count"), 40)

    def test_what_is_not_there_is_not_found(self):
        self.search("nowhere")
        self.assertEqual(self.browser.text("#found"), "0 found")
        self.browser.key("Enter")
        self.assertIsNone(self.selected())

    def test_enter_goes_through_all_in_the_order_of_time(self):
        self.search("pausing")
        starts = []
        for number in range(1, 5):
            self.browser.key("Enter")
            self.assertEqual(self.browser.text("#found"), f"{number} of 4")
            self.assertEqual(self.selected(), "pausing")
            starts.append(self.ask("kpytrace.timeline.selected.track.start[kpytrace.timeline.selected.span]"))
            start, end = self.view()
            self.assertTrue(start <= starts[-1] <= end, "in sight")
        self.assertEqual(starts, sorted(starts))
        self.assertEqual(len(set(starts)), 4)
        self.browser.key("Enter")
        self.assertEqual(self.browser.text("#found"), "1 of 4")
        self.browser.key("Enter", SHIFT)
        self.assertEqual(self.browser.text("#found"), "4 of 4")

    def test_the_buttons_do_the_same(self):
        self.search("pausing")
        self.browser.press("#next")
        self.browser.press("#next")
        self.assertEqual(self.browser.text("#found"), "2 of 4")
        self.browser.press("#previous")
        self.assertEqual(self.browser.text("#found"), "1 of 4")

    def test_all_others_are_dim(self):
        x, y = self.place("first part")
        before = self.pixel("#rows-canvas", x, y + 5)
        self.search("pausing")
        self.browser.frames()
        self.assertNotEqual(self.pixel("#rows-canvas", x, y + 5), before)
        self.browser.key("Escape")
        self.browser.frames()
        self.assertEqual(self.pixel("#rows-canvas", x, y + 5), before)
        self.assertEqual(self.ask("document.getElementById('search').value"), "")

    def test_the_table_lists_what_is_found(self):
        self.browser.key("3")
        self.search("pausing")
        self.assertEqual(self.browser.text("#top-text"), "1 functions")

    def test_the_flame_graph_marks_what_is_found(self):
        self.browser.key("2")
        self.browser.frames()
        before = self.ask("kpytrace.flame.boxes.lists[DIM_COLOR].length / 4")
        self.search("pausing")
        self.browser.frames()
        frames = self.ask("kpytrace.flame.frames.length")
        found = self.ask("kpytrace.flame.frames.filter(([node]) => kpytrace.flame.nameOf(node).label === 'pausing').length")
        self.assertEqual(before, 1, "the root alone")
        self.assertEqual(self.ask("kpytrace.flame.boxes.lists[DIM_COLOR].length / 4"), frames - found)
        self.assertEqual(self.tab(), "flame")


if __name__ == "__main__":
    main()
