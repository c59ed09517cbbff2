"""Runs a program with known calls under a profiler, once for each way to export. Run as

    exports.py stock|all|full|fast FOLDER

Each way writes its file to FOLDER, and other results to results.json there."""

import gc
import glob
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import torch
from torch.profiler import profile, record_function, tensorboard_trace_handler
from traced import CPU

ODD = 'a"b\\c\tü\n'
WITH_ODD = sys.argv[1] in ("full", "fast")  # torch's own writers make no JSON of such a name

net = torch.nn.Linear(3, 2)
same = torch.nn.Identity()  # has no operator
tensor = torch.ones(1, 3)


def odd():
    pass


odd.__code__ = odd.__code__.replace(co_name=ODD)


def leaf(x):
    return x


def branch():
    for i in range(3):
        leaf(i)


def generate():
    yield leaf(1)
    yield 2


def adds():
    return tensor + 1


def passes():
    same(leaf(tensor))


def work():
    branch()
    for _ in generate():
        pass
    if WITH_ODD:
        odd()
    adds()
    with record_function("span"):
        adds()
        leaf(0)
    net(tensor)
    passes()


def traced(**options):
    with profile(activities=CPU, with_stack=True, **options) as prof:
        work()
    return prof


def ways(to):
    """Returns the ways to export, as functions that write the file of their name."""
    def exported(name, *args, **options):
        traced(**options).export_chrome_trace(to(name), *args)

    def handled(name, **options):
        traced(on_trace_ready=tensorboard_trace_handler(to("handler"), "w", **options))
        [file] = glob.glob(to("handler/*"))
        os.rename(file, to(name))

    def autograd(name):
        with torch.autograd.profiler.profile(with_stack=True, use_kineto=True) as prof:
            work()
        prof.export_chrome_trace(to(name))

    def activities(name):  # in whole nanoseconds
        found = traced().profiler.kineto_results.trace_activities()
        assert not any(a.flow_start() or a.linked_activity() for a in found)
        with open(to(name), "w") as file:
            json.dump({"traceEvents": [
                {"ph": "X", "cat": a.type(), "name": a.name(), "ts": a.timestamp(), "dur": a.duration(), "pid": a.device_id(), "tid": a.resource_id(),
                 "args": json.loads("{" + a.metadata_json() + "}")} for a in found]}, file)

    def asked(name):  # whoever asks for torch's objects first gets the same file
        prof = traced()
        result = prof.profiler.kineto_results
        counts = [len(result.events()), len(prof.events()), len(result.events())]
        assert counts[0] == counts[2] > 0, counts
        assert result.experimental_event_tree() and len(result.events()) == counts[0]
        prof.export_chrome_trace(to(name))

    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
    newer = {"python.json": lambda name: exported(name, True),  # torch 2.11 does not have them
             "python.json.gz": lambda name: exported(name, True),
             "activities.json": activities}
    return {"plain.json": exported, "packed.json.gz": exported,
            "handler.json": handled,
            "handler.json.gz": lambda name: handled(name, use_gzip=True),
            "autograd.json": autograd,
            "asked.json": asked,
            **(newer if hasattr(torch._C._autograd._ProfilerResult, "trace_activities") else {}),
            "verbose.json": lambda name: exported(name, experimental_config=verbose)}


def twice(to):
    """Exports one trace in two forms, and returns the error of a second export."""
    prof = traced()
    prof.export_chrome_trace(to("same.json"))
    results = {}
    for name in ("same.json", "same.json.gz"):
        try:
            prof.export_chrome_trace(to(name))
        except RuntimeError as error:
            results[name] = str(error)
    return results


def mended(name, to):
    """torch writes any metadata, also if it is not JSON."""
    with profile(activities=CPU, with_stack=True) as prof:
        prof.add_metadata_json("bad", "{nope")
        work()
    prof.export_chrome_trace(to(name))


def main():
    global WITH_ODD
    kind, folder = sys.argv[1:]
    if kind != "stock":
        import kpytrace.torch

        before = [vars(owner)[name] for owner, name in patched()]
        kpytrace.torch.install(kind)

    def to(name):
        return os.path.join(folder, name)
    for name, way in ways(to).items():
        way(name)
    results = {"pid": os.getpid(), "twice": twice(to), "files": [*ways(to), "same.json"]}
    WITH_ODD = False
    traced().events().export_chrome_trace(to("events.json"))
    if kind != "stock":
        WITH_ODD = kind in ("full", "fast")
        results["files"] += ["mended.json", "mended.json.gz"]
        for name in results["files"][-2:]:
            mended(name, to)
        WITH_ODD = False
        kpytrace.torch.uninstall()
        gc.collect()  # of results that have a recording ours would still be needed
        results["restored"] = before == [vars(owner)[name] for owner, name in patched()]
        with profile(activities=CPU, with_stack=True) as prof:
            work()
        prof.export_chrome_trace(to("after.json.gz"))
    with open(to("results.json"), "w") as file:
        json.dump(results, file)


def patched():
    return [(torch._C._autograd._ProfilerResult, "save"),
            (torch._C._autograd._ProfilerResult, "events"),
            (torch._C._autograd._ProfilerResult, "experimental_event_tree"),
            (torch.autograd, "_disable_profiler"), (torch._C._autograd, "_disable_profiler"),
            (torch.profiler.profiler._KinetoProfile, "export_chrome_trace"),
            (torch.autograd.profiler_util.EventList, "export_chrome_trace")]


if __name__ == "__main__":
    main()
