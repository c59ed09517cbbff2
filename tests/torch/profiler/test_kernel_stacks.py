"""Kernels in exported traces have the Python stack that launched them, and nothing else is changed. A
stand-in simulates the GPU; the last class needs a real one."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

KERNELS = str(pathlib.Path(__file__).with_name("kernels.py"))
STACK, PLACE = "Python stack", "launched at"
with open(KERNELS, encoding="utf-8") as _file:
    SOURCE = _file.read().splitlines()
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
# By operator: the functions that it is launched from, outermost first.
PLACES = {"aten::add": ["work", "adds"], "aten::mul": ["work", "branch", "muls"],
          "aten::sub": ["work", "resumed"], "aten::neg": ["beside", "negates"],
          "aten::addmm": ["work", "nn.Module: Net_0", "forward", "nn.Module: Linear_0", "forward"]}


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def functions(stack):
    """Of a stack, from main() or a thread's beginning on: modules, and functions of the program and of
    torch's modules."""
    frames = [frame.partition("): ")[2] or frame for frame in stack.split(";")
              if "kernels.py(" in frame or frame.startswith("nn.Module") or "linear.py(" in frame]
    return frames[frames.index("main") + 1:] if "main" in frames else frames


def kernels(trace):
    return [event for event in trace["traceEvents"] if event.get("cat") in WORK]


def run(mode, device, folder, *more):
    # The played GPU stands beside no other.
    hidden = {} if device == "cuda" else {"CUDA_VISIBLE_DEVICES": ""}
    reply = support.python(KERNELS, mode, device, folder, *more, timeout=240, **hidden)
    if reply.returncode != 0:
        raise AssertionError(f"exit status {reply.returncode}\n{reply.stdout}\n{reply.stderr}")


class Case(unittest.TestCase):
    mode, device = "full", "cpu"

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = temporary.name
        run(cls.mode, cls.device, cls.folder)
        names = [name for name in os.listdir(cls.folder) if name.endswith((".json", ".gz"))]
        cls.traces = {name: read(os.path.join(cls.folder, name)) for name in sorted(names)}
        assert len(names) == 5, names

    def each(self):
        for name, trace in self.traces.items():
            with self.subTest(file=name, mode=self.mode):
                yield name, trace

    def test_all_else_is_as_torch_wrote_it(self):
        for name, trace in self.each():
            with open(os.path.join(self.folder, name + ".torch"), encoding="utf-8") as file:
                stock = json.load(file)
            events = trace["traceEvents"]
            for event in kernels(trace):
                event["args"].pop(STACK, None)
                event["args"].pop(PLACE, None)
            known = {json.dumps(event) for event in stock["traceEvents"]}
            torchs = [event for event in events if json.dumps(event) in known]
            self.assertEqual(torchs, stock["traceEvents"])
            self.assertEqual({event["cat"] for event in events if json.dumps(event) not in known}
                             - {"python_function"}, set())
            self.assertEqual({**trace, "traceEvents": 0}, {**stock, "traceEvents": 0})
            self.traces[name] = read(os.path.join(self.folder, name))


class Played(Case):
    def test_each_kernel_has_the_stack_of_its_launch(self):
        for _, trace in self.each():
            found = [(event["name"], functions(event["args"][STACK])) for event in kernels(trace)
                     if STACK in event["args"]]
            expected = ["aten::add", *["aten::mul"] * 3, "aten::sub", "aten::addmm", "aten::neg"]
            self.assertEqual(sorted(found), sorted((name, PLACES[name]) for name in expected))

    def test_without_a_launch_or_python_there_is_none(self):
        for _, trace in self.each():
            without = [event["name"] for event in kernels(trace) if STACK not in event["args"]]
            self.assertEqual(without, ["strange", "Memset"])

    def test_place_is_the_innermost_of_the_programs(self):
        for _, trace in self.each():
            for event in kernels(trace):
                if STACK in event["args"]:
                    own = [frame for frame in event["args"][STACK].split(";") if "kernels.py(" in frame]
                    self.assertEqual(event["args"][PLACE], own[-1])

    def test_lines_are_where_the_calls_were_made(self):
        for _, trace in self.each():
            frames = {frame.rpartition(": ")[2]: frame for event in kernels(trace)
                      for frame in event["args"].get(STACK, "").split(";")}
            for function in ("adds", "muls", "resumed", "negates", "branch"):
                self.assertIn(f"kernels.py({self.line_in(function)}): ", frames[function])

    def line_in(self, function):
        [line] = [number for number, text in enumerate(SOURCE, 1) if text.endswith("  # " + function)]
        return line


class Fast(Played):
    mode = "fast"

    def line_in(self, function):
        """Lines of callers are not recorded: the line is the function's first line, or the line at which it resumed."""
        mark = "    yield leaf()" if function == "resumed" else f"def {function}():"
        return SOURCE.index(mark) + 1


class All(Played):
    mode = "all"


class Switch(unittest.TestCase):
    def test_off(self):
        for mode in ("full", "all"):
            with self.subTest(mode=mode), tempfile.TemporaryDirectory() as folder:
                run(mode, "cpu", folder, "off")
                trace = read(os.path.join(folder, "plain.json"))
                self.assertEqual(len(kernels(trace)), 9)
                self.assertFalse([e for e in kernels(trace) if STACK in e["args"] or PLACE in e["args"]])

    def test_off_by_the_environment(self):
        code = """
            import json
            from kpytrace.torch import _autostart, _export
            _autostart._install()
            print(json.dumps(_export._kernel_stacks))
        """
        for value, expected in ((None, True), ("0", False)):
            reply = support.program(code, KPYTRACE_TORCH="fast", KPYTRACE_TORCH_KERNEL_STACKS=value)
            self.assertIs(reply.value, expected, reply.stderr)

    def test_the_file_of_a_profiler_without_a_device_is_not_read(self):
        reply = support.program("""
            import json, torch
            from kpytrace.torch._results import may_have_gpu
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                        with_stack=True) as prof:
                pass
            print(json.dumps(may_have_gpu(prof.profiler.kineto_results)))
        """, "fast")
        self.assertIs(reply.value, False)


def has_cuda():
    return subprocess.run([sys.executable, "-W", "ignore", "-c",
                           "import sys, torch; sys.exit(not torch.cuda.is_available())"],
                          capture_output=True).returncode == 0


class OnAGpu(Case):
    device = "cuda"

    @classmethod
    def setUpClass(cls):
        if not has_cuda():
            raise unittest.SkipTest("needs a GPU")
        super().setUpClass()

    def test_each_kernel_has_the_stack_of_its_launch(self):
        for _, trace in self.each():
            operators = {event["args"].get("External id"): event["name"]
                         for event in trace["traceEvents"] if event.get("cat") == "cpu_op"}
            threads = {event["tid"] for event in trace["traceEvents"]
                       if event.get("cat") == "python_function"}
            launches = {event["args"]["correlation"]: event["tid"] for event in trace["traceEvents"]
                        if event.get("cat") in ("cuda_runtime", "cuda_driver")}
            found = {}
            for event in kernels(trace):
                name = operators.get(event["args"].get("External id"))
                if name in PLACES:
                    # torch 2.11 has the launches of other threads under numbers that are no threads'.
                    is_known = launches[event["args"]["correlation"]] in threads
                    self.assertEqual(functions(event["args"].get(STACK, "")),
                                     PLACES[name] if is_known else [], event)
                    self.assertTrue(is_known or name == "aten::neg")
                    found[name] = found.get(name, 0) + 1
                else:
                    self.assertIn(STACK, event["args"], event)
            for name, least in (("aten::add", 1), ("aten::mul", 3), ("aten::sub", 1), ("aten::neg", 1),
                                ("aten::addmm", 1)):
                self.assertGreaterEqual(found.get(name, 0), least, found)


class OnAGpuFast(OnAGpu):
    mode = "fast"


del Case

if __name__ == "__main__":
    unittest.main()
