"""Compares the ctypes mirror of the contract in abi_host.py with the contract's golden layout."""

import ctypes
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from host_case import abi_host

GOLDEN = pathlib.Path(__file__).parents[3] / "abi" / "golden" / "abi_layout.txt"


class Mirror(unittest.TestCase):
    def test_every_field_is_where_the_contract_has_it(self):
        text = GOLDEN.read_text()
        for mirror, name in abi_host.MIRRORS.items():
            size, = re.findall(rf"^struct {name} size (\d+) ", text, re.M)
            self.assertEqual(ctypes.sizeof(mirror), int(size), name)
            rows = re.findall(rf"^field {name}\.(\w+) offset (\d+) size (\d+)$", text, re.M)
            mirrored = [(field, str(getattr(mirror, field).offset), str(getattr(mirror, field).size))
                        for field, _ in mirror._fields_]
            self.assertEqual(mirrored, rows, name)


if __name__ == "__main__":
    unittest.main()
