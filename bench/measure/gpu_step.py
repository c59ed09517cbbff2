#!/usr/bin/env python3
"""Measures what recording adds to a host-bound training step on a GPU: Python calls, operators and GPU work, by
kpytrace and by torch's profiler, and the least that CUPTI itself adds. Needs a CUDA device and CUPTI's headers; run
where torch and the staged package are importable.

usage: bench/measure/gpu_step.py [SECONDS [OUT.json [NAME...]]]     prints a table (default: 200 s, all names)

The bare step and all of kpytrace's recordings take turns in one process, a block of ten steps each, and the least time
of a block counts: other load only adds. After torch's profiler CUPTI stays attached, so each of its recordings takes
turns with the bare step in a process of its own, and is compared with the bare step of that process. Processor time is
that of all threads, and shows the cost of a recording where the wall clock is too noisy.
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

STEPS = 10  # of a block
# The letters are those of cupti_floor.c. The floor of a tracer that keeps kernels, copies and launches is "kmc".
FLOORS = {"kmc": "CUPTI alone: kernels, copies, launches (the floor)", "kmcM": "with markers", "kmcN": "with names",
          "kmco": "with overhead", "kmce": "with external correlations", "kmcs": "with waits", "kmcrd": "with calls"}
OURS = {"calls": ("Python calls", {"gpu": False}),
        "operators": ("Python calls, operators", {"gpu": False, "torch": True}),
        "gpu": ("Python calls, GPU", {"gpu": True}),
        "gpu_calls": ('Python calls, GPU with gpu="calls"', {"gpu": "calls"}),
        "all": ("Python calls, operators, GPU", {"gpu": True, "torch": True}),
        "ring": ("the same in a ring", {"gpu": True, "torch": True, "ring": "30s"}),
        "shapes": ("Python calls, operators with shapes, GPU", {"gpu": True, "torch": "shapes"})}
STOCK = {"stock": ("torch.profiler", {}), "stock_shapes": ("torch.profiler, record_shapes", {"record_shapes": True}),
         "stack": ("torch.profiler, with_stack", {"with_stack": True})}
DEFAULT = ["kmc", *OURS, *STOCK]


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


class Turns:
    """Blocks of steps of one process, and the least figures of each recording: seconds of a step by the wall clock and
    of the processor, seconds of stop and bytes of the file, each for a step."""

    def __init__(self, folder):
        import torch

        self.torch, self.folder, self.figures = torch, folder, {}
        nn = torch.nn
        torch.manual_seed(0)
        self.net = nn.ModuleList(nn.Sequential(nn.LayerNorm(48), nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 48),
                                               nn.Dropout(0.1)) for _ in range(24)).cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters(), foreach=False)
        self.data = torch.randn(4, 48, device="cuda")
        self.floor = ctypes.CDLL(os.path.join(folder, "cupti_floor.so"))

    def steps(self):
        for _ in range(STEPS):
            self.optimizer.zero_grad()
            out = self.data
            for layer in self.net:
                out = out + layer(out)
            out.square().mean().backward()
            self.optimizer.step()
        self.torch.cuda.synchronize()

    def note(self, name, **values):
        before = self.figures.setdefault(name, {})
        for key, value in values.items():
            before[key] = min(before.get(key, value), value)

    def block(self, name):
        self.steps()  # what begins with a recording, and ends with one, is not the step's
        began, began_cpu = time.perf_counter(), time.process_time()
        self.steps()
        self.note(name, run=(time.perf_counter() - began) / STEPS, run_cpu=(time.process_time() - began_cpu) / STEPS)

    def record(self, name):
        if name == "bare":
            self.block(name)
        elif name in FLOORS:
            if self.floor.cupti_floor_begin(name.encode()):
                sys.exit(f"gpu_step.py: CUPTI refused {name!r}")
            self.block(name)
            if self.floor.cupti_floor_end(name.encode()):
                sys.exit(f"gpu_step.py: CUPTI does not end {name!r}")
        elif name in OURS:
            self.record_ours(name)
        else:
            self.record_stock(name)

    def record_ours(self, name):
        import kpytrace

        trace = kpytrace.start(**OURS[name][1])
        self.block(name)
        began = time.perf_counter()
        summary = trace.stop()
        self.note(name, stop=(time.perf_counter() - began) / (2 * STEPS))
        if OURS[name][1]["gpu"] and not summary.kernels:
            sys.exit(f"gpu_step.py: {name} has no kernels: {summary.no_gpu}")
        path = os.path.join(self.folder, "out.kpt")
        trace.write(path)
        trace.close()
        self.note(name, bytes=os.path.getsize(path) / (2 * STEPS))
        self.figures[name]["lost"] = self.figures[name].get("lost", 0) + summary.gpu_dropped

    def record_stock(self, name):
        kinds = self.torch.profiler.ProfilerActivity
        prof = self.torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA], **STOCK[name][1])
        prof.start()
        self.block(name)
        began = time.perf_counter()
        prof.stop()
        self.note(name, stop=(time.perf_counter() - began) / (2 * STEPS))
        path = os.path.join(self.folder, "out.json")
        prof.export_chrome_trace(path)
        self.note(name, bytes=os.path.getsize(path) / (2 * STEPS))


def take_turns(folder, seconds, out, names):
    """The process of some recordings. The figures are written after each round: the next one may take too long."""
    turns = Turns(folder)
    turns.block("bare")
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        for name in ("bare", *names):
            turns.record(name)
        turns.figures["bare"]["rounds"] = turns.figures["bare"].get("rounds", 0) + 1
        pathlib.Path(out).write_text(json.dumps(turns.figures), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # CUPTI's own threads are not waited for


def print_table(found):
    print("| | × bare | processor, × bare | stop, ms a step | kB a step | bare, ms | rounds |\n" + "|---" * 7 + "|")
    titles = {**FLOORS, **{name: title for name, (title, _) in {**OURS, **STOCK}.items()}}
    for figures in found.values():
        bare = figures["bare"]
        for name, f in figures.items():
            if name != "bare":
                print("|", " | ".join([titles[name], f"{f['run'] / bare['run']:.3f}",
                                       f"{f['run_cpu'] / bare['run_cpu']:.3f}",
                                       f"{f['stop'] * 1e3:.2f}" if "stop" in f else "",
                                       f"{f['bytes'] / 1e3:.1f}" if "bytes" in f else "",
                                       f"{bare['run'] * 1e3:.2f}", str(bare.get("rounds", 0))]), "|")


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 200
    names = sys.argv[3:] or DEFAULT
    together = [name for name in names if name not in STOCK]
    groups = ([together] if together else []) + [[name] for name in names if name in STOCK]
    weights = [len(group) + 1 + 3 * (group[0] in STOCK) for group in groups]  # exports take their time
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        build_floor(folder)
        for group, weight in zip(groups, weights):
            out = os.path.join(folder, "figures.json")
            reply = subprocess.run([sys.executable, "-W", "ignore", __file__, "--turns", folder,
                                    str(seconds * weight / sum(weights)), out, *group])
            if reply.returncode:
                print(f"gpu_step.py: {' '.join(group)} failed", file=sys.stderr)
            if os.path.exists(out):
                found[group[0]] = json.loads(pathlib.Path(out).read_text(encoding="utf-8"))
                os.unlink(out)
            if len(sys.argv) > 2:
                pathlib.Path(sys.argv[2]).write_text(json.dumps(found, indent=1), encoding="utf-8")
    print_table(found)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--turns"]:
        take_turns(*sys.argv[2:5], sys.argv[5:])
    else:
        main()
