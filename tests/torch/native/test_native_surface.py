"""torch.profiler in mode "native" has the parameters and fields of torch's own; kpytrace.torch.profile has its own."""

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

OWN = """
import json, kpytrace.torch, os, recorded, torch
CPU = [torch.profiler.ProfilerActivity.CPU]

def marker():
    torch.ones(1)
"""

# A program that uses the class knows that there is no memory profile.
OWN_CLASS_WITH_ALL = OWN + """
with kpytrace.torch.profile(activities=CPU, record_shapes=True, profile_memory=True, with_stack=True) as prof:
    marker()
event, = [event for event in prof.events() if event.name == "aten::ones"]
try:
    prof._memory_profile()
except RuntimeError as error:
    print(json.dumps([recorded.is_native(prof), recorded.calls(prof, "marker"), event.cpu_memory_usage,
                      event.input_shapes[0], 'mode="full"' in str(error)]))
"""

OWN_FILES = OWN + """
import gzip, tempfile, unittest.mock
with kpytrace.torch.profile(activities=CPU, with_stack=True) as prof:
    marker()
with tempfile.TemporaryDirectory() as folder:
    heads = {}
    for suffix in ("kpt", "pftrace", "html", "collapsed", "speedscope.json"):
        prof.export_chrome_trace(os.path.join(folder, "x." + suffix))
        with open(os.path.join(folder, "x." + suffix), "rb") as file:
            heads[suffix] = b"ones" in file.read()
    with unittest.mock.patch("gzip.open", side_effect=AssertionError("torch compresses")):
        prof.export_chrome_trace(os.path.join(folder, "x.json.gz"))
    with gzip.open(os.path.join(folder, "x.json.gz")) as file:
        heads["json.gz"] = any(event["name"] == "aten::ones" for event in json.load(file)["traceEvents"])
print(json.dumps(heads))
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

    def test_our_own_class_with_all_options(self):
        self.assertEqual(self.value(OWN_CLASS_WITH_ALL), [True, 1, 4, [], True])

    def test_files_of_our_own_class(self):
        self.assertEqual(self.value(OWN_FILES), {"kpt": True, "pftrace": True, "html": False, "collapsed": True,
                                                 "speedscope.json": True, "json.gz": True})


if __name__ == "__main__":
    unittest.main()
