"""Commands that are interrupted, and names that a terminal does not take as they are."""

import asyncio
import threading
import unittest

from support import Case, run_python

import kpytrace
from kpytrace import _standalone
from kpytrace._api import native


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
        handle, _, _ = _standalone.open(native.load(), self.kpt, False)

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


class Names(Commands):
    STRANGE = "a\nb\x1b[31m\u202e\u00e9"

    def setUp(self):
        super().setUp()

        async def main():
            await asyncio.create_task(asyncio.sleep(0), name=self.STRANGE)

        with kpytrace.trace(self.kpt):
            thread = threading.Thread(target=leaf, name=self.STRANGE)
            thread.start()
            thread.join()
            asyncio.run(main())

    def said(self, *words, encoding="utf-8"):
        reply = run_python("-m", "kpytrace", *words, env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
                           encoding=encoding)
        self.assertEqual((reply.returncode, reply.stderr), (0, ""))
        return reply.stdout

    def test_a_name_stays_on_its_line_and_commands_no_terminal(self):
        for words in (("info",), ("top", "--threads", "-n", "0"), ("top", "--tasks", "-n", "0")):
            with self.subTest(words):
                self.assertIn("a\\nb\\x1b[31m\\u202e\u00e9", self.said(*words, str(self.kpt)))

    def test_an_output_that_lacks_the_letters(self):
        for words in (("info",), ("top", "--threads", "-n", "0"), ("top", "--tasks", "-n", "0"),
                      ("diff", "-n", "0", str(self.kpt))):
            with self.subTest(words):
                self.assertTrue(self.said(*words, str(self.kpt), encoding="ascii"))
        self.assertIn("\\xb5s", self.said("top", "-n", "0", str(self.kpt), encoding="ascii"))


if __name__ == "__main__":
    unittest.main()
