"""Links an execution trace with the profile of the same run, in one file: each operator gets its times, and the
kernels that it launched."""

from __future__ import annotations

from .trace import Damaged, Node, Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OPERATORS = ("cpu_op", "user_annotation")
_ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


class Links:
    """The result of link()."""

    def __init__(self) -> None:
        self.linked = self.kernels = 0
        self.only_in_trace: list[Node] = []
        self.only_in_profile: list[dict[str, Any]] = []


def _events(profile: Any) -> list[dict[str, Any]]:
    events = profile.get("traceEvents") if isinstance(profile, dict) else profile
    if not isinstance(events, list):
        raise Damaged("not a Chrome trace: traceEvents is missing")
    return [event for event in events if isinstance(event, dict)]


def _arguments(event: dict[str, Any]) -> dict[str, Any]:
    found = event.get("args")
    return found if isinstance(found, dict) else {}


def _number(event: dict[str, Any], name: str) -> int:
    value = _arguments(event).get(name, 0)
    return value if isinstance(value, int) else 0


def _kernels(events: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """Returns the activities of devices, by the External id of the operator that launched them."""
    found: dict[int, list[dict[str, Any]]] = {}
    for event in events:
        if event.get("cat") in _ON_DEVICE:
            found.setdefault(_number(event, "External id"), []).append(event)
    return found


def link(trace: Trace, profile: Any) -> Links:
    """Adds the attribute `kineto` to the nodes of `trace`: ts, dur, pid, tid, cat, ext_id and, if there are any,
    kernels. The rf_id of a node is the "Record function id" of its event in Kineto's file."""
    events = _events(profile)
    kernels, result = _kernels(events), Links()
    operators = {_number(event, "Record function id"): event for event in events
                 if event.get("cat") in _OPERATORS and event.get("ph") == "X"}
    operators.pop(0, None)
    for node in trace.operators():
        event = operators.pop(node.record_id, None)
        if event is None:
            result.only_in_trace.append(node)
            continue
        said: dict[str, Any] = {key: event[key] for key in ("ts", "dur", "pid", "tid", "cat") if key in event}
        said["ext_id"] = _number(event, "External id")
        own = kernels.get(said["ext_id"], []) if said["ext_id"] else []
        if own:
            said["kernels"] = [{"name": k.get("name"), "ts": k.get("ts"), "dur": k.get("dur"),
                                **{name: _arguments(k)[name] for name in ("device", "stream", "correlation")
                                   if name in _arguments(k)}} for k in own]
            result.kernels += len(own)
        node.set_attr("kineto", "map", said)
        result.linked += 1
    result.only_in_profile = list(operators.values())
    return result
