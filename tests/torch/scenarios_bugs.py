"""Programs that torch's own tracer gets wrong."""

import torch
import traced
from nesting import crossing_in


class A(torch.nn.Module):
    def forward(self, x):
        return x


class B(A):
    pass


def freed_names():
    """How many of 200 functions, dead before the profiler stops, have their names."""
    def work():
        for n in range(200):
            names = {}
            exec(compile(f"def made_{n}(): pass", f"<made {n}>", "exec"), names)
            names[f"made_{n}"]()
            del names
    named = {row["name"] for row in traced.calls(traced.run(work))}
    return sum(f"<made {n}>(1): made_{n}" in named for n in range(200))


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
    """Spans of a thread that cross, annotations and steps included."""
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
    """The name of a call around an operator, with a quote in it, in the file and in torch's objects; None:
    the file is no JSON."""
    def work():
        torch.ones(1)
    work.__code__ = work.__code__.replace(co_name='one"two', co_filename='a"b.py')
    prof = traced.run(work)
    try:
        found = traced.names(prof)
    except ValueError:
        return None
    found += [event.name() for event in prof.profiler.kineto_results.events()]
    return [name for name in found if "two" in name]


ALL = (quoted, freed_names, reused_addresses, crossings)
