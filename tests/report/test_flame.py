"""Arrangements of the flame graph, its search, and the difference of two recordings."""

import json

from page import Page, kpytrace, main

PROGRAM = """
def leaf(): pass
def many(n):
    for i in range(n): leaf()
def slow(): many({slow})
def same(): many(300)
{only}
def down(n): return n and down(n - 1) or many(300)
def ping(n): return n and pong(n - 1)
def pong(n): return n and ping(n - 1)
def main():
    same()
    for i in range(20): slow()
    other(); down(30); ping(21)
    same()
main()
"""
BEFORE = PROGRAM.format(slow=40, only="def gone(): many(300)\ndef other(): gone()")
AFTER = "# a line more\n" + PROGRAM.format(slow=400, only="def new(): many(300)\ndef other(): new()")
# Each call is given the same own time, so that amounts do not depend on how busy the machine was.
EVEN = """for (const track of kpytrace.model.tracks) track.own.fill(1000); kpytrace.setScope(0);
    // Own and total of a function, as numbers of calls: its own, and those in its outermost calls.
    window.amounts = (label, side = '') => { let own = 0, total = 0;
      for (const {count, nameOf, parent, group} of kpytrace.model.tracks) {
        const inside = new Uint8Array(count);
        for (let i = 0; i < count && group.process.startsWith(side); i++) {
          const is = kpytrace.model.names[nameOf[i]].label === label;
          inside[i] = is || (parent[i] >= 0 && inside[parent[i]]);
          own += is; total += inside[i];
        }
      } return {own: 1000 * own, total: 1000 * total}; }"""


class Flame(Page):
    program, options = BEFORE, ()

    @classmethod
    def make(cls):
        super().make()
        cls.record(AFTER, "after.kpt")
        kpytrace("report", "--diff", cls.folder / "trace.kpt", cls.folder / "after.kpt", "-o", cls.folder / "diff.html")

    def show(self, name="report.html"):
        super().show(name)
        self.ask(EVEN)
        self.browser.press("[data-tab=flame]")

    def arrange(self, text):
        self.browser.choose("#flame-kind", text)

    def frames(self):
        """Returns the label, row and total of each frame, from the top and from the left."""
        return self.ask("""kpytrace.flame.frames.slice().sort((a, b) => a[1] - b[1] || a[2] - b[2])
            .map(([node, row]) => [kpytrace.flame.nameOf(node).label, row, kpytrace.flame.tree.total[node]])""")

    def rows_of(self, label):
        return [row for name, row, _ in self.frames() if name == label]

    def function(self, label, side=""):
        """Returns the own and the total time of a function."""
        return self.ask(f"amounts({json.dumps(label)}, '{side}')")

    def click_frame(self, label):
        self.browser.click(*self.ask(f"""(() => {{ const flame = kpytrace.flame, box = flame.canvas.getBoundingClientRect();
            const [, row, from, to] = flame.frames.filter(([node]) => flame.nameOf(node).label === {json.dumps(label)})
                .reduce((a, b) => (b[3] - b[2] > a[3] - a[2] ? b : a));
            return [box.x + (from + to) / 2 * box.width, box.y + 4 + (row + 0.5) * ROW - flame.scroller.scrollTop]; }})()"""))

    # --- arrangements ---

    def test_inverted_has_functions_by_own_time_and_callers_below(self):
        self.arrange("Callers below callees (inverted)")
        frames = self.frames()
        found = self.ask("kpytrace.flame.tree.childrenOf(0).map((node) => [kpytrace.flame.tree.name[node], kpytrace.flame.tree.total[node]])")
        own = dict(self.ask("topRows(kpytrace.model, kpytrace.scope).map((row) => [row.name, row.calls * 1000])"))
        self.assertEqual({name for name, _ in found}, set(own))
        for name, total in found:
            self.assertAlmostEqual(total, own[name], delta=1)
        totals = [total for _, row, total in frames if row == 1]
        self.assertEqual(totals, sorted(totals, reverse=True))
        self.assertIn(3, self.rows_of("slow"), "the caller of leaf's caller")
        self.click_frame("slow")
        self.assertIn("called from here", self.details())

    def test_sandwich_has_callers_above_and_callees_below(self):
        self.click_frame("slow")
        self.arrange("Around one function (sandwich)")
        middle = self.rows_of("slow")
        self.assertEqual(len(middle), 1)
        self.assertEqual(self.rows_of("main"), [middle[0] - 1])
        self.assertEqual(self.rows_of("leaf"), [middle[0] + 2])
        slow = self.function("slow")
        self.assertAlmostEqual(next(total for name, _, total in self.frames() if name == "slow"), slow["total"], delta=1)
        self.assertAlmostEqual(next(total for name, _, total in self.frames() if name == "main"), slow["total"], delta=1)
        self.click_frame("slow")
        self.assertIn("calls20", self.details())

    def test_a_call_leads_to_the_sandwich_of_its_function(self):
        self.browser.press("[data-tab=timeline]")
        self.browser.click(*self.place("many"))
        self.browser.press("#details h2 button")
        self.assertEqual(self.tab(), "flame")
        self.assertEqual(self.ask("kpytrace.flame.nameOf(0).label"), "many")
        callers = {name for name, row, _ in self.frames() if row == self.rows_of("many")[0] - 1}
        self.assertEqual(callers, {"slow", "same", "gone", "down"})

    def test_the_order_of_frames_can_be_that_of_time(self):
        children = [name for name, row, _ in self.frames() if row == self.rows_of("slow")[0]]
        self.assertLess(children.index("slow"), children.index("same"), "the largest first")
        self.browser.choose("#flame-order", "In order of first call")
        children = [name for name, row, _ in self.frames() if row == self.rows_of("slow")[0]]
        self.assertEqual([name for name in children if name in ("same", "slow", "other", "down")], ["same", "slow", "other", "down"])

    def test_recursion_is_collapsed(self):
        total, rows = self.function("down")["total"], len(self.rows_of("down"))
        self.assertGreater(rows, 5)
        self.browser.press("#flame-recursion")
        self.assertEqual(len(self.rows_of("down")), 1)
        self.assertAlmostEqual(next(time for name, _, time in self.frames() if name == "down"), total, delta=1)
        nodes = self.ask("kpytrace.flame.tree.name.map((name) => name < 0 ? '' : kpytrace.model.names[name].label)")
        self.assertEqual([nodes.count("ping"), nodes.count("pong")], [1, 1], "of two that call each other, too")
        self.browser.press("#flame-recursion")
        self.assertEqual(len(self.rows_of("down")), rows)

    def test_the_search_has_the_share_of_the_total(self):
        self.browser.key("/")
        self.browser.type("): slow")
        slow, whole = self.function("slow")["total"], self.ask("kpytrace.flameTab.tree.total[0]")
        self.assertIn(f"found: {self.ask(f'showTime({slow})')}, {100 * slow / whole:.1f} %", self.browser.text("#flame-text"))
        self.browser.key("Escape")
        self.browser.key("/")
        self.browser.type("): down")
        down = self.function("down")["total"]
        self.assertIn(f"{100 * down / whole:.1f} %", self.browser.text("#flame-text"), "calls in calls count once")

    def test_arrangements_are_made_as_far_as_they_are_seen(self):
        self.arrange("Callers below callees (inverted)")
        self.assertLess(self.ask("kpytrace.flame.tree.name.length"), self.ask("kpytrace.flame.frames.length") * 20)

    # --- the difference of two recordings ---

    def color(self, label):
        """Returns the number of a function's colour: 0 is unchanged, 1 to 4 slower, 5 to 8 faster."""
        return self.ask(f"""(() => {{ const flame = kpytrace.flame;
            const [node] = flame.frames.find(([node]) => flame.nameOf(node).label === {json.dumps(label)});
            return flame.colorOf(node) - CHANGE_COLOR; }})()""")

    def test_the_difference_is_in_colours(self):
        self.show("diff.html")
        self.assertEqual([self.color("new"), self.color("gone")], [4, 8])
        self.assertEqual(self.color("slow"), 4)
        self.assertEqual(self.color("same"), 0)
        self.assertTrue(self.browser.shown("#flame-legend"))
        self.assertEqual(len(self.rows_of("slow")), 1, "though its line has changed")
        self.click_frame("slow")
        sums = [self.function("slow", side)["total"] for side in ("before", "after")]
        for side, time in zip(("before", "after"), sums):
            self.assertIn(f"{side}{self.ask(f'showTime({time})')}", self.details())
        self.assertIn(f"+{self.ask(f'showTime({sums[1] - sums[0]})')}", self.details())
        self.browser.press("#flame-reset")
        self.click_frame("gone")
        self.assertIn("only before", self.details())

    def test_other_arrangements_have_the_difference_too(self):
        self.show("diff.html")
        self.arrange("Callers below callees (inverted)")
        self.assertEqual([self.color("new"), self.color("gone")], [4, 8])
        self.click_frame("slow")
        self.arrange("Around one function (sandwich)")
        self.assertEqual(self.color("slow"), 4)

    def test_both_begin_at_the_same_time_and_are_told_apart(self):
        self.show("diff.html")
        self.assertEqual(self.browser.text("#title"), "trace.kpt → after.kpt")
        firsts = self.ask("kpytrace.model.tracks.map((t) => [t.group.process.split(':')[0], t.first])")
        self.assertEqual(firsts, [["before", 0], ["after", 0]])
        self.browser.choose("#flame-scope", "After")
        self.assertEqual(self.rows_of("gone"), [])
        self.assertEqual(len(self.rows_of("new")), 1)

    def test_other_numbers_of_files_are_refused(self):
        with self.assertRaises(Exception) as raised:
            kpytrace("report", "--diff", self.folder / "trace.kpt", "-o", self.folder / "one.html")
        self.assertIn("compares two recordings, not 1", raised.exception.stderr.decode())


if __name__ == "__main__":
    main()
