"""The cost of tracing that `kpytrace info` prints."""

import contextlib
import io
import pathlib
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case

import kpytrace
from kpytrace._api import native
from kpytrace._cli import cost, kpt_commands
from kpytrace._cli.formatting import amount


def leaf(n):
    return n


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Cost(Case):
    def setUp(self):
        super().setUp()
        self.kpt = self.folder / "trace.kpt"

    def test_issue_23_what_tracing_cost_is_measured(self):
        """The cost is not derived from the shortest call, which is only a lower bound."""
        with kpytrace.trace(self.kpt):
            for i in range(1000):
                abs(leaf(i))
        plugin = native.load()
        per_call = cost.measure(native.standalone, plugin)
        self.assertTrue(all(0 < ns < 1e6 for ns in per_call), per_call)
        handle, _, _ = native.standalone.open(plugin, self.kpt, False)
        rows = native.standalone.profile(handle, 0, 2**32 - 1, True, None)
        c = sum(row[5] for row in rows if row[0].startswith(b"<built-in"))
        python = sum(row[5] for row in rows) - c
        out = io.StringIO()
        with unittest.mock.patch.object(cost, "measure", lambda *_: (1000.0, 10.0)), contextlib.redirect_stdout(out):
            self.assertEqual(kpt_commands.info([str(self.kpt)]), 0)
        self.assertIn(f"tracing cost: about {amount(1000 * python + 10 * c)}", out.getvalue())
        self.assertIn("(1.000 µs for a call of a Python function and 10 ns for one in C, as measured here)",
                      out.getvalue())
        totals = cost.Totals()
        totals.take(rows)
        said = cost.line(totals, per_call, {"python": "cpython 3.9.1", "host": "elsewhere"})
        self.assertIn("as measured here, with another python and host than it was recorded with", said)


if __name__ == "__main__":
    unittest.main()
