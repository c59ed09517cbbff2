"""torch.profiler in mode "native" has the parameters and fields of torch's own."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

SIGNATURES = """
import inspect, json, torch
kind = torch.autograd.profiler.profile

def signatures():
    return [str(inspect.signature(value)) for name, value in sorted(vars(kind).items()) if inspect.isfunction(value)]
before = signatures()
import kpytrace.torch
kpytrace.torch.install("native")
print(json.dumps([signatures() == before, before != []]))
"""

FIELDS = """
import json, re
from kpytrace.torch._native import config
from torch._C._profiler import _ExperimentalConfig
known = set(re.findall(r"(\\w+): [^,]*(?:\\[[^]]*\\])? = ", _ExperimentalConfig.__init__.__doc__))
print(json.dumps(sorted(known ^ {*config._SERVED, *config._REFUSED})))
"""


class Surface(unittest.TestCase):
    def value(self, code):
        return support.program(code, forked=True).value

    def test_signatures_are_torchs(self):
        self.assertEqual(self.value(SIGNATURES), [True, True])

    @unittest.skipUnless(support.torch_version() == (2, 13), "another torch has other fields")
    def test_fields_of_experimental_config(self):
        """Each is served or refused."""
        self.assertEqual(self.value(FIELDS), [])


if __name__ == "__main__":
    unittest.main()
