"""Shared code of the report page's tests: traces of a small program, made once, and a browser that shows them."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import browser

STRANGE = "</script><img src=x onerror=alert(1)>\"'&ü名𝒻"
PROGRAM = f"""
import gc, threading, time
import kpytrace
def pausing(): time.sleep(.002)
def outer(): pausing(); pausing()
def down(n): return n and down(n - 1)
def numbers():
    for i in range(3): yield i
def strange(): pass
strange.__code__ = strange.__code__.replace(co_name={STRANGE!r})
def work():
    outer()
    kpytrace.counter("queue", 4)
def main():
    other = threading.Thread(target=work, name="worker")
    other.start()
    with kpytrace.span("first part", number=3, text="</script>"):
        outer(); strange(); sum(numbers())
        kpytrace.mark("half way", done=0.5)
        down(30)
    kpytrace.counter("queue", 2)
    class Ring: pass
    ring = Ring(); ring.ring = ring; del ring
    gc.collect()
    other.join()
main()
"""
MEMORY_PROGRAM = """
def make(n): return [bytes(1000) for _ in range(n)]
def keep(): return make(300)
def drop(): return len(make(4000))
kept = keep(); drop()
"""


def kpytrace(*words):
    """Runs the command in a folder that has no other kpytrace."""
    return subprocess.run([sys.executable, "-m", "kpytrace", *map(str, words)], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, cwd=pathlib.Path(__file__).parent)


class Page(unittest.TestCase):
    """A test of the page, in a browser that all tests of a class use."""

    program, options = PROGRAM, ("--gc",)  # the program that is recorded, and options of `kpytrace run`

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kpt-report-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.browser.prefer("light")
        cls.make()

    @classmethod
    def make(cls):
        """Makes the report that show() opens."""
        cls.record(cls.program, "trace.kpt", *cls.options)
        kpytrace("report", cls.folder / "trace.kpt", "-o", cls.folder / "report.html")

    @classmethod
    def record(cls, program, name, *options):
        script = cls.folder / "program.py"
        script.write_text(program, encoding="utf-8")
        kpytrace("run", "-o", cls.folder / name, *options, script)

    def setUp(self):
        self.browser.problems.clear()
        self.browser.move(1, 1)
        self.show()

    def tearDown(self):
        self.assertEqual(self.browser.problems, [])

    def show(self, name="report.html"):
        self.browser.open((self.folder / name).as_uri())
        self.browser.frames(3)

    def ask(self, code):
        return self.browser.run(code)

    # --- the timeline ---

    def view(self):
        """Returns the begin and the end of the visible range, in ns."""
        return self.ask("[kpytrace.timeline.view.from, kpytrace.timeline.view.to]")

    def width(self):
        start, end = self.view()
        return end - start

    def find(self, label, number=0):
        """Returns the position of a call, as [the track's number, span]."""
        found = self.ask(f"""kpytrace.model.tracks.flatMap((track, t) => [...track.nameOf.keys()]
            .filter((i) => kpytrace.model.names[track.nameOf[i]].label === {json.dumps(label)}).map((i) => [t, i]))""")
        self.assertGreater(len(found), number, label)
        return found[number]

    def place(self, label, number=0):
        """Returns the middle of a call on the screen. Moves the timeline so that the call is visible."""
        track, span = self.find(label, number)
        self.ask(f"kpytrace.timeline.reveal({{track: kpytrace.model.tracks[{track}], span: {span}}}, true)")
        self.browser.frames()
        return self.spot(track, span)

    def spot(self, track, span):
        return self.ask(f"""(() => {{
            const line = kpytrace.timeline, track = kpytrace.model.tracks[{track}];
            const box = line.canvas.getBoundingClientRect();
            return [box.x + line.x((track.start[{span}] + track.end[{span}]) / 2),
                    box.y + line.rowsAt(line.bandOf(track)) + (track.rowOf[{span}] + 0.5) * ROW - line.scroller.scrollTop];
        }})()""")

    def middle(self):
        return self.browser.place("#rows")

    def pixel(self, selector, x, y):
        """Returns the colour of a canvas at a point of the screen."""
        return self.ask(f"""(() => {{
            const canvas = document.querySelector({json.dumps(selector)}), box = canvas.getBoundingClientRect();
            const ratio = canvas.width / box.width, copy = document.createElement('canvas');
            const context = copy.getContext('2d', {{willReadFrequently: true}}); // without, the console warns
            context.drawImage(canvas, -Math.floor(({x} - box.x) * ratio), -Math.floor(({y} - box.y) * ratio));
            return [...context.getImageData(0, 0, 1, 1).data].join();
        }})()""")

    def selected(self):
        """Returns the label of the selected item, or None."""
        return self.ask("""(() => { const s = kpytrace.timeline.selected;
            return s ? (s.mark ? kpytrace.model.note(s.mark.note).name : kpytrace.model.names[s.track.nameOf[s.span]].label) : null; })()""")

    def details(self):
        """Returns the panel's text, or None if the panel is closed."""
        return self.browser.text("#details-content") if self.browser.shown("#details") else None

    def tab(self):
        return self.ask("kpytrace.tab")


def main():
    if not browser.find():
        print("there is no Chromium: `scripts/setup browser` installs one")
        sys.exit(77)
    os.environ.pop("KPYTRACE", None)
    unittest.main(verbosity=2)
