#!/usr/bin/env python3
"""Measures what recording adds to a host-bound training step on a GPU: Python calls, operators and GPU work, by
kpytrace and by torch's profiler, and the least that CUPTI itself adds. Needs a CUDA device and CUPTI's headers; run
where torch and the staged package are importable.

usage: bench/measure/gpu_step.py [ROUNDS [OUT.json [NAME...]]]     prints a table (default: 3 rounds of all)

Each run is its own process, which measures the bare step, too. The runs take turns, and the least time of all rounds
counts for each of the two: other load only adds.
"""
import ctypes
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

STEPS, REPEATS = 40, 4
# The letters are those of cupti_floor.c. The floor of a tracer that keeps kernels, copies and launches is "kmc".
FLOORS = {"kmc": "CUPTI alone: kernels, copies, launches (the floor)", "kmcM": "with markers", "kmcN": "with names",
          "kmco": "with overhead", "kmce": "with external correlations", "kmcs": "with waits", "kmcrd": "with calls"}
TITLES = {"calls": "Python calls", "operators": "Python calls, operators", "gpu": "Python calls, GPU",
          "gpu_calls": 'Python calls, GPU with gpu="calls"', "all": "Python calls, operators, GPU",
          "ring": "the same in a ring", "stock": "torch.profiler", "stack": "torch.profiler, with_stack",
          **FLOORS}
OPTIONS = {"calls": {"gpu": False}, "operators": {"gpu": False, "torch": True}, "gpu": {"gpu": True},
           "gpu_calls": {"gpu": "calls"}, "all": {"gpu": True, "torch": True},
           "ring": {"gpu": True, "torch": True, "ring": "30s"}}


def build_floor(folder):
    """Compiles cupti_floor.c against the CUPTI of the CUDA toolkit, or of the packages beside torch."""
    import torch

    site = pathlib.Path(torch.__file__).resolve().parent.parent
    places = [*glob.glob("/usr/local/cuda*/targets/*"), *glob.glob("/usr/local/cuda*"),
              *map(str, site.glob("nvidia/cu1*")), *map(str, site.glob("nvidia/cuda_cupti"))]
    include = [place + "/include" for place in places if os.path.exists(place + "/include/cupti.h")]
    library = [file for place in places for folder_ in ("lib", "lib64") for file in
               glob.glob(f"{place}/{folder_}/libcupti.so*")]
    if not include or not library:
        sys.exit("gpu_step.py: found no CUPTI: install the CUDA toolkit")
    source = pathlib.Path(__file__).resolve().parent.parent / "native" / "cupti_floor.c"
    out = os.path.join(folder, "cupti_floor.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{include[0]}", f"-I{os.path.dirname(include[0])}/include",
                    "-o", out, str(source), library[0], f"-Wl,-rpath,{os.path.dirname(library[0])}"], check=True)
    return out


def step_of(torch):
    nn = torch.nn
    torch.manual_seed(0)
    net = nn.ModuleList(nn.Sequential(nn.LayerNorm(48), nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 48),
                                      nn.Dropout(0.1)) for _ in range(24)).cuda()
    optimizer = torch.optim.Adam(net.parameters(), foreach=False)
    data = torch.randn(4, 48, device="cuda")

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            out = data
            for layer in net:
                out = out + layer(out)
            out.square().mean().backward()
            optimizer.step()
        torch.cuda.synchronize()
    return steps


def best_of(steps):
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        steps(STEPS)
        times.append((time.perf_counter() - began) / STEPS)
    return min(times)


def measure(name, floor, folder):
    """Figures of one run: seconds of a step bare and recorded, of stop, and bytes of the file, each for a step."""
    import torch

    steps = step_of(torch)
    steps(10)
    figures = {"bare": best_of(steps)}
    count = REPEATS * STEPS
    if name in FLOORS:
        if ctypes.CDLL(floor).cupti_floor_begin(name.encode()):
            sys.exit(f"gpu_step.py: CUPTI refused {name!r}")
        figures["run"] = best_of(steps)
    elif name in OPTIONS:
        import kpytrace

        trace = kpytrace.start(**OPTIONS[name])
        figures["run"] = best_of(steps)
        began = time.perf_counter()
        summary = trace.stop()
        figures["stop"] = (time.perf_counter() - began) / count
        if name not in ("calls", "operators"):
            assert summary.kernels, summary.no_gpu
        file = os.path.join(folder, "out.kpt")
        trace.write(file)
        figures["bytes"] = os.path.getsize(file) / count
        figures["stats"] = {key: value for key, value in trace.stats().items() if value}
        figures["lost"] = summary.gpu_dropped
    else:
        kinds = torch.profiler.ProfilerActivity
        prof = torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA], with_stack=name == "stack")
        prof.start()
        figures["run"] = best_of(steps)
        began = time.perf_counter()
        prof.stop()
        figures["stop"] = (time.perf_counter() - began) / count
        file = os.path.join(folder, "out.json")
        prof.export_chrome_trace(file)
        figures["bytes"] = os.path.getsize(file) / count
    print(json.dumps(figures))
    sys.stdout.flush()
    os._exit(0)  # CUPTI's floor is never stopped


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    names = sys.argv[3:] or list(TITLES)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        floor = build_floor(folder)
        for _ in range(rounds):
            for name in names:
                reply = subprocess.run([sys.executable, "-W", "ignore", __file__, "--one", name, floor, folder],
                                       stdout=subprocess.PIPE, text=True)
                if reply.returncode:
                    print(f"gpu_step.py: {name} failed", file=sys.stderr)
                    continue
                figures, before = json.loads(reply.stdout.splitlines()[-1]), found.setdefault(name, {})
                for key, value in figures.items():
                    before[key] = min(before.get(key, value), value) if isinstance(value, float) else value
    print("| | × bare | bare, ms | stop, ms a step | kB a step |\n|---|---|---|---|---|")
    for name, f in found.items():
        print("|", " | ".join([TITLES[name], f"{f['run'] / f['bare']:.3f}", f"{f['bare'] * 1e3:.2f}",
                               f"{f['stop'] * 1e3:.2f}" if "stop" in f else "",
                               f"{f['bytes'] / 1e3:.1f}" if "bytes" in f else ""]), "|")
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(*sys.argv[2:5])
    else:
        main()
