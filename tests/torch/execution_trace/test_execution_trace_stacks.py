"""Each operator has the Python stack of its begin, also if the operator around it, or before it, has a similar
stack."""

import os
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

import et
import torch
from torch.profiler import record_function
from torch.utils._python_dispatch import TorchDispatchMode

sys.path += filter(None, [os.environ.get("KPT_GREENLETS")])
try:
    import greenlet
except ImportError:
    greenlet = None


@torch.jit.ignore
def in_python(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def in_and_out(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(in_python(x), x)


def on_another_thread(x: torch.Tensor) -> torch.Tensor:
    return torch.jit.wait(torch.jit.fork(in_and_out, x))


def leave_python(path):
    """A thread of torch runs operators in Python and then other operators, without a Python thread state."""
    torch.jit.script(in_and_out)
    work = torch.jit.script(on_another_thread)
    et.record(path, lambda: [work(torch.ones(2, 2)) for _ in range(20)])


def note(stacks):
    """Adds the caller's stack, and returns its number."""
    frame, lines = sys._getframe(1), []
    while frame:
        lines.append((frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    stacks.append(lines)
    return len(stacks) - 1


def autograd(forward, backward=None):
    """Returns a function of autograd that calls these."""
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return forward(x)

        @staticmethod
        def backward(context, gradient):
            return backward(gradient)

    return Function.apply


def number_of(node):
    return int(node["inputs"]["values"][1])


def line_of(trace, name, function):
    """Returns the lines of FUNCTION in all operators of that name."""
    lines = {line for node in et.named(trace, name) for frame, _, line in et.stack(trace, node)
             if frame.rpartition(".")[2] == function}
    assert len(lines) == 1, lines
    return lines.pop()


class Stacks(unittest.TestCase):
    def setUp(self):
        self.stacks = []

    def op(self):
        return torch.full((1,), note(self.stacks))

    def check(self, work, least, **options):
        """Runs WORK twice under an observer. Checks that its operators, at least MIN, have the noted stacks."""
        def twice():
            for _ in range(2):
                work()

        with et.folder() as folder:
            trace = et.record(os.path.join(folder, "trace.json"), twice, **options)
        self.compare(trace, least * 2)
        return trace

    def compare(self, trace, least):
        nodes = {node["id"]: node for node in et.operators(trace)}
        found = et.named(trace, "aten::full")
        self.assertGreaterEqual(len(found), least)
        for node in found:
            have = [(name.rpartition(".")[2], line) for name, _, line in et.stack(trace, node)]
            self.assertEqual(have, self.stacks[number_of(node)])
        for node in nodes.values():
            around = nodes.get(node["ctrl_deps"])
            if around and around["name"] == "aten::full":
                self.assertEqual(et.own(node)["stack"], et.own(around)["stack"])

    def test_the_same_function_from_other_lines(self):
        def work():
            self.op()
            self.op()
            for _ in range(3):
                self.op()

        self.check(work, 5)

    def test_recursion(self):
        def down(depth):
            if depth % 3 == 0:
                self.op()
            if depth:
                down(depth - 1)
            self.op()

        self.check(lambda: down(40), 50)

    def test_annotations(self):
        def work():
            with record_function("a"):
                self.op()
                with record_function("b"):
                    self.op()
                self.op()
            self.op()

        trace = self.check(work, 4)
        self.assertEqual(line_of(trace, "a", "work") + 2, line_of(trace, "b", "work"))

    def test_annotations_begun_by_a_function(self):
        """They begin at one line of one frame, which is called from two lines."""
        class Mark:
            def __init__(self, name):
                self.guard = torch._C._profiler._RecordFunctionFast(name)

            def __enter__(self):
                self.guard.__enter__()

            def __exit__(self, *error):
                self.guard.__exit__(*error)

        def work():
            with Mark("first"):
                with Mark("second"):
                    self.op()

        with torch.profiler.profile():
            trace = self.check(work, 1)
        self.assertEqual(line_of(trace, "first", "work") + 1, line_of(trace, "second", "work"))

    def test_function_of_autograd(self):
        def double(x):
            self.op()
            y = x * 2
            self.op()
            return y

        twice = autograd(double, double)

        def work():
            x = torch.ones(2, requires_grad=True)
            y = twice(x)
            y.register_hook(lambda gradient: self.op() + gradient)
            self.op()
            twice(y).sum().backward()
            self.op()

        self.check(work, 11)

    def test_operators_that_call_python(self):
        test = self

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                result = function(*args, **(kwargs or {}))
                if function is torch.ops.aten.mul.Tensor:
                    test.op()
                    test.op()
                return result

        def work():
            x = torch.ones(2)
            with Mode():
                x * 2
                x * 2
            self.op()

        self.check(work, 5)

    def test_generators(self):
        def steps():
            for _ in range(3):
                self.op()
                yield
                self.op()

        def work():
            one, other = steps(), steps()
            for generator in (one, other, one):
                next(generator)
                self.op()
            next(other)
            next(one)
            self.op()

        self.check(work, 12)

    @unittest.skipUnless(greenlet, "no greenlet")
    def test_greenlets(self):
        """A switch inside an operator: other operators begin in another stack while it is open."""
        def leave(x):
            greenlet.getcurrent().parent.switch()
            return x.clone()

        switch = autograd(leave)

        def inside():
            self.op()
            switch(torch.ones(1))
            self.op()

        def work():
            both = [greenlet.greenlet(inside), greenlet.greenlet(inside)]
            for _ in range(2):
                for one in both:
                    one.switch()
                    self.op()

        self.check(work, 8)

    def test_threads(self):
        def work():
            threads = [threading.Thread(target=self.op) for _ in range(4)]
            for thread in threads:
                thread.start()
                thread.join()
                self.op()

        self.check(work, 8)

    def test_a_thread_that_has_left_python(self):
        """The freed thread state is not read: freed memory is filled with invalid addresses."""
        with et.folder() as folder:
            path = os.path.join(folder, "trace.json")
            support.program(f"""
                import test_execution_trace_stacks
                test_execution_trace_stacks.leave_python({path!r})""", PYTHONMALLOC="debug")
            trace = et.load(path)
        for node in et.named(trace, "aten::sin"):
            self.assertEqual(et.stack(trace, node)[0][0], "in_python")
        for name in "aten::linear", "aten::t", "aten::transpose":
            self.assertEqual([et.own(node).get("stack") for node in et.named(trace, name)], [None] * 20)

    def test_a_stop_inside_of_an_operator(self):
        observers = []

        def pause(x):
            observers[0].stop()
            self.op()
            observers[0].start()
            self.op()
            return x.clone()

        again = autograd(pause)

        def work():
            again(torch.ones(1))
            self.op()
            again(torch.ones(1))

        self.check(work, 3, before=observers.append)


# torch's operators run without the GIL: there a code object of 3.11 can be remembered only when somebody has named it.
NAMED = """
import ctypes, et, json, os, sys, threading, time, torch
from kpytrace.torch import ExecutionTraceObserver
api = ctypes.pythonapi
last = api._PyEval_RequestCodeExtraIndex(None)
def is_named(function):
    value = ctypes.c_void_p()
    return any(api._PyCode_GetExtra(ctypes.py_object(function.__code__), ctypes.c_ssize_t(i), ctypes.byref(value)) == 0
               and value.value for i in range(last + 8))
x = torch.ones(2)
def on_main():
    for _ in range(100):
        x.cos()
def on_thread():
    for _ in range(100):
        x.sin()
    deadline = time.monotonic() + 60
    while not is_named(on_thread) and time.monotonic() < deadline:
        x.sin()
        time.sleep(0.001)
def never_run():
    pass
with et.folder() as folder:
    path = os.path.join(folder, "trace.json")
    observer = ExecutionTraceObserver().register_callback(path)
    observer.start()
    on_main()
    thread = threading.Thread(target=on_thread)
    thread.start()
    while thread.is_alive():
        pass # pending calls are the main thread's
    for i in range(300): # each dies before the next one, which mostly gets its address
        scope = {"x": x}
        exec("\\n" * (i % 7) + f"def died{i % 3}():\\n    x.tan()\\ndied{i % 3}()", scope)
    observer.unregister_callback()
    trace = et.load(path)
inner = [et.stack(trace, node)[0] for node in et.named(trace, "aten::tan")]
right = all(frame[0] == f"died{i % 3}" and frame[2] == i % 7 + 2 for i, frame in enumerate(inner))
print(json.dumps([bool(is_named(on_main)), bool(is_named(on_thread)), bool(is_named(never_run)), len(inner), right]))
"""

# The processor time of a thousand operators, at two depths of the stack.
COST = """
import json, os, time
import et, torch
from kpytrace.torch import ExecutionTraceObserver
x = torch.ones(3)
def at_depth(levels):
    if levels:
        return at_depth(levels - 1)
    began = time.thread_time()
    for _ in range(1000):
        x.sin()
    return time.thread_time() - began
def least(levels):
    return min(at_depth(levels) for _ in range(7))
with et.folder() as folder:
    observer = ExecutionTraceObserver().register_callback(os.path.join(folder, "trace.json"))
    observer.start()
    print(json.dumps([least(0), least(400)]))
    observer.unregister_callback()
"""


class Cost(unittest.TestCase):
    def test_issue_23_the_cost_does_not_depend_on_the_depth(self):
        """Stacks are remembered, also on 3.11, where code objects have no versions and torch's operators run without the
        GIL. Else the lines of all frames would be looked up for each operator."""
        shallow, deep = support.program(COST).value
        self.assertLess(deep, 4 * shallow)


@unittest.skipIf(sys.version_info >= (3, 12), "code objects have versions")
class Named(unittest.TestCase):
    def test_code_that_runs_without_the_gil_is_named(self):
        self.assertEqual(support.program(NAMED).value, [True, True, False, 300, True])


if __name__ == "__main__":
    unittest.main()
