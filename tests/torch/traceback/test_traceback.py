"""torch's combined tracebacks with kpytrace's Python frames: the same as with torch's own unwinder, without its
bugs."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

if support.torch_version() != (2, 13):
    print("skipped: kpytrace serves the tracebacks of torch 2.13")
    raise SystemExit(77)

# Gathers on one line with torch's own unwinder and with ours, whichever SERVE says.
BOTH = """
import gc, json, sys, types, weakref, torch, kpytrace.torch
from torch.utils._traceback import CapturedTraceback
from torch._C._profiler import gather_traceback, symbolize_tracebacks

def serve(ours):
    if ours:
        kpytrace.torch.install()
        assert kpytrace.torch.tracebacks() is None, kpytrace.torch.tracebacks()
    else:
        kpytrace.torch.uninstall()

def deep(n, function):
    return function() if n == 0 else deep(n - 1, function)

def both(function, depth=3):
    found = []
    for ours in (False, True):
        serve(ours)
        found.append(deep(depth, function))
    return found

def make(name, filename="<made>", body="return CapturedTraceback.extract()"):
    scope = {"CapturedTraceback": CapturedTraceback}
    exec(compile(f"def {name}():\\n    {body}\\n", filename, "exec"), scope)
    return scope.pop(name)

def frames(raw):
    return [(f["name"], f["filename"], f["line"]) for f in symbolize_tracebacks([raw])[0]]

def answer(*values):
    print(json.dumps(values))
"""


def program(code, **variables):
    return support.program(BOTH + code, forked=True, **variables)


class Parity(unittest.TestCase):
    def test_python(self):
        stock, ours, formats = program("""
def show(where):
    return [(f.filename, f.lineno, f.name) for f in where.summary()]
a, b = both(CapturedTraceback.extract)
answer(show(a), show(b), a.format() == b.format() == CapturedTraceback.format_all([b])[0])
""").value
        self.assertEqual(stock, ours)
        self.assertEqual([name for _, _, name in ours], ["<module>", "both"] + ["deep"] * 4)
        self.assertTrue(formats)

    def test_depths(self):
        self.assertEqual(program("""
sys.setrecursionlimit(10000)
def raw(): return gather_traceback(True, False, False)
found = []
for depth in (0, 1, 120, 124, 127, 128, 129, 300, 3000):
    a, b = both(raw, depth)
    found.append(frames(a) == frames(b) and len(frames(b)) == depth + 4)
answer(found)
""").value, [[True] * 9])

    def test_generators_and_comprehensions(self):
        equal, names = program("""
def raw(): return gather_traceback(True, False, False)
def numbers():
    yield [raw() for _ in range(1)][0]
a, b = both(lambda: next(numbers()))
answer(frames(a) == frames(b), [name for name, _, _ in frames(b)][:5])
""").value
        self.assertTrue(equal)
        self.assertEqual(names[0], "raw")
        self.assertIn("numbers", names)

    def test_merged_with_native_frames(self):
        equal, python, native = program("""
def raw(): return gather_traceback(True, False, True)
for _ in range(20): # CPython itself calls differently, once it knows what
    a, b = both(raw)
names = [name for name, _, _ in frames(b)]
answer(frames(a) == frames(b), names.count("deep"), sum("PyEval_EvalFrame" in n for n in names))
""", TORCH_SYMBOLIZE_MODE="dladdr").value
        self.assertTrue(equal)
        self.assertEqual(python, 4)
        self.assertGreater(native, 0)

    def test_without_python_frames(self):
        self.assertEqual(program("""
a, b = both(lambda: gather_traceback(False, False, False))
answer(frames(a), frames(b))
""").value, [[], []])

    def test_script(self):
        equal, names = program("""
def raw(): return gather_traceback(True, True, False)
a, b = both(raw)
answer(frames(a) == frames(b), [name for name, _, _ in frames(b)][:2])
""").value
        self.assertEqual((equal, names), (True, ["raw", "deep"]))

    def test_identity(self):
        self.assertEqual(program("""
serve(True)
def raw(): return gather_traceback(True, False, False)
one, two = deep(2, raw), deep(4, raw)
a, b, c = symbolize_tracebacks([one, one, two])
answer(a is b, a[0] is c[0], a is c)
""").value, [True, True, False])

    def test_threads(self):
        self.assertEqual(program("""
import threading
serve(True)
found = []
def raw():
    found.append(gather_traceback(True, False, False))
def work():
    for i in range(50): deep(i % 5, raw)
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
names = [[f["name"] for f in frames] for frames in symbolize_tracebacks(found)]
answer(len(names), all(n[0] == "raw" and n[1] == "deep" and "work" in n and "run" in n for n in names))
""").value, [200, True])

    def test_in_backward(self):
        """The engine calls back into Python, with anomaly metadata."""
        names, error = program("""
serve(True)
found = []
def hook(gradient):
    found.append(gather_traceback(True, False, False))
    raise KeyError("on purpose")
with torch.autograd.detect_anomaly(check_nan=False):
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    x.register_hook(hook)
    try:
        y.backward()
        error = None
    except KeyError as caught:
        error = str(caught)
answer([name for name, _, _ in frames(found[0])][:2], error)
""").value
        self.assertEqual(names, ["hook", "_engine_run_backward"])
        self.assertEqual(error, "'on purpose'")

    def test_generated_code(self):
        code = """
def stack_frames_for_code(filename, line):
    if filename != "<made>": return None
    if {fail}: raise ZeroDivisionError("on purpose")
    return [{{"name": "kernel", "filename": "model.py", "line": 10 * line}}]
cache = types.ModuleType("torch._inductor.codecache")
cache.PyCodeCache = types.SimpleNamespace(stack_frames_for_code=stack_frames_for_code)
torch._inductor = types.SimpleNamespace(codecache=cache)
sys.modules[cache.__name__] = cache
seen = []
sys.unraisablehook = lambda info: seen.append(str(info.exc_value))
function = make("call", body="return gather()")
function.__globals__["gather"] = lambda: gather_traceback(True, False, False)
a, b = both(function)
answer(frames(a) == frames(b) if not {fail} else None, [f[0] for f in frames(b)][:4],
       [f[2] for f in frames(b)][1:3], seen)
"""
        equal, names, lines, seen = program(code.format(fail=False)).value
        self.assertEqual((equal, names), (True, ["<lambda>", "call", "kernel", "deep"]))
        self.assertEqual((lines, seen), ([2, 20], []))
        _, names, _, seen = program(code.format(fail=True)).value
        self.assertEqual(names[:3], ["<lambda>", "call", "deep"])
        self.assertEqual(set(seen), {"on purpose"})


class Bugs(unittest.TestCase):
    """Errors of torch's own unwinder: each test has failed with it."""

    def test_a_callback_of_dying_code_may_gather(self):
        """torch's unwinder hangs: it frees code under the lock that gathering takes."""
        self.assertEqual(program("""
serve(True)
found, kept = [], []
for i in range(20):
    function = make(f"f{i}")
    kept.append(function())
    kept.append(weakref.ref(function.__code__, lambda _: found.append(CapturedTraceback.extract())))
    del function
tracebacks = kept[::2]
names = [where.summary()[-1].name for where in tracebacks]
kept[::2] = [None] * 20
del tracebacks
gc.collect()
CapturedTraceback.extract()
answer(len(found), names == [f"f{i}" for i in range(20)])
""").value, [20, True])

    def test_code_dies_on_time(self):
        """torch's unwinder keeps code alive as long as the traceback."""
        self.assertEqual(program("""
def alive():
    function = make("short_lived")
    where, code = function(), weakref.ref(function.__code__)
    del function
    gc.collect()
    return [code() is not None, where.summary()[-1].name]
answer(*both(alive))
""").value, [[True, "short_lived"], [False, "short_lived"]])

    def test_one_odd_name_spoils_no_batch(self):
        """torch's unwinder refuses the whole batch."""
        stock, ours = program("""
odd = make("odd", "o\\udcffdd.py")
def tried():
    try:
        return [[f["name"], f["filename"]] for f, *_ in
                (frames[1:] for frames in symbolize_tracebacks([odd().tb, make("plain")().tb]))]
    except UnicodeError as error:
        return type(error).__name__
    except RuntimeError as error:
        return "RuntimeError"
answer(*both(tried))
""").value
        self.assertIsInstance(stock, str)
        self.assertEqual(ours, [["odd", "o\\udcffdd.py"], ["plain", "<made>"]])


class Life(unittest.TestCase):
    def test_uninstall(self):
        """torch's own unwinder is restored; our tracebacks can still be read, also together with its."""
        values = program("""
def alive():
    function = make("kept")
    where, code = function(), weakref.ref(function.__code__)
    del function
    gc.collect()
    return where, code() is not None
found = [alive()]
for ours in (True, False, True, False):
    serve(ours)
    found.append(alive())
wheres = [where.tb for where, _ in found]
lists = symbolize_tracebacks(wheres + wheres[::-1])
answer([one for _, one in found], [[f["name"] for f in frames[1:3]] for frames in lists],
       kpytrace.torch.tracebacks())
""").value
        self.assertEqual(values[0], [True, False, True, False, True])
        self.assertEqual(values[1], [["kept", "alive"]] * 10)
        self.assertIn("not installed", values[2])

    def test_not_wanted(self):
        values = program("""
kpytrace.torch.install(tracebacks=False)
first = kpytrace.torch.tracebacks()
kpytrace.torch.install()
second = kpytrace.torch.tracebacks()
kpytrace.torch.install(tracebacks=False)
function = make("f")
where, code = function(), weakref.ref(function.__code__)
del function
gc.collect()
answer(first, second, kpytrace.torch.tracebacks(), code() is not None)
""").value
        self.assertEqual(values[1], None)
        self.assertIn("tracebacks=False", values[0])
        self.assertEqual(values[0], values[2])
        self.assertTrue(values[3], "torch's own keeps code alive, and was not asked")

    def test_a_torch_that_was_not_tried(self):
        why, mode, alive = program("""
kpytrace.torch.TRACEBACKS_OF = ((2, 1),)
kpytrace.torch.install()
function = make("f")
where, code = function(), weakref.ref(function.__code__)
del function
gc.collect()
answer(kpytrace.torch.tracebacks(), kpytrace.torch.installed(), code() is not None)
""").value
        self.assertIn("is not tested", why)
        self.assertEqual((mode, alive), ("full", True))

    def test_exit_with_live_tracebacks(self):
        self.assertEqual(program("""
serve(True)
sys.kept = [CapturedTraceback.extract() for _ in range(1000)]
class Late:
    def __del__(self, extract=CapturedTraceback.extract): extract()
late = Late()
answer("end")
""").value, ["end"])

    def test_fork(self):
        self.assertEqual(program("""
import os
serve(True)
where = make("parent")()
child = os.fork()
if child == 0:
    good = where.summary()[-1].name == "parent" and make("child")().summary()[-1].name == "child"
    os._exit(0 if good else 1)
answer(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""").value, [0])

    def test_beside_a_profiler(self):
        names, traced = program("""
import traced
serve(True)
def work():
    torch.ones(1)
    return gather_traceback(True, False, False)
prof = traced.run(work)
answer([f[0] for f in frames(prof.result)][:2],
       sum(row["name"].endswith(": work") for row in traced.calls(prof)))
""").value
        self.assertEqual((names[0], traced), ("work", 1))


if __name__ == "__main__":
    unittest.main()
