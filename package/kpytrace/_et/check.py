"""Checks the invariants of an execution trace on which its readers depend."""

from __future__ import annotations

import copy

from .trace import ROOT, ROOT_ID, SCHEMA, Node, Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Each node has these attributes first, in this order and of these types. Others may follow.
ATTRS = (("rf_id", "uint64"), ("fw_parent", "uint64"), ("seq_id", "int64"), ("scope", "uint64"),
         ("tid", "uint64"), ("fw_tid", "uint64"), ("op_schema", "string"), ("kernel_backend", "string"),
         ("kernel_file", "string"), ("tensor_range", "string"))
_SCALARS = {"Int": int, "Bool": bool, "Double": (float, int, str), "String": str, "Device": str}


def _check_ids(trace: Trace) -> Iterator[str]:
    seen: set[int] = set()
    for node in trace.nodes:
        if node.id < 1:
            yield f"node {node.id}: an id must be a number, 1 or larger"
        elif node.id in seen:
            yield f"node {node.id}: two nodes have this id"
        seen.add(node.id)
    nodes = trace.by_id()
    root = nodes.get(ROOT_ID)
    if root is None or root.name != ROOT:
        yield f"the root is missing: node {ROOT_ID}, {ROOT}"
    for node in trace.nodes:
        if node.parent not in nodes:
            yield f"node {node.id} ({node.name}): its parent, {node.parent}, is not in the trace"
        elif node.parent == node.id and node.id != ROOT_ID:
            yield f"node {node.id} ({node.name}): it is its own parent"


def _check_tree(trace: Trace) -> Iterator[str]:
    """Checks that the root is an ancestor of each node."""
    nodes = trace.by_id()
    good = {ROOT_ID}
    for node in trace.nodes:
        path: list[int] = []
        at: Node | None = node
        while at is not None and at.id not in good and at.id not in path:
            path.append(at.id)
            at = nodes.get(at.parent)
        if at is not None and at.id in path:
            yield f"node {node.id} ({node.name}): its parents form a cycle"
        good.update(path)


def _fits(value: Any, kind: Any) -> bool:
    if not isinstance(kind, str):
        return False
    if kind.startswith("Tensor("):
        return (isinstance(value, list) and len(value) == 6 and
                all(isinstance(number, int) for number in value[:5]) and isinstance(value[5], str))
    if kind.startswith(("GenericList", "Tuple")):
        return isinstance(value, list)
    known = _SCALARS.get(kind)
    return known is None or isinstance(value, known)  # type: ignore[arg-type]


def _check_values(node: Node) -> Iterator[str]:
    for side in ("inputs", "outputs"):
        lists = node.data.get(side)
        if not isinstance(lists, dict) or sorted(lists) != ["shapes", "strides", "types", "values"]:
            yield f"node {node.id} ({node.name}): its {side} are not values, shapes, types and strides"
            continue
        if not all(isinstance(part, list) for part in lists.values()):
            yield f"node {node.id} ({node.name}): a member of its {side} is not a list"
            continue
        counts = {name: len(lists[name]) for name in ("values", "shapes", "types")}
        if len(set(counts.values())) != 1 or len(lists["strides"]) > counts["values"]:
            yield f"node {node.id} ({node.name}): its {side} have lists of different lengths, {counts}"
            continue
        for i, (value, kind) in enumerate(zip(lists["values"], lists["types"])):
            if not _fits(value, kind):
                yield f"node {node.id} ({node.name}): {side[:-1]} {i}, {value!r}, is not of type {kind}"


def _check_attrs(node: Node) -> Iterator[str]:
    attrs = node.data["attrs"]
    head = tuple((attr.get("name"), attr.get("type")) for attr in attrs[:len(ATTRS)])
    if head != ATTRS:
        yield f"node {node.id} ({node.name}): its attributes do not begin with those of the schema"
        return
    for attr in attrs:
        kind, value = attr.get("type"), attr["value"]
        if not isinstance(kind, str):
            yield f"node {node.id} ({node.name}): {attr['name']} has no type"
            continue
        wanted = {"uint64": int, "int64": int, "string": str, "bool": bool}.get(kind, object)
        if not isinstance(value, wanted) or (kind == "uint64" and value < 0):
            yield f"node {node.id} ({node.name}): {attr['name']}, {value!r}, is not of type {kind}"


def _check_links(trace: Trace) -> Iterator[str]:
    """Checks the numbers by which nodes are referred to."""
    nodes, seen = trace.by_id(), dict[int, int]()
    for node in trace.operators():
        if node.record_id and node.record_id in seen:
            yield f"node {node.id} ({node.name}): node {seen[node.record_id]} has its rf_id, {node.record_id}"
        seen[node.record_id] = node.id
        forward = node.attrs.get("fw_parent", 0)
        if forward and forward not in nodes:
            yield f"node {node.id} ({node.name}): its fw_parent, {forward}, is not in the trace"


def check(trace: Trace) -> Iterator[str]:
    """Yields the problems of the trace, one by one, and none if the trace is correct."""
    if trace.schema != SCHEMA:
        yield f"the schema is {trace.schema!r}; readers need {SCHEMA!r}"
    for key in ("pid", "time", "start_ts", "finish_ts"):
        if key not in trace.data:
            yield f"{key!r} is missing"
    yield from trace.problems()
    trace = copy.copy(trace)  # without the unreadable nodes, which the next checks would fail on
    trace.nodes = [node for node in trace.nodes if not node.problem()]
    yield from _check_ids(trace)
    yield from _check_tree(trace)
    for node in trace.nodes:
        yield from _check_values(node)
        yield from _check_attrs(node)
    yield from _check_links(trace)
