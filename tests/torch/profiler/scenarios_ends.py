"""Programs whose calls and annotations end in odd ways."""

import threading
import time
import warnings

import torch
import traced
from nesting import crossing_in
from programs import inner

annotations = torch.ops.profiler


def begin(name):
    return annotations._record_function_enter_new(name, None)


def end(handle):
    annotations._record_function_exit._RecordFunction(handle)


def elsewhere(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


# --- annotations that end on another thread ---------------------------------------------------------

def begins(handles):
    inner(1)
    handles.append(begin("outlives its call"))
    torch.ones(1)


def ends_elsewhere():
    handle = begin("ends elsewhere")
    torch.ones(1)
    elsewhere(end, handle)
    torch.ones(1)
    inner(2)


def outlives():
    handles = []
    begins(handles)
    inner(2)
    elsewhere(end, handles[0])
    inner(3)


def begins_elsewhere():
    handles = []
    elsewhere(begins, handles)
    inner(2)
    end(handles[0])
    inner(3)


def two():
    first, _ = begin("first"), inner(1)
    second, _ = begin("second"), inner(2)
    elsewhere(end, first)
    torch.ones(1)
    elsewhere(end, second)
    inner(3)


def keep(promised):
    time.sleep(0.02)  # until the other thread waits: docs/torch.md says what else may come between
    promised.set_result(1)


def future():
    promised, handle = torch.futures.Future(), begin("future")
    annotations._call_end_callbacks_on_jit_fut._RecordFunction(handle, promised)
    inner(1)
    elsewhere(keep, promised)
    inner(2)


def crossings_of(work):
    """Spans that cross, and how often inner is there on the main thread. An annotation whose end torch does
    not see lasts until torch has put the trace together; here it ends with the last call."""
    trace = traced.exported(traced.run(work))
    spans = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    last = max(round(event["ts"] * 1000) + round(event["dur"] * 1000) for event in spans
               if event["cat"] == "python_function")
    for event in spans:
        if event["cat"] == "user_annotation":
            event["dur"] = min(event["dur"], (last - round(event["ts"] * 1000)) / 1000)
    return {"crossings": crossing_in(trace),
            "annotations": [event["name"] for event in spans if event["cat"] == "user_annotation"],
            "inners": sum(event["name"].endswith(": inner") for event in spans
                          if event["tid"] == threading.get_native_id())}


def asynchronous():
    return {work.__name__: crossings_of(work)
            for work in (ends_elsewhere, outlives, begins_elsewhere, two, future)}


# --- returns and exceptions -------------------------------------------------------------------------

def bottom(n):
    if n:
        raise KeyError(n)
    return n


def middle(n):
    return sorted([n], key=bottom)


def top(n):
    return max([n], key=middle)


def deepest(n):
    if n:
        return deepest(n - 1)
    return min([1], key=top)


def unwinding():
    """Exceptions through C and Python, some caught halfway: each call with its parent, those that end after
    their parent, and those that are open still when the next one of their parent's begins."""
    def caught(*args):
        try:
            deepest(*args)
        except KeyError:
            return inner(0)

    def work():
        caught(0)
        caught(3)
        top(0)
        [caught(n) for n in range(3)]
    rows = {row["id"]: row for row in traced.calls(traced.run(work))}
    for row in rows.values():
        row["end"] = round(row["ts"] * 1000) + round(row["dur"] * 1000)
    below = traced.within(list(rows.values()), "work")
    late, overlaps, before = [], [], {}
    for row in rows.values():
        parent = rows.get(row["parent"])
        if parent and not parent["ts"] <= row["ts"] <= row["end"] / 1000 <= parent["end"] / 1000:
            late.append([row["name"], parent["name"]])
        sibling = before.get(row["parent"])
        if sibling and sibling["end"] > round(row["ts"] * 1000):
            overlaps.append([sibling["name"], row["name"]])
        before[row["parent"]] = row
    return {"calls": below, "late": late, "overlaps": overlaps}


def last_return():
    """Returns the duration, in microseconds, of a call that is followed only by the profiler's end."""
    prof = torch.autograd.profiler.profile(with_stack=True, use_kineto=True)
    prof._prepare_trace()
    prof._start_trace()
    inner(torch.ones(1))
    time.sleep(0.1)
    result = torch.autograd._disable_profiler()
    prof.enabled = False
    if traced.EVENTS_HAVE_CALLS:
        [found] = [event.duration_ns() for event in result.events() if event.name().endswith(": inner")]
    else:
        [found] = [event.duration_time_ns for event in traced.events_of(result.experimental_event_tree())
                   if event.name.endswith(": inner")]
    return found / 1000


def return_before_silence():
    """Returns the durations of a Python call and a C call that return before their thread continues without
    calls."""
    ready, go, state = threading.Event(), threading.Event(), {}

    def spin():
        ready.set()
        go.wait()
        inner(3)
        ord("a")
        state["ran"] = True
        while "stop" not in state:
            pass
    thread = threading.Thread(target=spin)
    thread.start()
    ready.wait()

    def work():
        go.set()
        while "ran" not in state:
            pass
        time.sleep(0.3)
    prof = traced.run(work)
    state["stop"] = True
    thread.join()
    rows = traced.calls(prof)
    return [max(row["dur"] for row in rows if row["name"].endswith(name))
            for name in (": inner", "function ord>")]


def equal_starts():
    """For the calls that were already running, which begin at one time: returns whether each is its successor's
    parent."""
    def down(n):
        return traced.calls(traced.run(lambda: None)) if n == 0 else down(n - 1)
    rows = down(20)
    running = [row for row in rows if row["ts"] == rows[0]["ts"]]
    return [len(running) > 20, all(b["parent"] == a["id"] for a, b in zip(running, running[1:]))]


# --- configuration ----------------------------------------------------------------------------------

def trace_only():
    config = torch._C._profiler._ExperimentalConfig(trace_only=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prof = traced.run(lambda: [inner(1), torch.ones(1)], experimental_config=config)
    names = [event.name for event in prof.events()]
    return {"warnings": [str(warning.message) for warning in caught
                         if "trace_only" in str(warning.message)],
            "ones": names.count("aten::ones"), "inner": traced.names(prof).count(
                f"programs.py({inner.__code__.co_firstlineno}): inner")}


ALL = (asynchronous, unwinding, last_return, return_before_silence, equal_starts, trace_only)
