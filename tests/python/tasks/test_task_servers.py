"""Tasks of real servers under load, with `kpytrace run`: aiohttp's and asyncio's streams, on asyncio's loop and on
uvloop's. The program notes itself which task runs where. KPT_GREENLETS says in which folder the packages are,
where this Python has none itself."""

import importlib.util
import json
import os
import pathlib
import sys
import unittest

if os.environ.get("KPT_GREENLETS"):
    sys.path.append(os.environ["KPT_GREENLETS"])
if not importlib.util.find_spec("aiohttp") or not importlib.util.find_spec("uvloop"):
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case, run_python
from task_tracks import Tracks

PROGRAM = pathlib.Path(__file__).with_name("server_program.py")
CLIENTS, REQUESTS = 10, 20


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Servers(Case):
    def check(self, loop, kind):
        noted = self.folder / "truth.json"
        out = run_python("-m", "kpytrace", "run", "-q", "-o", self.path, PROGRAM, loop, kind, str(CLIENTS),
                         str(REQUESTS), noted, cwd=self.folder)
        self.assertEqual((out.returncode, out.stderr), (0, ""), out)
        own = json.loads(noted.read_text())
        questions = [f"{c}.{r}" for c in range(CLIENTS) for r in range(REQUESTS)]
        self.assertEqual(sorted(own["handled"]), sorted(questions))
        self.assertEqual(sorted(own["answered"]), sorted(f"answer to {q}" for q in questions))
        tracks = Tracks(self.read_trace())
        tracks.check_truth([tuple(noted) for noted in own["truth"]])
        for client in range(CLIENTS):
            self.assertGreaterEqual(len(tracks.of(f"client-{client}")), REQUESTS)
        # A handler waits once, so that each is entered twice.
        works = [c for c in tracks.calls if c["name"].endswith(": work")]
        self.assertEqual(len(works), 2 * len(questions))
        # Each task that the program saw has a track, and there is one only.
        shown = [name.split(" ")[0] for name in tracks.names.values()]
        for name in {name for _, name in own["truth"]}:
            self.assertEqual(shown.count(name), 1, name)

    def test_aiohttp(self):
        self.check("asyncio", "aiohttp")

    def test_aiohttp_on_uvloop(self):
        self.check("uvloop", "aiohttp")

    def test_streams(self):
        self.check("asyncio", "streams")

    def test_streams_on_uvloop(self):
        self.check("uvloop", "streams")


if __name__ == "__main__":
    unittest.main()
