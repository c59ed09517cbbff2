"""A compiled function, traced when it has been compiled, and while it is. Run as

    compiled.py OUTPUT BACKEND[+] ...

with torch's own tracer first and then with kpytrace in each mode; a + traces the compilation too, which is
a million calls with some. What was found is written to OUTPUT as JSON."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import parts
import torch
import traced
from nesting import crossing_in


def inside(x):
    return x * 2


def wave(x):
    return torch.sin(inside(x)) + torch.cos(x)


def caller(function, x):
    x.grad = None
    y = function(x)
    y.sum().backward()
    return [y.tolist(), x.grad.tolist()]


def found(work):
    prof = traced.run(work)
    trace = traced.exported(prof)
    rows = parts.once(event for event in trace["traceEvents"]
                      if event.get("cat") == "python_function")
    own = [event["name"].rpartition(": ")[2] for event in rows if "compiled.py(" in event["name"]]
    return {"result": prof.result, "own": own, "calls": len(rows),
            "crossings": crossing_in(trace),
            "dynamo": any("_dynamo/convert_frame.py" in event["name"] for event in rows),
            "operators": sorted({event["name"] for event in trace["traceEvents"]
                                 if event.get("cat") == "cpu_op"})}


def main():
    x = torch.linspace(0, 1, 8, requires_grad=True)
    out = {"plain": caller(wave, x)}
    # The first time more is imported and prepared, which is of no interest.
    for kind in ("stock", "stock", "all", "full", "fast"):
        if kind != "stock":
            import kpytrace.torch
            kpytrace.torch.install(kind)
        for backend in sys.argv[2:]:
            torch._dynamo.reset()
            compiled = torch.compile(wave, backend=backend.rstrip("+"))
            result = out.setdefault(backend, {})[kind] = {}
            if backend.endswith("+"):
                try:
                    result["compilation"] = found(lambda: caller(compiled, x))
                except json.JSONDecodeError:
                    if kind != "stock":
                        raise
                    # Functions that the compiler made and freed: torch's own tracer has garbage for names.
            else:
                caller(compiled, x)
            result["run"] = found(lambda: caller(compiled, x))
    with open(sys.argv[1], "w") as file:
        json.dump(out, file)


if __name__ == "__main__":
    main()
