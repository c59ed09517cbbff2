"""torch.compile compiles a program the same with kpytrace and without: the same graphs, as many breaks, frames and
compilations, with fullgraph=True too, before, during and after a recording."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support
import torch
from torch.profiler import ProfilerActivity, profile

SIDES = ("without", "memory", "profiler", "observer")
LONG = bool(os.environ.get("KPYTRACE_TEST_LONG"))


class Layer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, data):
        return torch.relu(self.linear(data))


class Net(torch.nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(width), Layer(width)])
        self.last = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Identity())

    def forward(self, data):
        for layer in self.layers:
            data = layer(data)
        return self.last(data)


class Breaks(Net):
    def forward(self, data):
        data = self.layers[0](data)
        torch._dynamo.graph_break()
        return self.last(self.layers[1](data))


def hooked():
    net = Net()
    net.layers[1].register_forward_hook(lambda module, arguments, result: result + 1)
    net.register_forward_pre_hook(lambda module, arguments: None)
    return net


def in_place(**options):
    net = Net()
    net.compile(**options)
    return net


def of_a_function(**options):
    net = Net()
    return torch.compile(lambda data: net(data) * 2, **options)


PROGRAMS = {"module": lambda **options: torch.compile(Net(), **options),
            "in place": in_place,
            "function": of_a_function,
            "builtin": lambda **options: torch.compile(torch.nn.Sequential(torch.nn.Tanh()), **options),
            "hooked": lambda **options: torch.compile(hooked(), **options),
            "breaks": lambda **options: torch.compile(Breaks(), **options)}


@contextlib.contextmanager
def side_of(side, folder):
    """Returns the context in which a program runs."""
    import kpytrace.torch

    if side == "memory":
        with kpytrace.torch.memory(os.path.join(folder, "snapshot.pickle")):
            yield
    elif side == "profiler":
        with profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
            yield
        prof.export_chrome_trace(os.path.join(folder, "trace.json"))
    elif side == "observer":
        observer = kpytrace.torch.ExecutionTraceObserver().register_callback(os.path.join(folder, "et.json"))
        observer.start()
        yield
        observer.stop()
        observer.unregister_callback()
    else:
        yield


def compiled(make, side, backend, early, fullgraph):
    """Returns the results of torch.compile for a program, in each of its phases. With EARLY the first call is
    outside of the context."""
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    graphs, phases = [], []

    def counting(graph, inputs):
        graphs.append(graph.print_readable(print_output=False).split("\n"))
        return torch._dynamo.lookup_backend(backend)(graph, inputs)

    def phase():
        data = torch.linspace(0, 1, 8, requires_grad=True).reshape(2, 4)
        result = program(data)
        result.sum().backward()
        phases.append({"result": result.tolist(), "graphs": len(graphs),
                       "counters": {name: dict(counters[name]) for name in
                                    ("frames", "stats", "graph_break", "unimplemented", "inline_call")}})
    program = make(backend=counting, fullgraph=fullgraph)
    with tempfile.TemporaryDirectory() as folder:
        if early:
            phase()
        with side_of(side, folder):
            phase()
            phase()
        phase()
        with side_of(side, folder):
            phase()
    text = [[line for line in graph if "# File:" not in line and "Annotation" not in line]
            for graph in graphs]
    return {"phases": phases, "graphs": text}


def main(output, side, *backends):
    out = {}
    if side == "profiler":
        import kpytrace.torch

        kpytrace.torch.install()
    for backend in backends:
        for name, make in PROGRAMS.items():
            if backend != "eager" and name not in ("module", "breaks")[:2 if LONG else 1]:
                continue
            ways = [(early, fullgraph) for early in (False, True) for fullgraph in (False, True)
                    if not (fullgraph and name == "breaks")]
            if name not in ("module", "breaks") and not LONG:
                ways = [(False, True), (True, False)]
            for early, fullgraph in ways:
                out[f"{name} {backend} {early=} {fullgraph=}"] = compiled(make, side, backend, early, fullgraph)
    with open(output, "w") as file:
        json.dump(out, file)


class Compile(unittest.TestCase):
    maxDiff = 2000

    def found(self, side, folder, *backends):
        output = os.path.join(folder, "out.json")
        if LONG:
            reply = support.python(os.path.abspath(__file__), output, side, *backends, timeout=600,
                                   TORCHINDUCTOR_CACHE_DIR=folder, TORCHINDUCTOR_FX_GRAPH_CACHE="0")
        else:
            reply = support.attempt(f"import test_compile\ntest_compile.main({output!r}, {side!r}, *{backends!r})",
                                    forked=True, KPYTRACE_TEST_LONG="1")
        self.assertEqual(reply.returncode, 0, reply.stderr[-4000:])
        with open(output) as file:
            return json.load(file)

    def compare(self, *backends):
        """All sides share a folder for the libraries that inductor compiles, but each makes its own graphs and code."""
        with tempfile.TemporaryDirectory() as folder:
            without = self.found("without", folder, *backends)
            self.assertTrue(all(result["phases"][0]["graphs"] for result in without.values()))
            self.assertEqual({len(result["graphs"]) for name, result in without.items() if "breaks" in name},
                             {2})
            for side in SIDES[1:]:
                with_it = self.found(side, folder, *backends)
                for name, result in without.items():
                    with self.subTest(side=side, program=name):
                        self.assertEqual(with_it[name], result)

    def test_each_backend(self):
        """aot_eager and inductor take the graphs that eager does, and are tried in long runs only."""
        self.compare(*(["eager", "aot_eager"] if LONG else ["eager"]))

    @unittest.skipUnless(LONG, "it compiles for a minute; only in long runs (KPYTRACE_TEST_LONG=1)")
    def test_inductor(self):
        compiler = shutil.which(os.environ.get("CXX", "g++"))
        if not compiler or subprocess.run([compiler, "--version"], capture_output=True).returncode:
            self.skipTest("inductor wants a compiler")
        self.compare("inductor")

    def test_what_compiled_code_allocates_is_of_the_module_around_it(self):
        reply = support.program("""
            import tempfile, torch, kpytrace.torch, test_compile
            net = torch.compile(test_compile.Breaks(), backend="eager")
            outer = torch.nn.Sequential(torch.nn.Tanh(), net)
            data = torch.ones(2, 4)
            with torch.no_grad():
                outer(data)
                with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
                    with kpytrace.torch.memory(file.name):
                        kept = outer(data)
                    modules = [row[0] for row in kpytrace.torch.memory_by_module(file.name)]
            import json
            print(json.dumps(sorted(modules)))
            """)
        self.assertEqual(reply.value, ["Sequential.0", "Sequential.1._orig_mod"])


if __name__ == "__main__":
    if len(sys.argv) > 2:
        main(*sys.argv[1:])
    else:
        unittest.main()
