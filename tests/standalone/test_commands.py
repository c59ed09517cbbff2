"""Commands that are interrupted."""

import unittest

from support import Case

import kpytrace
from kpytrace import _standalone, _trace


def leaf():
    pass


class Commands(Case):
    def setUp(self):
        super().setUp()
        self.kpt = self.folder / "trace.kpt"


class Interrupts(Commands):
    def test_what_raises_ends_the_reading_of_a_file(self):
        """As Ctrl-C does: a file of hours was converted to its end first."""
        with kpytrace.trace(self.kpt):
            for _ in range(100_000):
                leaf()
        handle, _, _ = _standalone.open(_trace._load(), self.kpt, False)

        def stop(done):
            raise KeyboardInterrupt

        for suffix in (".json", ".json.gz", ".pftrace", ".speedscope.json", ".collapsed", ".html"):
            with self.subTest(suffix):
                target = self.folder / f"out{suffix}"
                with self.assertRaises(KeyboardInterrupt):
                    _standalone.write(handle, target, stop)
                self.assertFalse(target.exists())
        self.assertEqual(_standalone.write(handle, self.path, None)["calls"],
                         _standalone.write(handle, None, None)["calls"])


if __name__ == "__main__":
    unittest.main()
