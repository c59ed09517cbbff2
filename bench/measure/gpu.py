#!/usr/bin/env python3
"""Measures what recording adds to a launch in a launch-bound loop of small kernels on a GPU, with kpytrace
and with torch's profiler. Needs a CUDA device; run where torch and the staged package are importable.

usage: bench/measure/gpu.py [ROUNDS [KERNELS [OUT.json]]]     prints a table (default: 5 rounds of 100,000)

Each run is its own process; they alternate, and the best of all rounds counts.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

NOTHING = {"include": "module:kpytrace_records_no_such_module", "c_calls": False}


def kpytrace_with(path, **options):
    import kpytrace
    return kpytrace.trace(path, **options)


def torch_profiler(_):
    import torch
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    return torch.profiler.profile(activities=activities, with_stack=False)


CONTESTANTS = {
    "bare": None,
    "kpytrace, GPU only": lambda path: kpytrace_with(path, gpu=True, **NOTHING),
    "kpytrace, calls only": lambda path: kpytrace_with(path, gpu=False),
    "kpytrace, GPU and calls": lambda path: kpytrace_with(path, gpu=True),
    "torch.profiler": torch_profiler,
}


def measure(name, kernels, folder):
    """Seconds of the loop, and of stopping and writing."""
    import torch
    values = torch.ones(16, device="cuda")

    def loop(count):
        for _ in range(count):
            values.add_(1)
        torch.cuda.synchronize()

    loop(1000)
    context = CONTESTANTS[name] and CONTESTANTS[name](os.path.join(folder, "out.kpt"))
    if context:
        context.__enter__()
        loop(1000)  # the first launches open CUPTI
    begin = time.perf_counter()
    loop(kernels)
    ran = time.perf_counter()
    if context:
        context.__exit__(None, None, None)
        if name == "torch.profiler":
            context.export_chrome_trace(os.path.join(folder, "out.json"))
    summary = getattr(context, "summary", None)
    return {"loop_s": ran - begin, "stop_s": time.perf_counter() - ran,
            "bytes": sum(entry.stat().st_size for entry in os.scandir(folder)),
            "kernels": summary.kernels if summary else None,
            "dropped": summary.gpu_dropped if summary else None,
            "why not": summary.no_gpu if summary else None}


def run(name, kernels):
    with tempfile.TemporaryDirectory() as folder:
        reply = subprocess.run([sys.executable, __file__, "--measure", name, str(kernels), folder],
                               capture_output=True, text=True, timeout=600)
    if reply.returncode:
        sys.exit(f"{name}: {reply.stderr}")
    return json.loads(reply.stdout.splitlines()[-1])


def main(rounds=5, kernels=100000, out=None):
    rounds, kernels = int(rounds), int(kernels)
    best = {}
    for _ in range(rounds):
        for name in CONTESTANTS:
            result = run(name, kernels)
            if name not in best or result["loop_s"] < best[name]["loop_s"]:
                best[name] = result
    bare = best["bare"]["loop_s"]
    print(f"{kernels:,} kernels, best of {rounds}")
    print(f"{'':<26}{'loop':>10}{'added':>10}{'a launch':>12}{'stop, write':>14}{'bytes':>14}")
    for name, result in best.items():
        added = result["loop_s"] - bare
        print(f"{name:<26}{result['loop_s']:>8.3f} s{added / bare:>9.1%}{added / kernels * 1e6:>9.2f} µs"
              f"{result['stop_s']:>12.3f} s{result['bytes']:>14,}"
              + (f"  {result['kernels']:,} kernels, {result['dropped']:,} dropped"
                 if result["kernels"] is not None else "")
              + (f"  {result['why not']}" if result["why not"] else ""))
    if out:
        with open(out, "w", encoding="utf-8") as file:
            json.dump({"kernels": kernels, "best": best}, file, indent=1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), sys.argv[4])))
    else:
        main(*sys.argv[1:])
