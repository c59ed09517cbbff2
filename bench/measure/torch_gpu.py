#!/usr/bin/env python3
"""Runs an eager transformer step on a GPU under torch's profiler with stacks: torch's own tracer against
ours. Needs a CUDA device; run where torch and the staged package are importable.

usage: bench/measure/torch_gpu.py [OUT.json]     figures and the comparison, as JSON
"""
import collections
import json
import os
import subprocess
import sys
import tempfile
import time

STEPS = 3


def step_of(torch):
    layer = torch.nn.TransformerEncoderLayer(512, 8, 1024, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randn(16, 128, 512, device="cuda")

    def step():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    return step


def record(mode, path):
    """One profile in this process; times in ms."""
    import torch
    if mode not in ("stock", "none"):
        import kpytrace.torch
        kpytrace.torch.install(mode)
    step = step_of(torch)
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    bare = time.perf_counter() - begin
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    for _ in range(2):  # the first opens CUPTI
        profile = torch.profiler.profile(activities=activities, with_stack=mode != "none")
        profile.start()
        begin = time.perf_counter()
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
        traced = time.perf_counter()
        profile.stop()
        stopped = time.perf_counter()
    profile.export_chrome_trace(path)
    exported = time.perf_counter()
    return {"bare_ms": bare * 1e3, "traced_ms": (traced - begin) * 1e3,
            "stop_ms": (stopped - traced) * 1e3, "export_ms": (exported - stopped) * 1e3,
            "bytes": os.path.getsize(path)}


def innermost(calls, moment):
    """The name of the shortest call around MOMENT."""
    around = [c for c in calls if c["ts"] <= moment <= c["ts"] + c["dur"]]
    return min(around, key=lambda c: c["dur"])["name"] if around else None


def launches(path):
    """How often each kernel was launched, and from which Python call."""
    with open(path) as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    calls = collections.defaultdict(list)
    for event in events:
        if event.get("cat") == "python_function" and not event["name"].startswith("<built-in"):
            calls[event["tid"]].append(event)
    runtime = {e["args"]["correlation"]: e for e in events if e.get("cat") == "cuda_runtime"}
    found = collections.Counter()
    for kernel in (e for e in events if e.get("cat") == "kernel"):
        launch = runtime.get(kernel["args"]["correlation"])
        found[kernel["name"], launch and innermost(calls[launch["tid"]], launch["ts"])] += 1
    return found, sum(map(len, calls.values())), sum(found.values())


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--record":
        return print(json.dumps(record(sys.argv[2], sys.argv[3])))
    results, kernels = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for mode in ("none", "stock", "full", "fast"):
            path = os.path.join(folder, mode + ".json")
            reply = subprocess.run([sys.executable, __file__, "--record", mode, path], check=True,
                                   stdout=subprocess.PIPE, text=True)
            results[mode] = json.loads(reply.stdout.splitlines()[-1])
            kernels[mode], calls, launched = launches(path)
            results[mode].update(python_calls=calls, kernels=launched)
    for mode in ("full", "fast"):
        differ = (kernels["stock"] - kernels[mode]) + (kernels[mode] - kernels["stock"])
        results[mode]["kernels_from_another_call"] = sum(differ.values())
        results[mode]["examples"] = [[*key, n] for key, n in list(differ.items())[:6]]
    text = json.dumps(results, indent=2)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as file:
            file.write(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
