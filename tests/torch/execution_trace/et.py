"""Helpers of the tests of execution traces: reads them, checks their format, and has the program of torch's own
tests."""

import contextlib
import gzip
import json
import os
import tempfile
import unittest

import torch

ROOT = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"
SCHEMA = "1.1.1-chakra.0.0.4"
# In torch's order, with their types; what else there is comes behind.
ATTRIBUTES = (("rf_id", "uint64"), ("fw_parent", "uint64"), ("seq_id", "int64"),
              ("scope", "uint64"), ("tid", "uint64"), ("fw_tid", "uint64"), ("op_schema", "string"),
              ("kernel_backend", "string"), ("kernel_file", "string"), ("tensor_range", "string"))


def attr(node, name):
    found = [row["value"] for row in node["attrs"] if row["name"] == name]
    assert len(found) == 1, (node["name"], name, found)
    return found[0]


def has_attr(node, name):
    return any(row["name"] == name for row in node["attrs"])


def own(node):
    """The values that kpytrace adds, in one attribute that other readers ignore."""
    return attr(node, "kpytrace")


def stack(trace, node):
    """[[function, file, line], ...], innermost first."""
    extra, at, frames = trace["kpytrace"], own(node)["stack"], []
    while at >= 0:
        at, frame = extra["stacks"][at]
        frames.append(extra["frames"][frame])
    return frames


def named(trace, name):
    """Returns the nodes of that name."""
    return [node for node in trace["nodes"] if node["name"] == name]


def the(trace, name):
    found = named(trace, name)
    assert len(found) == 1, (name, len(found))
    return found[0]


def operators(trace):
    return [node for node in trace["nodes"] if node["name"] not in (ROOT, THREAD)]


def rf_ids(trace):
    return sorted(attr(node, "rf_id") for node in operators(trace))


def _check_value(value, type_name, shape, strides):
    if type_name.startswith("Tensor("):
        assert len(value) == 6 and all(type(part) is int for part in value[:5]), value
        assert type(value[5]) is str, value
        assert all(type(part) is int for part in shape + strides), (shape, strides)
        assert len(shape) == len(strides), (shape, strides)
    elif type_name.startswith(("GenericList[", "Tuple[")):
        kinds = _split(type_name[type_name.index("[") + 1:-1])
        assert len(value) == len(kinds) == len(shape) == len(strides), (value, type_name, shape)
        for parts in zip(value, kinds, shape, strides):
            _check_value(*parts)
    else:
        assert shape == [] and strides == [], (type_name, shape, strides)
        kinds = {"Int": int, "Bool": bool, "String": str, "Device": str, "None": str}
        if type_name == "Double":
            assert type(value) is float or value in ("inf", "-inf", "nan"), value
        else:
            assert type(value) is kinds.get(type_name, str), (value, type_name)


def _split(text):
    """Splits at commas outside of brackets."""
    parts, depth, begin = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "[(<") - (char in "])>")
        if char == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return parts + [text[begin:]] if text else []


def check(trace):
    """Raises AssertionError if TRACE does not have the format of its schema."""
    assert trace["schema"] == SCHEMA
    assert [type(trace[key]) for key in ("pid", "time", "start_ts", "finish_ts")] == [int, str, int, int]
    assert trace["finish_ts"] >= trace["start_ts"]
    nodes = {node["id"]: node for node in trace["nodes"]}
    assert len(nodes) == len(trace["nodes"]), "ids are not unique"
    assert nodes[1]["name"] == ROOT and trace["nodes"][-1]["id"] == 1, "the root is last"
    for node in trace["nodes"]:
        assert list(node)[:6] == ["id", "name", "ctrl_deps", "inputs", "outputs", "attrs"]
        assert node["name"] and node["ctrl_deps"] in nodes, node
        assert tuple((row["name"], row["type"]) for row in node["attrs"][:10]) == ATTRIBUTES, node
        for row in node["attrs"]:
            assert set(row) == {"name", "type", "value"}, row
        for side in (node["inputs"], node["outputs"]):
            assert list(side) == ["values", "shapes", "types", "strides"]
            assert len(side["values"]) == len(side["shapes"]) == len(side["types"])
            if attr(node, "kernel_backend") != "triton":  # whose stream has no strides
                for parts in zip(side["values"], side["types"], side["shapes"], side["strides"],
                                 strict=True):
                    _check_value(*parts)
        above, seen = node, set()
        while above["id"] != 1:
            assert above["id"] not in seen, "a node is above itself"
            seen.add(above["id"])
            above = nodes[above["ctrl_deps"]]
        assert attr(node, "fw_parent") == 0 or attr(node, "fw_parent") in nodes


def load(path):
    """Returns the trace at PATH after checking it."""
    with (gzip.open(path, "rt") if str(path).endswith(".gz") else open(path)) as file:
        trace = json.load(file)
    check(trace)
    return trace


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield name


class WithFolder(unittest.TestCase):
    """Each test has a folder, which is removed after it, with a path for a trace."""

    def setUp(self):
        manager = folder()
        self.folder = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.path = os.path.join(self.folder, "trace.json")


@contextlib.contextmanager
def environment(**values):
    """Sets these ENABLE_PYTORCH_EXECUTION_TRACE variables and removes the others; "" is the one without a suffix."""
    prefix = "ENABLE_PYTORCH_EXECUTION_TRACE"
    before = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(prefix)}
    for name, value in values.items():
        os.environ[prefix + ("_" + name if name != "ON" else "")] = value
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(prefix + ("_" + name if name != "ON" else ""))
        os.environ.update(before)


@contextlib.contextmanager
def annotation(name, *values):
    handle = torch.autograd._record_function_with_args_enter(name, *values)
    try:
        yield
    finally:
        torch.autograd._record_function_with_args_exit(handle)


def payload():
    """The program that torch's own tests of its observer run."""
    u = torch.randn(3, 4, 5, requires_grad=True)
    with torch.profiler.record_function("## TEST 1 ##"):
        with annotation("## TEST 2 ##", 1, False, 2.5, [u, u], (u, u), "hello", u, float("inf"),
                        float("-inf"), float("nan")):
            x = torch.randn(10, 10, requires_grad=True)
            y = torch.randn(10, 10, requires_grad=True)
            z = x + y + x * y
            z.backward(z)
            torch.nn.GELU()(torch.randn(20))
            _ = z + z


def loop(index):
    with torch.profiler.record_function(f"## LOOP {index} ##"):
        payload()


def record(path, work, before=None, **options):
    """Returns the trace of WORK that one observer records."""
    from kpytrace.torch import ExecutionTraceObserver

    observer = ExecutionTraceObserver(**options).register_callback(path)
    if before:
        before(observer)
    observer.start()
    try:
        work()
    finally:
        observer.stop()
        observer.unregister_callback()
    return load(path)
