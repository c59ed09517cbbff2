"""Names from hostile programs: the page shows them as text everywhere, runs none of their scripts and fetches
nothing, and search finds them."""

import json
import os
import pathlib
import subprocess
import sys

import hostile
from page import Page, kpytrace, main

CUPTI, CUDA = os.environ.get("KPT_STAND_IN_CUPTI"), os.environ.get("KPT_STAND_IN_CUDA")
HERE = pathlib.Path(__file__).parent
LONG = 100_000
PROGRAM = f"""
import asyncio, sys, threading
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent / "fixtures" / "cupti")!r}]
import hostile, kpytrace
def f(): return bytearray(5000)
def made(name, file):
    names = {{"co_name": name, **({{"co_qualname": name}} if hasattr(f.__code__, "co_qualname") else {{}})}}
    return type(f)(f.__code__.replace(co_filename=file, **names), {{}})
async def wait():
    await asyncio.sleep(0)
async def tasks(names):
    await asyncio.gather(*(asyncio.create_task(wait(), name=name) for name in names))
def work(names):
    kept = []
    for number, name in enumerate(names):
        kept += [made(name, "/plain.py")(), made(f"in{{number}}", name)()]
        thread = threading.Thread(target=f, name=name)
        thread.start()
        thread.join()
        with kpytrace.span(name, number=number):
            kpytrace.mark(name, **{{name: name}})
            kpytrace.counter(name, number)
    asyncio.run(tasks(names))
    return kept
kept = work([*hostile.NAMES, *hostile.UNENCODABLE, "L" * {LONG}])
"""
GPU_PROGRAM = f"""
import sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent / "fixtures" / "cupti")!r}]
import hostile, kpytrace, played
kernels = [played.launcher({CUPTI!r}, {CUDA!r}, name, 7) for name in hostile.NAMES if "\\0" not in name]
trace = kpytrace.start(sys.argv[1], gpu=True)
for kernel in kernels: kernel()
assert trace.stop().kernels == len(kernels)
"""
MANY = """
def f(): pass
for i in range(10000): type(f)(f.__code__.replace(co_name=f"<b>{i}</b>", co_filename=f"/<i>{i % 100}.py"), {})()
"""


class Hostile(Page):
    program, options = PROGRAM, ()

    @classmethod
    def make(cls):
        name = "<img src=x onerror=hacked=7>'\"&.kpt"
        cls.record(cls.program, name, "--memory", cls.folder / "memory.tables.json")
        kpytrace("report", cls.folder / name, "--memory", cls.folder / "memory.tables.json", "-o", cls.folder / "report.html")
        cls.trace = cls.folder / name

    def setUp(self):
        self.browser.requests.clear()
        super().setUp()

    def tearDown(self):
        self.assertIsNone(self.ask("window.hacked ?? null"))
        self.assertEqual(self.ask("document.querySelectorAll('img, base, svg, b, script[src], link:not([rel=icon])').length"), 0)
        self.assertEqual([url for url in self.browser.requests if not url.startswith(("file:", "data:", "blob:"))], [])
        super().tearDown()

    def name_rows(self, kind):
        return self.ask(f"kpytrace.model.names.filter((n) => n.kind === '{kind}').map((n) => [n.label, n.file])")

    def functions(self):
        return [hostile.visible(hostile.encoded(name)) for name in hostile.NAMES + hostile.UNENCODABLE]

    def notes(self):
        return [hostile.visible(name) for name in hostile.NAMES]

    def test_the_title_is_text(self):
        self.assertEqual(self.browser.text("#title"), self.trace.name)
        self.assertEqual(self.ask("document.title"), self.trace.name)

    def test_labels_of_functions_and_files(self):
        rows = self.name_rows("python")
        labels, places = [label for label, _ in rows], {file: label for label, file in rows if label.startswith("in")}
        for number, name in enumerate(self.functions()):
            self.assertIn(name, labels)
            self.assertEqual(places.get(name), f"in{number}", name)

    def test_labels_of_spans_and_tasks(self):
        labels = [label for label, _ in self.name_rows("span")]
        tracks = self.ask("kpytrace.model.tracks.filter((t) => t.isTask).map((t) => t.name)")
        for name in self.notes():
            self.assertIn(name, labels)
            self.assertTrue(any(track.startswith(name.strip()) for track in tracks), name)

    def test_counters_and_threads(self):
        names = self.ask("kpytrace.model.tracks.filter((t) => t.values).map((t) => t.name)")
        threads = self.ask("kpytrace.model.tracks.filter((t) => t.tid).map((t) => t.name)")
        for name in self.notes():
            self.assertIn(name, names)
            if "\\u0000" not in name:  # a thread's name ends at a NUL, and after 63 bytes
                self.assertTrue(any(thread.startswith(name[:20]) for thread in threads), name)

    def test_the_panel_shows_each_as_text(self):
        for name in self.functions():
            self.ask(f"""(() => {{ const i = kpytrace.model.names.findIndex((n) => n.label === {json.dumps(name)} && n.kind === 'python');
                kpytrace.showRow(topRows(kpytrace.model, kpytrace.scope).find((row) => row.name === i)); }})()""")
            self.browser.frames(1)
            self.assertIn(name, self.details())
            self.assertNotIn(self.browser.text("#found"), ("", "0 found"), name)

    def test_marks_have_their_arguments(self):
        for number, name in enumerate(hostile.NAMES):
            self.ask(f"""(() => {{ const track = kpytrace.model.tracks[0];
                kpytrace.select({{track, mark: track.marks[{number}]}}); }})()""")
            rows = self.ask("[...document.querySelectorAll('#details dt')].map((t) => [t.textContent, t.nextSibling.textContent])")
            shown = hostile.visible(name)
            self.assertIn([shown, shown.replace("\\n", "\n") if "\n" in name else shown], rows)

    def test_the_table_lists_each(self):
        self.browser.key("3")
        self.ask("kpytrace.top.most = 1e6; kpytrace.top.draw()")
        cells = self.ask("[...document.querySelectorAll('#top-table td:last-child')].map((c) => c.textContent)")
        for name in self.functions():
            self.assertTrue(any(cell == f"{name}  /plain.py:5" for cell in cells), name)

    def test_search_takes_text_not_patterns(self):
        for text, count in ((".*(a+)+$[", 2), ("override", 3), ("__proto__", 5), ("</script>", 3), ("two\\nlines", 3),
                            ("nothing of this", 0)):
            self.browser.run(f"""(() => {{ const box = document.getElementById('search'); box.value = {json.dumps(text)};
                box.dispatchEvent(new Event('input')); }})()""")
            self.assertGreaterEqual(self.ask("kpytrace.search.count"), count, text)
            if not count:
                self.assertEqual(self.ask("kpytrace.search.count"), 0)

    def test_long_names_do_not_stop_the_page(self):
        label = self.ask("kpytrace.model.names.map((n) => n.label).find((label) => label.startsWith('LLLL'))")
        self.assertGreater(len(label), 4000)
        for key in "23451":
            self.browser.key(key)
        self.assertLess(self.ask("(() => { const t = performance.now(); for (let i = 0; i < 10; i++) kpytrace.timeline.draw();"
                                 " return performance.now() - t; })()"), 2000)

    def test_every_tab_is_drawn_and_hovered(self):
        for tab in ("timeline", "flame", "top", "memory", "notes"):
            self.browser.press(f"[data-tab={tab}]")
            for x in range(100, 1200, 300):
                for y in range(100, 790, 60):
                    self.browser.move(x, y)
            self.assertEqual(self.tab(), tab)

    def test_memory_has_them_too(self):
        labels = self.ask("kpytrace.memoryNames.map((n) => n.label)")
        for name in self.functions():
            self.assertTrue(any(label.rpartition(":")[0] == name for label in labels), name)

    def test_view_serves_the_same(self):
        view = subprocess.Popen([sys.executable, "-m", "kpytrace", "view", "--no-browser", "--quiet", self.trace],
                                stdout=subprocess.PIPE, text=True, cwd=self.folder)
        try:
            address = view.stdout.readline().strip()
            self.browser.open(address)
            self.browser.frames(3)
            self.assertEqual([url for url in self.browser.requests if url.startswith("http")], [address])
            self.browser.requests.clear()
        finally:
            view.terminate()
            view.communicate()

    def test_kernels(self):
        if not CUPTI:
            self.skipTest("there is no stand-in of CUPTI")
        subprocess.run([sys.executable, "-c", GPU_PROGRAM, str(self.folder / "gpu.kpt")], check=True, timeout=120,
                       cwd=self.folder)
        kpytrace("report", self.folder / "gpu.kpt", "-o", self.folder / "gpu.html")
        self.show("gpu.html")
        labels = [label for label, _ in self.name_rows("span")]
        for name in hostile.NAMES:
            if "\0" not in name:
                self.assertIn(hostile.visible(name), labels)
        self.browser.click(*self.place("constructor"))
        self.assertIn("constructor", self.details())

    def test_ten_thousand_names(self):
        self.record(MANY, "many.kpt")
        kpytrace("report", self.folder / "many.kpt", "-o", self.folder / "many.html")
        self.show("many.html")
        self.browser.key("3")
        self.browser.key("/")
        self.browser.type("<b>99")
        self.assertEqual(self.browser.text("#found"), "111 found")
        self.assertEqual(self.browser.text("#top-text"), "111 functions")

    def test_the_page_of_a_diff(self):
        kpytrace("diff", "--html", self.folder / "diff.html", self.trace, self.trace)
        self.browser.send("Page.navigate", url=(self.folder / "diff.html").as_uri())
        self.browser.wait("document.readyState === 'complete' && !!document.querySelector('tbody')")
        cells = self.ask("[...document.querySelectorAll('td:last-child')].map((c) => c.textContent.replace(/\\n$/, ''))")
        for name in hostile.NAMES:
            shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
            self.assertIn(f"/plain.py: {shown}", cells)
        self.ask("(() => { const box = document.querySelector('input'); box.value = '.*(a+'; box.dispatchEvent(new Event('input')); })()")
        self.assertEqual(self.ask("[...document.querySelectorAll('tbody tr')].filter((r) => !r.hidden).length"), 2)
        self.ask("document.querySelectorAll('th').forEach((head) => head.click())")


if __name__ == "__main__":
    main()
