#!/usr/bin/env python3
"""Measures what recording adds to a host-bound training step on a GPU: Python calls, operators and GPU work, by
kpytrace and by torch's profiler, and the least that CUPTI itself adds. Needs a CUDA device and CUPTI's headers; run
where torch and the staged package are importable.

usage: bench/measure/gpu_step.py [ROUNDS [OUT.json [NAME...]]]     prints a table (default: 3 rounds of all)

Each run is its own process, which measures the bare step, too. The runs take turns, and the least time of a block of
steps counts, of all rounds: other load only adds. The bare step is the least of all processes. Processor time is that of
all threads, and says what the recording costs where the wall clock is too noisy.
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

STEPS, BLOCKS = 10, 12  # of a block, and how many blocks
# The letters are those of cupti_floor.c. The floor of a tracer that keeps kernels, copies and launches is "kmc".
FLOORS = {"kmc": "CUPTI alone: kernels, copies, launches (the floor)", "kmcM": "with markers", "kmcN": "with names",
          "kmco": "with overhead", "kmce": "with external correlations", "kmcs": "with waits", "kmcrd": "with calls"}
TITLES = {"calls": "Python calls", "operators": "Python calls, operators", "gpu": "Python calls, GPU",
          "gpu_calls": 'Python calls, GPU with gpu="calls"', "all": "Python calls, operators, GPU",
          "ring": "the same in a ring", "shapes": "Python calls, operators with shapes, GPU", "stock": "torch.profiler",
          "stock_shapes": "torch.profiler, record_shapes", "stack": "torch.profiler, with_stack", **FLOORS}
OPTIONS = {"calls": {"gpu": False}, "operators": {"gpu": False, "torch": True}, "gpu": {"gpu": True},
           "gpu_calls": {"gpu": "calls"}, "all": {"gpu": True, "torch": True},
           "ring": {"gpu": True, "torch": True, "ring": "30s"},
           "shapes": {"gpu": True, "torch": "shapes"}}


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
    """The least seconds of a step by the wall clock and of the processor, over the blocks."""
    times = []
    for _ in range(BLOCKS):
        began, began_cpu = time.perf_counter(), time.process_time()
        steps(STEPS)
        times.append(((time.perf_counter() - began) / STEPS, (time.process_time() - began_cpu) / STEPS))
    return [min(column) for column in zip(*times)]


def measure(name, floor, folder):
    """Figures of one run: seconds of a step bare and recorded, of stop, and bytes of the file, each for a step."""
    import torch

    steps = step_of(torch)
    steps(10)
    figures = dict(zip(("bare", "bare_cpu"), best_of(steps)))
    count = BLOCKS * STEPS

    def record():
        figures.update(zip(("run", "run_cpu"), best_of(steps)))
    if name in FLOORS:
        if ctypes.CDLL(floor).cupti_floor_begin(name.encode()):
            sys.exit(f"gpu_step.py: CUPTI refused {name!r}")
        record()
    elif name in OPTIONS:
        import kpytrace

        trace = kpytrace.start(**OPTIONS[name])
        record()
        began = time.perf_counter()
        summary = trace.stop()
        figures["stop"] = (time.perf_counter() - began) / count
        if name not in ("calls", "operators"):
            assert summary.kernels, summary.no_gpu
        file, packed = (os.path.join(folder, name) for name in ("out.kpt", "packed.kpt"))
        trace.write(packed)
        subprocess.run([sys.executable, "-m", "kpytrace", "convert", "-q", "--no-compress", packed, file], check=True)
        figures["bytes"], figures["packed"] = (os.path.getsize(name) / count for name in (file, packed))
        figures["stats"] = {key: value for key, value in trace.stats().items() if value}
        figures["lost"] = summary.gpu_dropped
    else:
        kinds = torch.profiler.ProfilerActivity
        prof = torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA], with_stack=name == "stack",
                                      record_shapes=name == "stock_shapes")
        prof.start()
        record()
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
                if len(sys.argv) > 2:  # after each run: the next one may take too long
                    pathlib.Path(sys.argv[2]).write_text(json.dumps(found, indent=1), encoding="utf-8")
    bare, bare_cpu = (min(f[key] for f in found.values()) for key in ("bare", "bare_cpu"))
    print(f"bare step: {bare * 1e3:.2f} ms, {bare_cpu * 1e3:.2f} ms of processor time\n")
    print("| | × bare | processor, × bare | stop, ms a step | kB a step | packed |\n|---|---|---|---|---|---|")
    for name, f in found.items():
        print("|", " | ".join([TITLES[name], f"{f['run'] / bare:.3f}", f"{f['run_cpu'] / bare_cpu:.3f}",
                               f"{f['stop'] * 1e3:.2f}" if "stop" in f else "",
                               *(f"{f[key] / 1e3:.1f}" if key in f else "" for key in ("bytes", "packed"))]), "|")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(*sys.argv[2:5])
    else:
        main()
