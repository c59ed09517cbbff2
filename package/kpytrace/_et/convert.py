"""Converts an execution trace to other formats."""

from __future__ import annotations

from .check import ATTRS
from .trace import Damaged, Trace, naming, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any, Union

    Path = Union[str, os.PathLike[str]]

_NS_PER_SECOND = 1_000_000_000

TIMELINE = (".chrome.json", ".chrome.json.gz")


def plain(trace: Trace) -> dict[str, Any]:
    """Returns the trace with only the members that its schema defines, and the host's attributes of
    collectives."""
    names = {name for name, _ in ATTRS}
    data = {key: value for key, value in trace.data.items() if key != "kpytrace"}
    data["nodes"] = [{**node.data, "attrs": [attr for attr in node.data["attrs"] if attr["name"] in names or
                                             attr["name"] not in ("kpytrace", "kineto", "error")]}
                     for node in trace.nodes]
    return data


def timeline(trace: Trace) -> dict[str, Any]:
    """Returns the operators of a trace with times as Chrome trace JSON, with their ids and the Python line that
    called them. Viewers read times as doubles, which hold the Unix time of today to a quarter of a microsecond. So
    times are relative to baseTimeNanoseconds, as in Kineto's files."""
    timed = sorted((node for node in trace.operators() if "start_ns" in node.own), key=lambda node: node.own["start_ns"])
    base_ns = timed[0].own["start_ns"] // _NS_PER_SECOND * _NS_PER_SECOND if timed else 0
    events = []
    for node in timed:
        own = node.own
        args: dict[str, Any] = {"ET node": node.id, "Record function id": node.record_id,
                                "Input types": node.inputs("types"), "Input dims": node.inputs("shapes")}
        stack = trace.stack(node)
        if stack:
            args["Python stack"] = [f"{file}({line}): {name}" for name, file, line in stack]
        if "error" in node.attrs:
            args["error"] = node.attrs["error"]
        events.append({"ph": "X", "cat": "user_annotation" if node.attrs.get("scope") == 7 else "cpu_op",
                       "name": node.name, "pid": trace.data.get("pid", 0), "tid": own.get("os_tid", 0),
                       "ts": (own["start_ns"] - base_ns) / 1000, "dur": own.get("dur_ns", 0) / 1000, "args": args})
    if not events and any(True for _ in trace.operators()):
        raise Damaged("this trace has no times: only traces that kpytrace recorded have them")
    return {"schemaVersion": 1, "baseTimeNanoseconds": base_ns, "traceEvents": events}


def convert(trace: Trace, path: Path, without_ours: bool) -> None:
    """Writes the trace in the format of the path's suffix."""
    import os

    name = os.fspath(path)
    if name.endswith(TIMELINE):
        with naming(trace.path):
            made = timeline(trace)
        write_json(path, made)
    elif name.endswith((".json", ".json.gz")):
        write_json(path, plain(trace) if without_ours else trace.data)
    else:
        raise Damaged(f"{name}: the name must end in .json, .json.gz, or, for a timeline, .chrome.json")
