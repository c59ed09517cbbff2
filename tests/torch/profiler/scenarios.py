"""The programs of the parity tests. Run as

    scenarios.py stock|all|full|fast OUTPUT

Each is traced by torch's own tracer or by kpytrace, and the results are written to OUTPUT as JSON."""

import gc
import json
import pathlib
import sys
import threading
import time
import warnings
import weakref

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import scenarios_bugs
import scenarios_ends
import torch
import traced
from programs import CallsSuper, Net, Skips, c_calls, inner, outer, raises, train
from traced import calls, exported, flat, further_parts, plain, run, tree, within

SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


# --- names and fields -------------------------------------------------------------------------------

@scenario
def names():
    namespace = {}
    exec(compile("def f():\n    return g()\ndef g():\n    return 5\n", "<mystring>", "exec"),
         namespace)
    code = compile("f()", "<mystring>", "exec")

    def work():
        outer()
        c_calls()
        raises()
        exec(code, namespace)
    found = calls(run(work))
    return {"rows": [[row["name"], row["id"], row["parent"], row["module"], row["ph"],
                      row["own pid"], sorted(set(row["args"]) - {"Ev Idx"})] for row in found],
            "work": within(found, "work")}


@scenario
def odd_names():
    work = {}
    exec("def größe(): pass\ndef tab(): pass\n", work)
    work["tab"].__code__ = work["tab"].__code__.replace(co_name="a\tb")

    def body():
        work["größe"]()
        work["tab"]()
    prof = run(body)
    events = [event.name for event in prof.events() if "größe" in event.name or "\t" in event.name]
    return {"events": events, "chrome": within(calls(prof), "body")}


@scenario
def header():
    prof = run(outer)
    trace = exported(prof)
    try:
        prof.export_chrome_trace("/dev/null")
        second = "no error"
    except RuntimeError as error:
        second = str(error)
    return {"with_stack": trace.get("with_stack"), "second": second}


@scenario
def events():
    prof = run(outer)
    python = [event for event in prof.events() if event.is_python_function]
    by_id = {event.python_id: event for event in python}
    inners = [event for event in python if event.name.endswith(": inner")]
    return {"inners": len(inners),
            "parents": [by_id[event.python_parent_id].name for event in inners],
            "roots": sum(event.python_parent_id == -1 for event in python),
            "stacks": [event.stack for event in prof.events() if event.stack],
            "averages": sorted(plain(row.key) for row in prof.key_averages()
                               if "inner" in row.key)}


@scenario
def verbose():
    net = Net()
    prof = run(lambda: net(torch.ones(2, 3)), verbose=True)
    found = {plain(event.name): event.stack for event in prof.events()
             if event.name in ("aten::addmm", "aten::relu")}
    rows = calls(prof)
    main = [row["args"]["Call stack"] for row in rows if "forward" in row["name"]]
    return {"stacks": {name: [plain(frame) for frame in stack] for name, stack in found.items()},
            "call stacks": [plain(text) for text in main],
            "table": "Source Location" in prof.key_averages(group_by_stack_n=5).table(),
            "threads": sorted({row["args"]["Python thread"] for row in rows})}


@scenario
def averages():
    net = Net()
    prof = run(lambda: net(torch.ones(2, 3)), verbose=True)
    groups = prof.key_averages(group_by_stack_n=5)
    return sorted([plain(group.key), [plain(frame) for frame in group.stack]]
                  for group in groups if group.key.startswith("aten::"))


# --- modules and optimizers -------------------------------------------------------------------------

@scenario
def modules():
    net, twin, skips = Net(), Net(), Skips(3, 2)
    supers, scripted = CallsSuper(3, 2), torch.jit.script(torch.nn.Linear(3, 2))
    x = torch.ones(2, 3)

    def work():
        for module in (net, twin, net, skips, supers, scripted):
            module(x)
    first = calls(run(work))
    second = calls(run(lambda: twin(x)))
    return [[[row["name"], row["module"]] for row in found
             if "nn.Module" in row["name"] or "__call__" in row["name"]]
            for found in (first, second)]


def encloses_operator(node):
    return any(event["tag"] == "TorchOp" for event, _ in flat(node["children"]))


@scenario
def training():
    net, x = Net(), torch.ones(2, 3)
    optimizer = torch.optim.Adam(net.parameters())
    train(net, optimizer, x)
    prof = run(lambda: train(net, optimizer, x), profile_memory=True, record_shapes=True)
    nodes = tree(prof)
    further = further_parts(prof)
    calls_in_tree = [(event, parents) for event, parents in flat(nodes)
                     if "caller" in event and (event["name"], event["start"]) not in further]
    wrong = []
    for event, parents in calls_in_tree:
        nearest = next((p for p in parents if p["tag"] == "PyCall"), None)
        if nearest and event["caller"][:2] != nearest["callsite"][:2]:
            wrong.append([event["name"], event["caller"], nearest["callsite"]])
    return {"modules": [[e["name"], e["module"]] for e, _ in calls_in_tree if e.get("module")],
            "optimizers": [e["optimizer"] for e, _ in calls_in_tree if e.get("optimizer")],
            "steps": [e["name"] for e, _ in calls_in_tree if e.get("optimizer")],
            "ops": [[e["name"], next((p["name"] for p in parents if p["tag"] == "PyCCall"), None)]
                    for e, parents in flat(nodes) if e["tag"] == "TorchOp" and "::" in e["name"]],
            "callers": [[e["name"], e["caller"], encloses_operator(e)]
                        for e, _ in calls_in_tree],
            "wrong": wrong}


@scenario
def memory_categories():
    net, x = Net(), torch.ones(2, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    train(net, optimizer, x)
    prof = run(lambda: train(net, optimizer, x), profile_memory=True, record_shapes=True)
    graph = prof._memory_profile()
    kinds = {}
    for _, action, (key, version), size in graph.timeline:
        name = str(graph._categories.get(key, version))
        kinds[name] = kinds.get(name, 0) + 1
    return kinds


@scenario
def lifetimes():
    def work():
        found = []
        for _ in range(5):
            module = torch.nn.ReLU()
            module(torch.ones(2))
            found.append(weakref.ref(module))
            del module
        return sum(reference() is not None for reference in found)
    return run(work).result


# --- start, stop and threads ------------------------------------------------------------------------

@scenario
def running():
    class Inside(torch.nn.Module):
        def forward(self, x):
            with traced.profile(with_stack=True, activities=traced.CPU) as self.prof:
                inner(1)
            return x
    module = Inside()
    module(torch.ones(1))
    found = calls(module.prof)
    start = next(i for i, row in enumerate(found) if row["name"].endswith("__enter__"))
    return {"open": [row["name"] for row in found[:start]],
            "ends": len({round(row["ts"] + row["dur"]) for row in found[:start]}),
            "profiler": [row["name"] for row in found if "profiler.py" in row["name"]][:2],
            "last": found[-1]["name"]}


@scenario
def running_c_call():
    profs = []

    def key(x):
        if not profs:
            profs.append(traced.profile(with_stack=True, activities=traced.CPU).__enter__())
        return x
    sorted([2, 1], key=key)
    inner(1)
    profs[0].__exit__(None, None, None)
    return [row["name"] for row in calls(profs[0]) if "sorted" in row["name"]]


@scenario
def deep():
    profs = []

    def down(n):
        if n:
            return down(n - 1)
        profs.append(traced.profile(with_stack=True, activities=traced.CPU).__enter__())
    down(200)
    inner(1)
    profs[0].__exit__(None, None, None)
    return sum(row["name"].endswith(": down") for row in calls(profs[0]))


@scenario
def threads():
    go, ready, done, idle = (threading.Event() for _ in range(4))
    tids = {}

    def early():
        tids["early"] = threading.get_native_id()
        ready.set()
        go.wait()
        inner(1)
        done.set()

    def late():
        tids["late"] = threading.get_native_id()
        inner(2)

    def sleeper():
        tids["sleeper"] = threading.get_native_id()
        idle.wait()
    workers = [threading.Thread(target=early), threading.Thread(target=sleeper)]
    for worker in workers:
        worker.start()
    ready.wait()
    while "sleeper" not in tids:
        time.sleep(0.01)

    def work():
        go.set()
        done.wait()
        thread = threading.Thread(target=late)
        thread.start()
        thread.join()
    prof = run(work, verbose=True)
    idle.set()
    for worker in workers:
        worker.join()
    found = calls(prof)
    owner = {tid: name for name, tid in tids.items()}
    owner[threading.get_native_id()] = "main"
    return {"inner": sorted(owner.get(row["tid"], "?") for row in found
                            if row["name"].endswith(": inner")),
            "sleeper": [owner.get(row["tid"], row["tid"]) for row in found
                        if row["name"].endswith(": sleeper")],
            "numbers": sorted({(owner.get(row["tid"], "?"), row["args"]["Python thread"])
                               for row in found})}


# --- configuration ----------------------------------------------------------------------------------

@scenario
def switched_off():
    out = {}
    for name, options in {"with_modules": {"with_stack": False, "with_modules": True},
                          "no stack": {"with_stack": False}}.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out[name] = len(calls(run(outer, **options)))
    return out


@scenario
def collections():
    config = torch._C._profiler._ExperimentalConfig(record_python_gc_info=True)
    during = []

    def work():
        during.append(len(gc.callbacks))
        gc.collect()
    before = len(gc.callbacks)
    prof = run(work, experimental_config=config)
    after = len(gc.callbacks)
    events = [event.name for event in prof.events() if event.name == "Python GC"]
    found = [event for event in exported(prof)["traceEvents"] if event.get("name") == "Python GC"]
    return {"events": len(events), "callbacks": [during[0] - before, after - before],
            "chrome": [[event["cat"], event["ph"]] for event in found]}


@scenario
def schedule():
    ready = []

    def handler(prof):
        found = calls(prof)
        ready.append([found[0]["id"], sum(row["name"].endswith(": inner") for row in found)])
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with traced.profile(with_stack=True, activities=traced.CPU, schedule=plan,
                        on_trace_ready=handler) as prof:
        for _ in range(8):
            inner(1)
            prof.step()
    return ready


@scenario
def toggled():
    def work():
        prof = holder[0]
        torch.ones(1)
        prof.toggle_collection_dynamic(False, traced.CPU)
        torch.ones(1)
        inner(1)
        prof.toggle_collection_dynamic(True, traced.CPU)
        torch.ones(1)
    holder = []
    with traced.profile(with_stack=True, activities=traced.CPU) as prof:
        holder.append(prof)
        work()
    return {"inner": sum(row["name"].endswith(": inner") for row in calls(prof)),
            "ones": sum(event.name == "aten::ones" for event in prof.events())}


@scenario
def profile_functions():
    seen = []

    def own(frame, event, arg):
        pass
    sys.setprofile(own)
    prof = run(lambda: seen.append(type(sys.getprofile()).__name__))
    after = sys.getprofile()
    sys.setprofile(None)
    del prof
    return {"inside": seen[0], "kept": after is own}


def main():
    kind, output = sys.argv[1:]
    if kind != "stock":
        import kpytrace.torch
        kpytrace.torch.install(kind)
    for function in scenarios_bugs.ALL + scenarios_ends.ALL:
        scenario(function)
    results = {}
    # This one first. torch remembers the sizes of what was allocated under a profiler, also when it is freed
    # later, outside of one: other memory at such an address is then reported when it is freed.
    for name in sorted(SCENARIOS, key=lambda name: name != "memory_categories"):
        function = SCENARIOS[name]
        began = time.monotonic()
        try:
            results[name] = function()
        except Exception as error:
            results[name] = {"error": f"{type(error).__name__}: {error}"}
        results[name] = {"value": results[name], "seconds": time.monotonic() - began}
    with open(output, "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main()
