"""A test of a .kpt file that has calls and memory."""

import json

from support import MemoryCase, run_python


def kpytrace_command(*words, **options):
    return run_python("-m", "kpytrace", *words, **options)


class Both(MemoryCase):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "both.kpt"

    def convert(self, target, *options, status=0):
        """Returns what convert printed."""
        done = kpytrace_command("convert", *options, self.path, self.folder / target)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def events(self, part):
        self.convert("part.json", "-q", "--part", part)
        trace = json.loads((self.folder / "part.json").read_text())
        return [(e, trace.get("baseTimeNanoseconds", 0)) for e in trace["traceEvents"]]

    def calls_of(self, name):
        """Returns the beginning and the end, in ns, of each call of a function."""
        return sorted((base + e["ts"] * 1000, base + (e["ts"] + e["dur"]) * 1000) for e, base in self.events("calls")
                      if e["ph"] == "X" and e["name"].endswith(name))

    def kept_blocks(self, size):
        self.convert("kept.pickle", "--quiet")
        return self.kept_sizes(self.folder / "kept.pickle").count(size)

    def check_page(self, parts):
        done = kpytrace_command("report", self.path, "-o", self.folder / "page.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.folder / "page.html").read_text("utf-8")
        for kind in ("trace", "memory"):
            self.assertEqual(page.count(f'data-kind="{kind}"'), kind in parts)
