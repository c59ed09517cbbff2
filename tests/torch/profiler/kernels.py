"""Runs a program whose kernels are launched from known places, and exports its trace in several ways. Run as

    kernels.py MODE cpu|cuda FOLDER [off]

On the CPU a stand-in plays the GPU: when torch has written its file, each operator there gets a call of
CUDA in its middle and a kernel, as Kineto writes them, before kpytrace adds its calls. The file that torch
has written is kept beside each file, as NAME.torch."""

import glob
import json
import os
import pathlib
import shutil
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import torch
from torch.profiler import profile, tensorboard_trace_handler

MODE, DEVICE, FOLDER = sys.argv[1:4]
OPERATORS = ("aten::add", "aten::mul", "aten::sub", "aten::neg", "aten::addmm")
STRANGE_TID = 4000001  # of a thread that has no Python
EVENT = """  {{
    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid},
    "ts": {ts:.3f}, "dur": 0.100,
    "args": {{
      "External id": 3,{more} "correlation": {correlation}
    }}
  }},
"""


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.inner(x)


net = Net().to(DEVICE)
tensor = torch.ones(4, 8, device=DEVICE)


def adds():
    return torch.add(tensor, 1)  # adds


def muls():
    leaf()
    return torch.mul(tensor, 2)  # muls


def leaf():
    pass


def branch():
    leaf()
    for _ in range(3):
        muls()  # branch


def resumed():
    yield leaf()
    yield torch.sub(tensor, 1)  # resumed


def negates():
    torch.neg(tensor)  # negates


def beside():
    negates()


def work():
    adds()
    branch()
    for _ in resumed():
        pass
    with torch.no_grad():
        net(tensor)
    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()


def main(**options):
    threads = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with profile(with_stack=True, experimental_config=threads, **options) as prof:
        work()
        if DEVICE == "cuda":
            torch.cuda.synchronize()
    return prof


def kernels_of(trace):
    """Returns the text of a kernel in each of OPERATORS, of one on an unknown thread, and of one without a launch."""
    text, correlation = "", 100
    last = None
    for event in trace["traceEvents"]:
        if event.get("cat") != "cpu_op" or event["name"] not in OPERATORS:
            continue
        correlation += 1
        last = event
        middle = event["ts"] + event["dur"] / 2
        text += EVENT.format(cat="kernel", name=event["name"], pid=0, tid=7, ts=middle + 5,
                             more=' "device": 0, "stream": 7,', correlation=correlation)
        text += EVENT.format(cat="cuda_runtime", name="cudaLaunchKernel", pid=event["pid"],
                             tid=event["tid"], ts=middle, more=' "cbid": 211,', correlation=correlation)
    text += EVENT.format(cat="cuda_driver", name="cuLaunchKernel", pid=last["pid"], tid=STRANGE_TID,
                         ts=last["ts"], more="", correlation=7)
    text += EVENT.format(cat="kernel", name="strange", pid=0, tid=7, ts=last["ts"], more="", correlation=7)
    return text + EVENT.format(cat="gpu_memset", name="Memset", pid=0, tid=7, ts=last["ts"], more="",
                               correlation=8)


def play(path):
    with open(path) as file:
        text = file.read()
    end = text.rindex("{", 0, text.rindex('"Record Window End"'))
    text = text[:end] + kernels_of(json.loads(text)).lstrip() + "  " + text[end:]
    text = text.replace('"deviceProperties": [', '"deviceProperties": [{"id": 0, "name": "played"}', 1)
    with open(path, "w") as file:
        file.write(text)


def stand_in():
    """Wraps torch's save, below our wrapper. NAME is the running export. Without a device the profiler records
    the CPU only."""
    result = torch._C._autograd._ProfilerResult
    original = result.save

    def save(self, path):
        original(self, path)
        if DEVICE == "cpu":
            play(path)
        shutil.copy(path, os.path.join(FOLDER, name + ".torch"))
    result.save = save
    if DEVICE == "cpu":
        kpytrace.torch._export.may_have_gpu = lambda result: True


def handled(name, **options):
    main(on_trace_ready=tensorboard_trace_handler(os.path.join(FOLDER, "handler"), "w", **options))
    [file] = glob.glob(os.path.join(FOLDER, "handler", "*"))
    os.rename(file, os.path.join(FOLDER, name))


def exported(name):
    main().export_chrome_trace(os.path.join(FOLDER, name))


def asked(name):
    """torch has received its calls by then."""
    prof = main()
    prof.events()
    prof.export_chrome_trace(os.path.join(FOLDER, name))


WAYS = {"plain.json": exported, "packed.json.gz": exported, "handler.json": handled,
        "handler.json.gz": lambda name: handled(name, use_gzip=True), "asked.json": asked}
name = ""

if __name__ == "__main__":
    import kpytrace.torch._export

    stand_in()
    kpytrace.torch.install(MODE, kernel_stacks="off" not in sys.argv)
    if DEVICE == "cuda":
        main()  # CUDA's own beginning
    for name, way in WAYS.items():
        way(name)
