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

# What torch's own functions say of a profile, and settings of the process that it heeds.
STATE = OWN + """
import tempfile
kpytrace.torch.install("native")

def kind():
    return str(torch._C._autograd._profiler_type()).rpartition(".")[2]

def categories(prof):
    with tempfile.TemporaryDirectory() as folder:
        prof.export_chrome_trace(os.path.join(folder, "x.json"))
        with open(os.path.join(folder, "x.json")) as file:
            return {event.get("cat") for event in json.load(file)["traceEvents"]}
kinds, links = [kind()], []
for wanted in (True, False):
    torch._C._profiler._set_fwd_bwd_enabled_val(wanted)
    with torch.profiler.profile(activities=CPU) as prof:
        kinds.append(kind())
        (torch.ones(1, requires_grad=True) * 2).sum().backward()
    stats = prof.profiler._stats
    unread = stats.number_of_events, stats.function_events_build_tree_call_duration_us
    links.append(["fwdbwd" in categories(prof), any(event.flow_id() for event in prof.profiler.kineto_results.events())])
    prof.events()
kinds.append(kind())
read = [stats.number_of_events > 0, stats.parse_kineto_call_duration_us > 0,
        stats.function_events_build_tree_call_duration_us > 0]
print(json.dumps([kinds, links, unread, read, recorded.is_native(prof)]))
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
            heads[suffix] = b"aten::ones" in file.read()
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

    def test_state_and_settings(self):
        self.assertEqual(self.value(STATE), [["NONE", "KINETO", "KINETO", "NONE"], [[True, True], [False, False]], [0, 0],
                                             [True, True, True], True])

    def test_our_own_class_with_all_options(self):
        self.assertEqual(self.value(OWN_CLASS_WITH_ALL), [True, 1, 4, [], True])

    def test_files_of_our_own_class(self):
        self.assertEqual(self.value(OWN_FILES), {"kpt": True, "pftrace": True, "html": False, "collapsed": True,
                                                 "speedscope.json": True, "json.gz": True})


if __name__ == "__main__":
    unittest.main()
