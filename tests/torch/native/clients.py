"""What libraries that use torch's profiler get from it. Run as

    clients.py KIND PROGRAM OUTPUT

KIND is stock or native; OUTPUT receives what the program returns, which does not depend on times."""

import collections
import contextlib
import gc
import glob
import gzip
import io
import json
import os
import re
import sys
import tempfile

import torch

REPLACED = "<built-in method (_add_metadata_json|_disable_profiler|_is_kineto_stopped|_kineto_step) "
CPU = [torch.profiler.ProfilerActivity.CPU]


def plain(name):
    """NAME without what differs between stock and ours by design: addresses, and the class whose method it is."""
    return re.sub(r" at 0x[0-9a-f]+|(?<= of )\S+(?= object)", "", name)


def averages(events, *attributes):
    """Returns the rows of a table, with the ATTRIBUTES, and without times, and without functions of torch that the mode
    replaces."""
    found = collections.Counter()
    for row in events:
        found[plain(row.key), *(str(getattr(row, name)) for name in attributes)] += row.count
    return sorted([*row, count] for row, count in found.items() if not re.match(REPLACED, row[0]))


def in_file(path):
    """Returns the number of events in a file by category and name, of those that are not Python calls."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt") as file:
        trace = json.load(file)
    events = collections.Counter(f"{event['cat']}: {event['name']}" for event in trace["traceEvents"]
                                 if event.get("cat") in ("cpu_op", "user_annotation", "fwdbwd"))
    return [sorted(events.items()), sorted(key for key in trace if key != "traceName")]


def files_in(folder):
    return [in_file(path) for path in sorted(glob.glob(os.path.join(folder, "**", "*.json*"), recursive=True))]


def table(text):
    """Returns the names of operators in a printed table, with the number of calls."""
    rows = (re.split(r"\s{2,}", line.strip()) for line in text.splitlines())
    counts = ([row[0], next((int(cell) for cell in row if cell.isdigit()), 0)] for row in rows if len(row) > 5)
    return sorted(row for row in counts if row[1] and not row[0].startswith("<built-in"))


# --- programs ---------------------------------------------------------------------------------------

def accelerate():
    from accelerate import Accelerator
    from accelerate.utils import ProfileKwargs
    found = {}
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    cycles = []

    def step():
        net(torch.ones(4, 8)).sum().backward()
    for name, options in {
            "plain": {}, "shapes": {"record_shapes": True, "with_flops": True},
            "memory": {"profile_memory": True, "with_stack": True},
            "schedule": {"schedule_option": {"wait": 1, "warmup": 1, "active": 2, "repeat": 2},
                         "on_trace_ready": lambda prof: cycles.append(averages(prof.key_averages()))}}.items():
        with tempfile.TemporaryDirectory() as folder:
            handler = ProfileKwargs(activities=["cpu"], output_trace_dir=folder if name != "schedule" else None,
                                    **options)
            accelerator = Accelerator(cpu=True, kwargs_handlers=[handler])
            with accelerator.profile() as prof:
                for _ in range(9):
                    step()
                    prof.step()
            found[name] = [averages(prof.key_averages(), "cpu_memory_usage", "self_cpu_memory_usage", "flops"),
                           table(prof.key_averages().table(row_limit=-1)), files_in(folder)]
    return [found, cycles]


def inductor():
    """The profile of a compiled module, which `python MODULE -p` prints. Inductor marks its kernels only while a
    profile runs."""
    import torch._inductor.config
    from torch._inductor import wrapper_benchmark
    net = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Softmax(1)))
    data = torch.randn(4, 8)

    def benchmark(times, repeat):
        for _ in range(times * repeat):
            with torch.no_grad():
                net(data)
        return 0.001
    torch._inductor.config.cpp.enable_kernel_profile = True
    benchmark(1, 1)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        wrapper_benchmark.PROFILE_PATH = os.path.join(folder, "profile.json")
        wrapper_benchmark.perf_profile(1.0, 3, 2, "net", benchmark)
        return [table(printed.getvalue()), files_in(folder), "Output for tabulate: net" in printed.getvalue()]


def inductor_benchmark():
    """`python MODULE -p` of a module that Inductor compiled, the way it runs and profiles itself, and the helpers that
    profile any function."""
    import runpy
    from unittest import mock

    from torch._dynamo.profiler import Profiler
    from torch._functorch.benchmark_utils import compute_utilization, dump_chrome_trace
    from torch._inductor import config, wrapper_benchmark
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.utils import maybe_profile, print_performance
    config.benchmark_harness = config.cpp.enable_kernel_profile = True
    net = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Softmax(1)))
    data = torch.randn(4, 8)
    with torch.no_grad():
        net(data)
        [module] = [module for module in PyCodeCache.modules if hasattr(module, "benchmark_compiled_module")]
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
            with mock.patch.object(wrapper_benchmark, "PROFILE_PATH", os.path.join(folder, "profile.json")), \
                    mock.patch.object(sys, "argv", [module.__file__, "-p", "--times", "2", "--repeat", "3"]):
                runpy.run_path(module.__file__, run_name="__main__")
            path = os.path.join(folder, "utilization.json")
            dump_chrome_trace(net, data, path, contextlib.nullcontext(), CPU, num_runs=2, devices=["cpu"])
            utilization = compute_utilization(path, 1.0)
            with maybe_profile(True, activities=CPU) as prof:
                is_timed = print_performance(lambda: net(data), times=2, repeat=2, device="cpu") > 0
            profiler = Profiler()
            with profiler.prof:
                net(data)
            files = files_in(folder)
        total = profiler.results().total.operators
    lines = [re.sub(r"[\d.]+ms", "TIME", line) for line in printed.getvalue().splitlines() if "Output for tabulate" in line]
    return [table(printed.getvalue()), lines, files, utilization, is_timed, averages(prof.key_averages()), total]


if __name__ == "__main__":
    torch.manual_seed(0)
    gc.disable()  # what the tensors that it frees count for depends on when it runs
    kind, program, output = sys.argv[1:]
    if kind != "stock":
        import kpytrace.torch
        kpytrace.torch.install(kind)
    result = globals()[program]()
    with open(output, "w") as file:
        json.dump(result, file)
