"""Pages of several processes: their names, command lines and titles, and folders of recordings."""

import json

from page import Page, kpytrace, main

WORKERS = 2
PROGRAM = f"""
import multiprocessing
def work(n): return n
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool({WORKERS}) as pool:
        pool.map(work, range(20), 1)
        pool.close()
        pool.join()
"""


class Processes(Page):
    program, options = PROGRAM, ("--children",)

    @classmethod
    def make(cls):
        cls.record(cls.program, "report.html", *cls.options)
        kpytrace("report", cls.folder / "report.children", "-o", cls.folder / "folder.html")

    def processes(self):
        return self.ask("[...new Set(kpytrace.model.tracks.map((t) => t.group.process))]")

    def names(self):
        """Returns the names of the processes, without their numbers."""
        return {process.rpartition(" ")[0] for process in self.processes()}

    def test_children_are_on_the_page_of_a_run(self):
        expected = {"python program.py", *(f"SpawnPoolWorker-{i}" for i in range(1, WORKERS + 1))}
        self.assertEqual(self.names(), expected)
        calls = "kpytrace.model.tracks.reduce((sum, track) => sum + track.count, 0)"
        work = "topRows(kpytrace.model, kpytrace.scope).find((row) => kpytrace.model.names[row.name].label === 'work').calls"
        found = self.ask(calls)
        self.assertEqual(self.ask(work), 20)
        self.show("folder.html")
        self.assertEqual([self.names(), self.ask(calls)], [expected, found], "a folder of them is the same")

    def test_the_title_says_what_it_is(self):
        self.assertEqual(self.browser.text("#title"), f"python program.py and {WORKERS} more processes")
        self.assertEqual(self.ask("document.title"), self.browser.text("#title"))

    def test_headings_and_notes_name_the_processes(self):
        headings = self.ask("kpytrace.timeline.bands.filter((b) => b.heading).map((b) => b.heading)")
        self.assertIn("SpawnPoolWorker-1", " ".join(headings))
        self.browser.press("[data-tab=notes]")
        titles = self.ask("[...document.querySelectorAll('#notes h2')].map((title) => title.textContent)")
        self.assertEqual(set(titles[:WORKERS + 1]), set(self.processes()))
        notes = self.browser.text("#notes")
        self.assertIn("program.py", notes)
        self.assertIn("spawn_main(", notes)

    def test_the_flame_graph_may_be_of_one_process(self):
        self.browser.press("[data-tab=flame]")
        worker = next(process for process in self.processes() if process.startswith("SpawnPoolWorker-1"))
        self.browser.choose("#flame-scope", worker)
        expected = self.ask(f"""kpytrace.model.tracks.filter((t) => t.group.process === {json.dumps(worker)})
            .reduce((sum, t) => sum + t.count, 0)""")
        self.assertEqual(self.ask("kpytrace.flame.tree.calls.reduce((a, b) => a + b)"), expected)

    def test_the_command_for_processes_that_still_run_makes_a_page(self):
        from kpytrace._processes.children import Family
        message = Family(str(self.folder / "report.children"), {}, ".kpt").later("out.html", 1)
        self.assertEqual(message, f"\nkpytrace: 1 still run: kpytrace report {self.folder / 'report.children'} -o out.html")

    def test_a_folder_without_recordings_is_refused(self):
        empty = self.folder / "empty"
        empty.mkdir()
        with self.assertRaises(Exception) as raised:
            kpytrace("report", empty, "-o", self.folder / "none.html")
        self.assertIn("has no .kpt file", raised.exception.stderr.decode())


if __name__ == "__main__":
    main()
