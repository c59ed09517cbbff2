"""torch.profiler in mode "native": which profiles kpytrace records itself, and profilers that begin and end in every
way."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

START = """
import json, os, threading, torch, recorded
from torch.profiler import ProfilerActivity, profile, record_function, schedule
CPU = [ProfilerActivity.CPU]

def marker():
    torch.ones(1)
"""

CLASSES = START + """
with profile(activities=CPU, with_stack=True) as prof:
    enabled = torch.autograd.profiler._is_profiler_enabled, torch.autograd._profiler_enabled()
    marker()
after = torch.autograd.profiler._is_profiler_enabled, torch.autograd._profiler_enabled()
print(json.dumps([isinstance(prof, torch.profiler.profile), recorded.is_native(prof), enabled, after,
                  recorded.counts(prof)["aten::ones"], recorded.calls(prof, "marker")]))
"""

WITHOUT_STACKS = START + """
with profile(activities=CPU) as prof:
    marker()
print(json.dumps([recorded.counts(prof)["aten::ones"], recorded.calls(prof, "marker"),
                  sum(event["cat"] == "python_function" for event in recorded.events(prof))]))
"""

# Each goes to Kineto, with one line for each reason.
NOT_NATIVE = START + """
from torch._C._profiler import _ExperimentalConfig
for options in ({"experimental_config": _ExperimentalConfig(adjust_profiler_step=True)}, {"with_modules": True},
                {"activities": [{ProfilerActivity.CPU: ["CPU_OP"]}]},
                {"record_shapes": True, "profile_memory": True, "with_stack": True},
                {"experimental_config": _ExperimentalConfig(adjust_profiler_step=True)}):
    with profile(**{"activities": CPU, **options}) as prof:
        marker()
    assert not recorded.is_native(prof), options
    assert any(event.name == "aten::ones" for event in prof.events()), options
with profile(activities=CPU, experimental_config=_ExperimentalConfig(record_python_gc_info=True)) as prof:
    marker()
print(json.dumps(recorded.is_native(prof)))
"""

OWN_CLASS = START + """
import kpytrace.torch
with profile(activities=CPU) as prof:
    marker()
assert not recorded.is_native(prof)
with kpytrace.torch.profile(activities=CPU, with_stack=True) as own:
    marker()
    with profile(activities=CPU) as inner:  # torch's own
        marker()
    marker()
assert isinstance(own, torch.profiler.profile) and isinstance(own, kpytrace.torch.profile)
with profile(activities=CPU) as after:
    marker()
print(json.dumps([recorded.is_native(own), recorded.is_native(inner), recorded.is_native(after),
                  recorded.counts(own)["aten::ones"], sum(e.name == "aten::ones" for e in inner.events()),
                  kpytrace.torch.installed()]))
"""

NESTED = START + """
with profile(activities=CPU, with_stack=True) as outer:
    marker()
    with profile(activities=CPU, with_stack=True) as inner:
        marker()
    marker()
with profile(activities=CPU, with_stack=True) as later:
    marker()
print(json.dumps([recorded.counts(prof)["aten::ones"] for prof in (outer, inner, later)]))
"""

OTHER_THREAD = START + """
prof = profile(activities=CPU, with_stack=True, profile_memory=True)
prof.start()
marker()

def end():
    marker()
    prof.stop()
thread = threading.Thread(target=end)
thread.start()
thread.join()
with profile(activities=CPU, profile_memory=True) as again:  # on the thread that has the first one's state
    marker()
print(json.dumps([recorded.counts(prof)["aten::ones"], recorded.counts(again)["aten::ones"],
                  torch.autograd._profiler_enabled()]))
"""

STOPPED_TWICE = START + """
prof = profile(activities=CPU)
prof.start()
marker()
prof.stop()
first = prof.profiler.kineto_results
try:
    prof.stop()
    second = "stopped"
except RuntimeError as error:
    second = "Kineto" in str(error) or "profiler" in str(error).lower()
with profile(activities=CPU) as later:
    marker()
print(json.dumps([bool(second), recorded.counts(later)["aten::ones"]]))
"""

NEVER_STOPPED = START + """
prof = profile(activities=CPU, with_stack=True, profile_memory=True)
prof.start()
marker()
print(1)
"""

ON_TRACE_READY = START + """
def fail(prof):
    raise KeyError("ready")
try:
    with profile(activities=CPU, on_trace_ready=fail) as prof:
        marker()
except KeyError as error:
    caught = str(error)
with profile(activities=CPU) as later:
    marker()
print(json.dumps([caught, recorded.counts(prof)["aten::ones"], recorded.counts(later)["aten::ones"]]))
"""

FORK = START + """
read, write = os.pipe()
with profile(activities=CPU, with_stack=True, profile_memory=True) as prof:
    marker()
    pid = os.fork()
    if pid == 0:
        marker()
        with profile(activities=CPU, with_stack=True, profile_memory=True) as own:
            marker()
        os.write(write, json.dumps([recorded.is_native(own), recorded.counts(own)["aten::ones"]]).encode())
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    marker()
print(json.dumps([status, json.loads(os.read(read, 100)), recorded.counts(prof)["aten::ones"]]))
"""

SCHEDULE = START + """
found = []
def ready(prof):
    found.append(recorded.counts(prof)["aten::ones"])
with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1, skip_first_wait=1),
             on_trace_ready=ready) as prof:
    for number in range(12):
        for _ in range(number):
            marker()
        prof.step()
print(json.dumps(found))
"""

CYCLES = START + """
import resource
def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
sizes = []
for number in range(1000):
    with profile(activities=CPU, with_stack=True, profile_memory=number % 2 == 0) as prof:
        marker()
    if number in (200, 999):
        sizes.append(held())
assert recorded.counts(prof)["aten::ones"] == 1
print(json.dumps(sizes[1] - sizes[0]))
"""

METADATA = START + """
prof = profile(activities=CPU, record_shapes=True)
prof.preset_metadata_json("before", "[1]")
prof.start()
prof.add_metadata("text", 'a "quote"')
marker()
prof.stop()
print(json.dumps(prof.profiler.kineto_results.metadata))
"""

TOGGLE = START + """
with profile(activities=CPU) as prof:
    marker()
    prof.toggle_collection_dynamic(False, CPU)
    marker()
    prof.toggle_collection_dynamic(True, CPU)
    marker()
print(json.dumps(recorded.counts(prof)["aten::ones"]))
"""

UNINSTALL = START + """
import kpytrace.torch
with profile(activities=CPU) as prof:
    marker()
    kpytrace.torch.uninstall()
    marker()
with profile(activities=CPU) as later:
    marker()
kpytrace.torch.install("native")
with profile(activities=CPU) as again:
    marker()
print(json.dumps([recorded.counts(prof)["aten::ones"], recorded.is_native(later), recorded.is_native(again)]))
"""

RESTORED = """
import json, torch
names = ("_prepare_profiler", "_enable_profiler", "_disable_profiler", "_toggle_collection_dynamic", "ProfilerConfig",
         "_add_metadata_json", "_is_kineto_stopped", "_kineto_step", "_profiler_enabled")
holders = (torch._C._autograd, torch.autograd, torch.autograd.profiler)
before = [vars(holder).get(name) for holder in holders for name in names]
import kpytrace.torch
kpytrace.torch.install("native")
changed = sum(vars(holder).get(name) is not old for (holder, name), old in
              zip([(holder, name) for holder in holders for name in names], before))
kpytrace.torch.uninstall()
after = [vars(holder).get(name) for holder in holders for name in names]
print(json.dumps([changed > 15, [new is old for new, old in zip(after, before)].count(False)]))
"""

# As many traces record operators as can: the profile is Kineto's. One of them has ended: the next is native.
TOO_MANY = START + """
import contextlib, kpytrace
with contextlib.ExitStack() as traces:
    for number in range(4):
        traces.enter_context(kpytrace.trace(torch=True))
    with profile(activities=CPU, with_stack=True, profile_memory=True) as prof:
        marker()
with profile(activities=CPU, profile_memory=True) as later:
    marker()
print(json.dumps([recorded.is_native(prof), sum(event.name == "aten::ones" for event in prof.events()),
                  recorded.is_native(later)]))
"""

TRACE_ID = START + """
import tempfile
with profile(activities=CPU, custom_trace_id_callback=lambda: "abc") as prof:
    marker()
with tempfile.TemporaryDirectory() as folder:
    prof.export_chrome_trace(os.path.join(folder, "x.json"))
    with open(os.path.join(folder, "x.json")) as file:
        print(json.dumps([recorded.is_native(prof), json.load(file)["trace_id"], prof.get_trace_id()]))
"""

# An execution trace at the same time, and what torch.distributed is.
OBSERVER = START + """
import socket, tempfile
import torch.distributed as dist
with socket.socket() as found:
    found.bind(("127.0.0.1", 0))
    port = found.getsockname()[1]
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=0, world_size=1)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "et.json")
    observer = torch.profiler.ExecutionTraceObserver().register_callback(path)
    with profile(activities=CPU, execution_trace_observer=observer) as prof:
        marker()
        dist.all_reduce(torch.ones(1))
    with open(path) as file:
        nodes = json.load(file)["nodes"]
dist.destroy_process_group()
info = json.loads(prof.profiler.kineto_results.metadata["distributedInfo"])
print(json.dumps([recorded.is_native(prof), any(node["name"] == "aten::ones" for node in nodes), info["backend"],
                  any("all_reduce" in name or "allreduce" in name for name in recorded.counts(prof))]))
"""

STACKS = START + """
import tempfile
from torch._C._profiler import _ExperimentalConfig
with profile(activities=CPU, with_stack=True, experimental_config=_ExperimentalConfig(verbose=True)) as prof:
    marker()
with tempfile.TemporaryDirectory() as folder:
    prof.export_stacks(os.path.join(folder, "stacks"))
    with open(os.path.join(folder, "stacks")) as file:
        print(json.dumps(["marker" in file.read(), recorded.is_native(prof)]))
"""

EVENT_TREE = START + """
with profile(activities=CPU) as prof:
    marker()
try:
    prof.profiler.kineto_results.experimental_event_tree()
except RuntimeError as error:
    print(json.dumps('mode="full"' in str(error)))
"""


class Native(unittest.TestCase):
    def value(self, code, mode="native", forked=True):
        return support.program(code, mode, forked=forked).value

    def test_torchs_classes_stay(self):
        self.assertEqual(self.value(CLASSES), [True, True, [True, True], [False, False], 1, 1])

    def test_without_stacks_there_are_no_calls(self):
        self.assertEqual(self.value(WITHOUT_STACKS), [1, 0, 0])

    def test_profiles_that_need_kineto(self):
        reply = support.program(NOT_NATIVE, "native", forked=True)
        self.assertEqual(reply.value, True)
        lines = [line for line in reply.stderr.splitlines() if line.startswith("kpytrace: a profile is recorded by")]
        self.assertEqual([line.rpartition(", because ")[2] for line in lines],
                         ["experimental_config has adjust_profiler_step", "with_modules=True was given",
                          "it has filters of activities", "record_shapes, profile_memory and with_stack together are "
                          "those of torch's memory profile"])

    def test_our_own_class(self):
        self.assertEqual(self.value(OWN_CLASS, None), [True, False, False, 3, 1, None])

    def test_nested(self):
        self.assertEqual(self.value(NESTED), [3, 1, 1])

    def test_stopped_in_another_thread(self):
        self.assertEqual(self.value(OTHER_THREAD), [1, 1, False])

    def test_stopped_twice(self):
        self.assertEqual(self.value(STOPPED_TWICE), [True, 1])

    def test_never_stopped(self):
        self.assertEqual(self.value(NEVER_STOPPED, forked=False), 1)

    def test_an_exception_in_on_trace_ready(self):
        self.assertEqual(self.value(ON_TRACE_READY), ["'ready'", 1, 1])

    def test_fork(self):
        self.assertEqual(self.value(FORK), [0, [True, 1], 2])

    def test_schedule(self):
        """Steps 2 and 3 of the first cycle are recorded, and 6 and 7 of the second."""
        self.assertEqual(self.value(SCHEDULE), [2 + 3, 6 + 7])

    def test_cycles_without_growth(self):
        self.assertLess(self.value(CYCLES), 4 << 20)

    def test_metadata(self):
        self.assertEqual(self.value(METADATA), {"record_shapes": "1", "before": "[1]", "text": '"a \\"quote\\""'})

    def test_toggle(self):
        self.assertEqual(self.value(TOGGLE), 2)

    def test_uninstall_while_one_runs(self):
        self.assertEqual(self.value(UNINSTALL), [2, False, True])

    def test_uninstall_restores_torchs_functions(self):
        self.assertEqual(self.value(RESTORED, None), [True, 0])

    def test_a_profile_that_cannot_begin_is_torchs(self):
        reply = support.program(TOO_MANY, "native", forked=True)
        self.assertEqual(reply.value, [False, 1, True])
        self.assertIn("by Kineto, because too many traces record torch's operators at once\n", reply.stderr)

    def test_trace_id(self):
        self.assertEqual(self.value(TRACE_ID), [True, "abc", "abc"])

    def test_an_observer_and_torch_distributed(self):
        self.assertEqual(self.value(OBSERVER), [True, True, "gloo", True])

    def test_export_stacks(self):
        self.assertEqual(self.value(STACKS), [True, True])

    def test_no_event_tree(self):
        self.assertEqual(self.value(EVENT_TREE), True)


if __name__ == "__main__":
    unittest.main()
