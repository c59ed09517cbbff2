"""torch.profiler in mode "native": profiles of several threads, and profiles that are prepared and do not begin at
once, or that a signal handler interrupts. Inputs that operators rarely have."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

START = """
import gc, json, os, tempfile, threading, torch, recorded
from torch.profiler import ProfilerActivity, profile, schedule
CPU = [ProfilerActivity.CPU]
WARMUP = {"activities": CPU, "schedule": schedule(wait=0, warmup=1, active=1)}

def ones(prof):
    return {event.key: event.count for event in prof.key_averages()}.get("aten::ones", 0)
"""

# The first profile to begin is the first to end. Each has the operators of its own thread.
OVERLAPPING = START + """
began, ended, others = threading.Event(), threading.Event(), []

def second():
    with profile(activities=CPU, **OPTIONS) as prof:
        torch.ones(1)
        began.set()
        ended.wait()
        torch.ones(1)
        torch.ones(1)
    others.append(prof)
    with profile(activities=CPU, with_modules=True) as later:  # torch's own
        torch.ones(1)
    others.append(later)
thread = threading.Thread(target=second)
with profile(activities=CPU, profile_memory=True) as first:
    torch.ones(1)
    thread.start()
    began.wait()
ended.set()
thread.join()
print(json.dumps([recorded.is_native(first), ones(first), [ones(prof) for prof in others]]))
"""

# Operators of a thread that is there before, of one that is born, and of one of autograd's, whose work is the profile's.
ALL_THREADS = START + """
from torch._C._profiler import _ExperimentalConfig as Config
go, done, end = threading.Event(), threading.Event(), threading.Event()

def early():
    go.wait()
    torch.ones(1)
    done.set()
    end.wait()
counts = []
for options in ({}, {"experimental_config": Config(profile_all_threads=True)}, {"profile_memory": True},
                {"record_shapes": True}, {"with_stack": True}):
    go.clear(), done.clear(), end.clear()
    thread = threading.Thread(target=early, daemon=True)
    thread.start()
    with profile(activities=CPU, **options) as prof:
        go.set()
        done.wait()
        late = threading.Thread(target=torch.ones, args=(1,))
        late.start()
        late.join()
        if not options:  # torch's own raises with all threads
            prof.toggle_collection_dynamic(False, CPU)
            torch.ones(1)
            prof.toggle_collection_dynamic(True, CPU)
        late = threading.Thread(target=torch.ones, args=(1,))
        late.start()
        late.join()
        torch.jit.wait(torch.jit.fork(torch.ones, 1))
        torch.ones(1)
    end.set()
    thread.join()
    counts.append(ones(prof))
print(json.dumps(counts))
"""

PREPARED = START + """
first, second = profile(**WARMUP), profile(**WARMUP)
first.start()
second.start()
with torch.autograd.profiler.emit_itt():  # begins, and was not prepared
    torch.ones(1)
seen = []

def on_trace_ready(prof):
    seen.append([recorded.is_native(prof), ones(prof)])
for prof in (first, second):
    prof.on_trace_ready = on_trace_ready
    prof.step()
    torch.ones(1)
    prof.stop()
print(json.dumps(seen))
"""

UNINSTALLED = START + """
import kpytrace.torch
prof = profile(**WARMUP)
prof.start()
kpytrace.torch.uninstall()
prof.step()
torch.ones(1)
prof.stop()
native = recorded.is_native(prof)
kpytrace.torch.uninstall()
print(json.dumps([native, ones(prof), kpytrace.torch.installed()]))
"""

FORK = START + """
prof = profile(**WARMUP)
prof.start()
child = os.fork()
prof.step()
torch.ones(1)
prof.stop()
right = recorded.is_native(prof) and ones(prof) == 1
if child == 0:
    os._exit(0 if right else 1)
print(json.dumps([os.waitpid(child, 0)[1], right]))
"""

# The thread that a profile began on, which it did not end on, is free for torch's own profiles.
ENDED_ELSEWHERE = START + """
import kpytrace.torch

def ended_elsewhere():
    prof = profile(activities=CPU, profile_memory=True)
    prof.start()
    thread = threading.Thread(target=prof.stop)
    thread.start()
    thread.join()
seen = []
ended_elsewhere()
seen.append(torch.autograd._profiler_enabled())
ended_elsewhere()
with profile(activities=CPU, with_modules=True) as prof:  # torch's own
    torch.ones(1)
seen += [recorded.is_native(prof), ones(prof)]
ended_elsewhere()
kpytrace.torch.uninstall()
with profile(activities=CPU) as prof:
    torch.ones(1)
seen += [recorded.is_native(prof), ones(prof), torch.autograd._profiler_enabled()]
kpytrace.torch.install("native")
ready, gone = threading.Event(), threading.Event()

def other():
    prof = profile(activities=CPU, profile_memory=True)
    prof.start()
    others.append(prof)
    ready.set()
    gone.wait()
    with profile(activities=CPU) as prof:
        torch.ones(1)
    others.append(prof)
others = []
thread = threading.Thread(target=other)
thread.start()
ready.wait()
others[0].stop()
kpytrace.torch.uninstall()
gone.set()
thread.join()
kpytrace.torch.uninstall()
seen += [recorded.is_native(others[1]), ones(others[1])]
print(json.dumps(seen))
"""

# torch's C++ marks these only in a thread that it sees a profile in.
FAST_RECORDS = START + """
from torch._C._profiler import _RecordFunctionFast

def mark(name):
    with _RecordFunctionFast(name):
        pass

def backward():
    class Marks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x
        @staticmethod
        def backward(ctx, grad):
            mark("backward")
            return grad
    Marks.apply(torch.ones(1, requires_grad=True)).sum().backward()

with profile(activities=CPU) as prof:
    mark("first")
    with profile(activities=CPU) as inner:
        mark("in native")
    mark("second")
    with profile(activities=CPU, with_modules=True) as own:  # torch's own
        mark("in torch's")
    mark("third")
    try:
        torch.autograd.profiler._enable_profiler(1, 2)
    except TypeError:
        mark("fourth")
    backward()
    with profile(activities=CPU, profile_memory=True) as memory:
        mark("with memory")
mark("after")
with profile(activities=CPU, record_shapes=True) as shapes:
    with _RecordFunctionFast("named", keyword_values={"scope": "user_scope", "more": 1}):
        mark("unnamed")
scopes = {event.name: event.is_user_annotation for event in shapes.events()}
print(json.dumps([scopes] + [[event.name for event in one.events() if event.name in
                   ("first", "second", "third", "fourth", "in native", "in torch's", "backward", "with memory")] for one in (prof, inner, own, memory)]))
"""

# A fork's child has the state of the parent's profile.
FORK_WITH_MEMORY = START + """
with profile(activities=CPU, profile_memory=True) as prof:
    child = os.fork()
    if child == 0:
        with profile(activities=CPU, with_modules=True) as own:  # torch's own
            torch.ones(1)
        os._exit(0 if ones(own) == 1 else 1)
    status = os.waitpid(child, 0)[1]
print(json.dumps(status))
"""

# An interruption in stop() must not leave the trace with torch, which has room for few.
INTERRUPTED = START + """
import kpytrace.torch._native.session as session

class Clock:
    is_interrupted = False

    def time_ns(self):
        if self.is_interrupted:
            raise KeyboardInterrupt
        return clock.time_ns()
clock, session.time = session.time, Clock()
for _ in range(6):
    prof = profile(activities=CPU, profile_memory=True)
    prof.start()
    session.time.is_interrupted = True
    try:
        prof.stop()
    except KeyboardInterrupt:
        session.time.is_interrupted = False
    del prof
    gc.collect()
    torch.ones(1)
with profile(activities=CPU, profile_memory=True) as prof:
    torch.ones(1)
print(json.dumps([recorded.is_native(prof), ones(prof)]))
"""

READERS = START + """
from concurrent.futures import ThreadPoolExecutor
import kpytrace.torch
sys.setswitchinterval(1e-5)

def read(step, prof, folder, readers):
    readers.wait()
    if step < 2:
        prof.profiler.kineto_results.save(os.path.join(folder, f"{step}.json"))
    elif step < 4:
        prof.export_chrome_trace(os.path.join(folder, f"{step}.kpt"))
    elif step < 6:
        prof.key_averages(group_by_input_shape=True, group_by_stack_n=3)
    else:
        prof.events()
with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(8) as pool:
    for _ in range(3):
        with kpytrace.torch.profile(activities=CPU, with_stack=True, record_shapes=True) as prof:
            for _ in range(3000):
                torch.ones(1)
        readers = threading.Barrier(8)
        list(pool.map(lambda step: read(step, prof, folder, readers), range(8)))
print(json.dumps(ones(prof)))
"""

DIMENSIONS = START + """
flops = []
for count in (2, 65, 200):
    x = torch.ones([3] + [1] * (count - 1))
    with profile(activities=CPU, with_flops=True) as prof:
        torch.mul(x, x)
    flops += [event.flops for event in prof.events() if event.name == "aten::mul"]
print(json.dumps(flops))
"""

# torch refuses it, after it began.
REFUSED = START + """
x = torch.ones(1, 1, 1, 1)
with profile(activities=CPU, with_flops=True) as prof:
    try:
        torch.conv2d(x, x, stride=-1, padding=2 ** 62)
    except RuntimeError:
        pass
print(json.dumps([event.flops for event in prof.events() if event.name == "aten::conv2d"]))
"""


class NativeThreadsTest(unittest.TestCase):
    def value(self, program):
        return support.program(program, "native", forked=True).value

    def test_profiles_overlap(self):
        program = OVERLAPPING.replace("**OPTIONS", "profile_memory=True")
        self.assertEqual(self.value(program), [True, 1, [3, 1]])

    def test_one_of_torchs_overlaps(self):
        """In its thread, the first profile records, too: the state of torch's own hides whether it is not to."""
        program = OVERLAPPING.replace("**OPTIONS", "with_modules=True")
        self.assertEqual(self.value(program), [True, 2, [3, 1]])

    def test_other_threads(self):
        self.assertEqual(self.value(ALL_THREADS), [2, 5, 2, 2, 2])
        self.assertEqual(support.program(ALL_THREADS, forked=True).value, [2, 5, 2, 2, 2])

    def test_two_are_prepared(self):
        self.assertEqual(self.value(PREPARED), [[True, 1], [True, 1]])

    def test_uninstall_while_one_is_prepared(self):
        self.assertEqual(self.value(UNINSTALLED), [True, 1, None])

    def test_fork_while_one_is_prepared(self):
        self.assertEqual(self.value(FORK), [0, True])

    def test_ended_in_another_thread(self):
        self.assertEqual(self.value(ENDED_ELSEWHERE), [False, False, 1, False, 1, False, False, 1])

    def test_fast_records(self):
        self.assertEqual(self.value(FAST_RECORDS), [
            {"named": True, "unnamed": False},
            ["first", "in native", "second", "in torch's", "third", "fourth", "backward", "with memory"],
            ["in native"], ["in torch's"], ["with memory"]])

    def test_fork_with_memory(self):
        self.assertEqual(self.value(FORK_WITH_MEMORY), 0)

    def test_interruptions_of_stop(self):
        self.assertEqual(self.value(INTERRUPTED), [True, 1])

    def test_readers_of_one_result(self):
        self.assertEqual(self.value("import sys\n" + READERS), 3000)

    def test_flops_of_many_dimensions(self):
        self.assertEqual(self.value(DIMENSIONS), [3, 3, 3])

    def test_flops_of_a_call_that_is_refused(self):
        self.assertEqual(self.value(REFUSED), [0])


if __name__ == "__main__":
    unittest.main()
