"""A threaded server and a gevent server that are recorded for ten minutes, in a stream, in a ring, and in a stream with memory,
all at one time: their memory stays, and a flush takes no more time at the end. In long runs only; KPYTRACE_SOAK_SECONDS is
another length."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

if os.environ.get("KPT_GREENLETS"):
    sys.path.append(os.environ["KPT_GREENLETS"])
SECONDS = float(os.environ.get("KPYTRACE_SOAK_SECONDS", "600" if os.environ.get("KPYTRACE_TEST_LONG", "0") != "0" else "0"))
if not SECONDS:
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, FREE_THREADED, Case, run_python

from kpytrace._cli.memory import open_tables

try:
    import gevent
except ImportError:
    gevent = None

PROGRAM = pathlib.Path(__file__).with_name("soak_program.py")
MORE_BYTES = 8 << 20  # than after a quarter of the time; a thread or greenlet each thousandth of a second ends meanwhile
TIMES = 5  # flushes that walked what has ended took hundreds of times as long
MORE_SECONDS = 0.05  # of processor time for 100 flushes: noise of other programs


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Soak(Case):
    def start(self, kind, mode):
        output = self.folder / f"{kind}_{mode}.kpt"
        child = subprocess.Popen([sys.executable, PROGRAM, kind, mode, str(SECONDS), output], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(child.kill)
        return kind, mode, output, child

    def check(self, kind, mode, output, child):
        out, error = child.communicate()
        self.assertEqual(child.returncode, 0, error)
        result = json.loads(out)
        print(f"{kind}, {mode}: {result}, {output.stat().st_size} bytes", file=sys.stderr)
        early = max(result["sizes"][:len(result["sizes"]) // 4])
        self.assertLess(max(result["sizes"]), early + MORE_BYTES)
        self.assertLess(result["idle"][1], TIMES * result["idle"][0] + MORE_SECONDS)
        self.assertGreaterEqual(result["threads"], result["requests"])
        reply = run_python("-m", "kpytrace", "top", "-q", "-n", "0", str(output))
        self.assertEqual(reply.returncode, 0, reply.stderr)
        answers = [int(line.split()[0].replace(",", "")) for line in reply.stdout.splitlines() if line.endswith(": answer")]
        if mode == "ring":
            self.assertGreater(answers[0], 0)
        else:
            self.assertEqual(result["dropped"], 0)
            self.assertEqual(answers, [result["requests"]])
        if mode == "memory":
            self.check_allocations(output, result["requests"])

    def check_allocations(self, output, requests):
        """Each answer allocates its text and its bytes, at least, and keeps nothing."""
        tables = open_tables(str(output))
        self.assertEqual(tables.entries_dropped, 0)
        blocks = {at: sum(row.blocks for row in tables.rows(at, "function") if row.name == "answer") for at in ("end", "all")}
        self.assertGreaterEqual(blocks["all"], 2 * requests)
        self.assertLess(blocks["end"], 1000)

    def test_servers(self):
        kinds = ["threads"] + ["gevent"] * (gevent is not None)
        modes = ("stream", "ring", *["memory"] * (not FREE_THREADED))
        for run in [self.start(kind, mode) for kind in kinds for mode in modes]:
            with self.subTest(run[:2]):
                self.check(*run)


if __name__ == "__main__":
    unittest.main()
