"""The chain of Python callers of each operator of a program. Run as

    chains.py KIND PROGRAM OUTPUT

KIND is stock or a mode of kpytrace's; OUTPUT receives {where: [[operator, its callers from the outermost], ...]},
in order, from the times of the exported file and, in kinds that pass calls to torch, from the event tree."""

import collections
import json
import re
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

CPU = [ProfilerActivity.CPU]
KIND = sys.argv[1]
# What differs from run to run, or between stock and ours by design: addresses, the line at which a generator goes on.
VARIES = re.compile(r" at 0x[0-9a-f]+|\(\d+\)(?=: )")


def plain(name):
    return VARIES.sub("", name)


def in_file(prof, path):
    prof.export_chrome_trace(path)
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    threads = collections.defaultdict(list)
    for event in events:
        if event.get("cat") in ("python_function", "cpu_op"):
            start = round(event["ts"] * 1000)
            threads[event["tid"]].append((start, start + round(event["dur"] * 1000), event))
    found = []
    for spans in threads.values():
        calls = []
        for start, end, event in sorted(spans, key=lambda span: (span[0], -span[1])):
            calls = [call for call in calls if call[1] > start]
            if event["cat"] == "python_function":
                calls.append((start, end, plain(event["name"])))
            elif event["name"].startswith("aten::"):
                found.append((start, [event["name"], [call[2] for call in calls if call[1] >= end]]))
    return [row for _, row in sorted(found, key=lambda row: row[0])]


def in_tree(prof):
    found = []

    def walk(event, callers):
        if event.tag.name == "TorchOp" and event.name.startswith("aten::"):
            found.append((event.start_time_ns, [event.name, callers]))
        elif event.tag.name in ("PyCall", "PyCCall"):
            callers = [*callers, plain(event.name)]
        for child in event.children:
            walk(child, callers)
    for root in prof.profiler.kineto_results.experimental_event_tree():
        walk(root, [])
    return [row for _, row in sorted(found, key=lambda row: row[0])]


def chains(prof):
    found = {"file": in_file(prof, sys.argv[3] + ".trace")}
    if KIND not in ("fast", "native"):
        found["tree"] = in_tree(prof)
    return found


# --- programs ---------------------------------------------------------------------------------------

def steps():
    """A step of the profiler in a callee; annotations that are left open, or end in another call."""
    def tail():
        torch.ones(3).add(1)

    def opens():
        opened = record_function("left open")
        opened.__enter__()
        tail()
        return opened

    def batch(prof):
        prof.step()
        tail()
        opened = opens()
        tail()
        closes(opened)

    def closes(opened):
        tail()
        opened.__exit__(None, None, None)
        tail()
        record_function("never ends").__enter__()
        tail()

    def epoch(prof):
        for _ in range(3):
            batch(prof)
            tail()

    with profile(activities=CPU, with_stack=True,
                 schedule=schedule(wait=0, warmup=1, active=9)) as prof:
        epoch(prof)
    return prof


def lightning():
    import logging
    import warnings

    import pytorch_lightning as pl
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))

        def training_step(self, batch, index):
            return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(24, 8), torch.randint(0, 2, (24,)))
    results = []

    class Steps(pl.profilers.PyTorchProfiler):
        """Lightning's own profiler, which steps inside the optimizer's closure."""

    profiler = Steps(activities=CPU, with_stack=True, export_to_chrome=False, emit_nvtx=False,
                     schedule=schedule(wait=0, warmup=1, active=3), record_module_names=False,
                     on_trace_ready=lambda prof: results.append(chains(prof)))
    trainer = pl.Trainer(max_epochs=1, profiler=profiler, accelerator="cpu", logger=False,
                         enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=4))
    return results


def trainer():
    import os
    import tempfile
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.line = torch.nn.Linear(4, 1)

        def forward(self, x, labels=None):
            out = self.line(x).squeeze(-1)
            return {"loss": ((out - labels) ** 2).mean(), "logits": out}

    class Step(transformers.TrainerCallback):
        def on_step_end(self, *_, **__):
            prof.step()

    torch.manual_seed(0)
    data = [{"x": torch.randn(4), "labels": torch.tensor(1.0)} for _ in range(16)]
    with tempfile.TemporaryDirectory() as folder:
        args = transformers.TrainingArguments(folder, per_device_train_batch_size=4, max_steps=4, report_to=[],
                                              save_strategy="no", logging_strategy="no", use_cpu=True,
                                              disable_tqdm=True)
        run = transformers.Trainer(model=Net(), args=args, train_dataset=data, callbacks=[Step()])
        results = []
        with profile(activities=CPU, with_stack=True, schedule=schedule(wait=0, warmup=1, active=2),
                     on_trace_ready=lambda prof: results.append(chains(prof))) as prof:
            run.train()
    return results


if __name__ == "__main__":
    if KIND != "stock":
        import kpytrace.torch
        kpytrace.torch.install(KIND)
    result = globals()[sys.argv[2]]()
    if not isinstance(result, list):
        result = [chains(result)]
    with open(sys.argv[3], "w") as file:
        json.dump(result, file)
