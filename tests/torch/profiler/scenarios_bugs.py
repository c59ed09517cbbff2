"""Programs that torch's own tracer gets wrong."""

import torch
import traced
from nesting import crossing_in


class A(torch.nn.Module):
    def forward(self, x):
        return x


class B(A):
    pass


def call_short_lived():
    """Calls 200 functions, each of which dies after its call."""
    for n in range(200):
        names = {}
        exec(compile(f"def made_{n:03}(): pass", f"<made {n:03}>", "exec"), names)
        names[f"made_{n:03}"]()


def count_short_lived(names):
    """Returns how many of them are among NAMES."""
    return sum(f"<made {n:03}>(1): made_{n:03}" in names for n in range(200))


def freed_names():
    """Returns how many of 200 functions that die before the profiler stops have their names."""
    return count_short_lived({row["name"] for row in traced.calls(traced.run(call_short_lived))})


def overwritten_names():
    """The same, if their memory is reused before the profiler stops."""
    def work():
        call_short_lived()
        return [f"used_{n:03}" for n in range(5000)], [f"<used {n:03}>" for n in range(5000)]
    try:
        prof = traced.run(work)
        if traced.EVENTS_HAVE_CALLS:
            return count_short_lived({event.name for event in prof.events()})
        return count_short_lived({row["name"] for row in traced.calls(prof)})
    except UnicodeDecodeError:
        return 0


def reused_addresses():
    def work():
        x = torch.ones(1)
        for cls in (A, B, A, B, A, B):
            cls()(x)
    return [row["name"] for row in traced.calls(traced.run(work))
            if row["name"].startswith("nn.Module")]


def annotated():
    with torch.autograd.profiler.record_function("outer"):
        torch.ones(2)
        with torch.autograd.profiler.record_function("inner"):
            torch.ones(2)
    return torch.ones(2)


def crossings():
    """Returns the spans of a thread that cross, including annotations and steps."""
    traces = []
    plan = torch.profiler.schedule(wait=0, warmup=1, active=3)
    with traced.profile(with_stack=True, activities=traced.CPU, schedule=plan,
                        on_trace_ready=lambda prof: traces.append(traced.exported(prof))) as prof:
        for _ in range(8):
            annotated()
            prof.step()
    traces.append(traced.exported(traced.run(lambda: [annotated() for _ in range(3)])))
    return [pair for trace in traces for pair in crossing_in(trace)]


def quoted():
    """The name of a call around an operator, with a quote in it, in the file and in torch's objects; None if
    the file is not JSON."""
    class Net(torch.nn.Module):
        def forward(self, x):
            return x + 1

    def work():
        net(torch.ones(1))
    work.__code__ = work.__code__.replace(co_name='one"two', co_filename='a"b.py')
    Net.__name__ = 'three"two'
    net = Net()
    prof = traced.run(work)
    try:
        found = traced.names(prof)
    except ValueError:
        return None
    found += [event.name() for event in prof.profiler.kineto_results.events()]
    return [name for name in found if "two" in name]


def fast_spans():
    """Begins and ends spans with _RecordFunctionFast in separate calls. Returns the names of spans that cross, and of
    operators."""
    def begins():
        span = torch._C._profiler._RecordFunctionFast("between")
        span.__enter__()
        torch.ones(1)
        return span

    def ends(span):
        torch.ones(1)
        span.__exit__(None, None, None)
        torch.ones(1)

    def work():
        for _ in range(3):
            ends(begins())
    trace = traced.exported(traced.run(work))
    return {"crossings": crossing_in(trace),
            "operators": [event["name"] for event in trace["traceEvents"] if event.get("cat") == "cpu_op"]}


ALL = (quoted, freed_names, overwritten_names, reused_addresses, crossings, fast_spans)
