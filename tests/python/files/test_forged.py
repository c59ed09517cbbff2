"""Forged files: bytes are changed, and the checksums are corrected."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case, run_python

import kpytrace


def checksum(data):
    """Computes the checksum of a record's head and its bytes, like kpt_format.c."""
    total = 0
    for at in range(0, len(data), 8):
        word = data[at:at + 8]
        if len(word) < 8:
            word = word + (len(word).to_bytes(8, sys.byteorder)[len(word):])
        total = (total ^ int.from_bytes(word, sys.byteorder)) * 0x9e3779b97f4a7c15 % 2**64
        total ^= total >> 29 if len(data) - at >= 8 else 0
    return total


def forge(path, old, new):
    """Replaces bytes of a record, and corrects its checksum."""
    data, at = bytearray(path.read_bytes()), 64
    where = data.index(old)
    data[where:where + len(old)] = new
    while True:
        size = int.from_bytes(data[at + 8:at + 16], sys.byteorder)
        if where < at + 24 + size:
            break
        at += 24 + size + -size % 8
    total = checksum(bytes(data[at:at + 16]) + bytes(data[at + 24:at + 24 + size]))
    data[at + 16:at + 24] = total.to_bytes(8, sys.byteorder)
    path.write_bytes(data)


def kpytrace_command(*words):
    return run_python("-m", "kpytrace", *map(str, words))


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Forged(Case):
    def setUp(self):
        super().setUp()
        self.kpt = self.folder / "trace.kpt"

    def test_issue_23_a_note_that_was_forged(self):
        """The checksum of the note is correct, but its values are not JSON."""
        good = b'"x":"aaaaaaaaaaaa"'
        with kpytrace.trace(self.kpt):
            kpytrace.mark("m", x="aaaaaaaaaaaa")
        forge(self.kpt, good, b'"x":"bbbbbbbbbbbb"')
        self.assertEqual(kpytrace_command("convert", self.kpt, self.path).returncode, 0)
        self.assertIn("bbbbbbbbbbbb", [e["args"].get("x") for e in self.read_trace()["traceEvents"] if "args" in e])
        whole = self.kpt.read_bytes()
        for bad in (b'"x":"aaaaaaaaaaaa,', b'"x":1}},{"a":{"b":', b'"x":[1,2,3,4,5,6,]', b'"x":NaN           ',
                    b'"x":"\xff\xfeaaaaaaaaaa"', b"                 ,", b'"x":"aaaaa\naaaaaa"', b'"x":1,"y" :     02'):
            with self.subTest(bad):
                self.kpt.write_bytes(whole)
                forge(self.kpt, b'"x":"bbbbbbbbbbbb"', bad)
                self.path.unlink(missing_ok=True)
                for command in (("convert", self.kpt, self.path), ("merge", self.kpt, "-o", self.path)):
                    reply = kpytrace_command(*command)
                    if self.path.exists():
                        self.read_trace()
                    self.assertEqual(reply.returncode, 1, command)
                    self.assertIn("it has an invalid note", reply.stderr)


if __name__ == "__main__":
    unittest.main()
