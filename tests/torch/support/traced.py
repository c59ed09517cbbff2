"""Runs a profiler, and returns its results in a form that two processes can compare."""

import json
import os
import re
import tempfile

import parts
import torch
from torch.profiler import ProfilerActivity, profile

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
CPU = [ProfilerActivity.CPU]
EVENTS_HAVE_CALLS = hasattr(torch._C._autograd._KinetoEvent, "is_python_function")  # torch 2.11's have operators alone


def plain(name):
    """Returns a name without the parts that differ from run to run."""
    return ADDRESS.sub("", name)


def run(work, verbose=False, **options):
    """Runs WORK under a profiler with stacks. Returns the profiler, with WORK's result in it."""
    if verbose:
        options["experimental_config"] = torch._C._profiler._ExperimentalConfig(verbose=True)
    options.setdefault("with_stack", True)
    options.setdefault("activities", CPU)
    with profile(**options) as prof:
        prof.result = work()
    return prof


def exported(prof):
    """Returns the Chrome trace that PROF exports."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path) as file:
            return json.load(file)


def calls(prof):
    """Returns the Python calls of the exported trace, by id, each as one dict."""
    return rows(exported(prof))


def rows(trace):
    found = parts.once(event for event in trace["traceEvents"]
                       if event.get("cat") == "python_function")
    out = [{"name": plain(event["name"]), "ts": event["ts"], "dur": event["dur"],
            "tid": event["tid"], "own pid": event["pid"] == os.getpid(), "ph": event["ph"],
            "id": event["args"].get("Python id"), "parent": event["args"].get("Python parent id"),
            "module": event["args"].get("Python module id"), "args": event["args"]}
           for event in found]
    return sorted(out, key=lambda row: (row["id"] is None, row["id"]))


def names(prof):
    return [row["name"] for row in calls(prof)]


def within(found, function):
    """The calls of FOUND, from calls(), below the first call of FUNCTION: (depth, name) in order."""
    roots = [row for row in found if row["name"].endswith(f": {function}")]
    if not roots:
        return None
    depths = {roots[0]["id"]: 0}
    out = []
    for row in found:
        if row["parent"] in depths:
            depths[row["id"]] = depths[row["parent"]] + 1
            out.append((depths[row["id"]], row["name"]))
    return out


def place(state):
    return [state.file_name, state.function_name]


def metadata(tensor):
    """Returns the shape and type of a tensor of the event tree. Its id and address differ from run to run."""
    return tensor and [list(tensor.sizes), list(tensor.strides), str(tensor.dtype)]


def module_info(module):
    return module and {
        "class": module.cls_name,
        "parameters": [[name, metadata(p), metadata(g)] for name, p, g in module.parameters]}


def optimizer_info(optimizer):
    return optimizer and [
        [metadata(p), metadata(g), [[name, metadata(value)] for name, value in state]]
        for p, g, state in optimizer.parameters]


def tree(prof):
    """experimental_event_tree() as nested lists."""
    def node(event):
        out = {"name": plain(event.name), "tag": event.tag.name,
               "children": [node(child) for child in event.children]}
        if out["tag"] in ("PyCall", "PyCCall"):
            fields = event.extra_fields
            out["caller"] = [*place(fields.caller), fields.caller.line_number]
            out["start"], out["end"] = event.start_time_ns, event.end_time_ns
        if out["tag"] == "PyCall":
            out["callsite"] = [*place(fields.callsite), fields.callsite.line_number]
            out["module"] = module_info(fields.module)
            out["optimizer"] = optimizer_info(fields.optimizer)
        return out
    return [node(event) for event in prof.profiler.kineto_results.experimental_event_tree()]


def events_of(nodes):
    """All events of experimental_event_tree()."""
    for event in nodes:
        yield event
        yield from events_of(event.children)


def further_parts(prof):
    """(name, start) of the parts of calls that are not their first."""
    seen, found = set(), set()
    if not EVENTS_HAVE_CALLS:  # the file has the numbers, and microseconds
        trace = exported(prof)
        cut = parts.by_id(event for event in trace["traceEvents"] if event.get("cat") == "python_function").values()
        for event in (event for calls_parts in cut for event in calls_parts[1:]):
            start = trace["baseTimeNanoseconds"] + round(event["ts"] * 1000)
            found |= {(plain(event["name"]), start + off) for off in (-1, 0, 1)}
        return found
    for event in sorted(prof.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        number = event.python_id()
        if number > 0:
            if number in seen:
                found.add((plain(event.name()), event.start_ns()))
            seen.add(number)
    return found


def flat(nodes, parents=()):
    """(node, its parents from the innermost) of a tree, in order."""
    for event in nodes:
        yield event, parents
        yield from flat(event["children"], (event, *parents))
