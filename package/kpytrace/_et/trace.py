"""Reads an execution trace from a file, and writes it to one. Reads torch's own traces as well as ours."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import zlib

from .._files.atomic_file import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Optional, Union

    Path = Union[str, os.PathLike[str]]

SCHEMA = "1.1.1-chakra.0.0.4"
ROOT = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"
ROOT_ID = 1
# Attributes that are used in arithmetic if a node has them, of the schema and of kpytrace.
_NUMBERS, _OWN_NUMBERS = ("rf_id", "fw_parent", "scope", "tid"), ("start_ns", "dur_ns", "stack")


def _is_number(value: Any) -> bool:
    """Whether a value is an integer of 64 bits. A larger one can't be converted to a float."""
    return isinstance(value, int) and abs(value) < 1 << 64


class Damaged(ValueError):
    """The data is not an execution trace, or not a complete one."""


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Adds the name of this file to a Damaged error that the block raises."""
    try:
        yield
    except Damaged as error:
        raise Damaged(f"{path}: {error}" if path else str(error)) from None


def read_json(path: Path) -> Any:
    """Returns the content of a .json or a .json.gz file."""
    with open(path, "rb") as file:
        head = file.read(2)
    opened = gzip.open(path, "rb") if head == b"\x1f\x8b" else open(path, "rb")
    with opened as file:
        try:
            return json.loads(file.read())
        except (ValueError, EOFError, OSError, RecursionError, zlib.error) as error:
            raise Damaged(f"{path} is not JSON, or is incomplete: {error}") from None


def write_json(path: Path, data: object) -> None:
    """Writes the whole file or nothing. The file is compressed if its name ends in .gz."""
    text = json.dumps(data, separators=(",", ":")).encode()
    with whole(path) as name:
        opened = gzip.open(name, "wb", compresslevel=5) if os.fspath(path).endswith(".gz") else open(name, "wb")
        with opened as file:
            file.write(text)


class Node:
    """An operator, an annotation, a thread or the process."""

    __slots__ = ("data", "attrs")

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        if not isinstance(data["attrs"], list):
            raise TypeError(f"the attributes of a node, {data['attrs']!r}, are not a list")
        self.attrs: dict[str, Any] = {attr["name"]: attr["value"] for attr in data["attrs"]}

    @property
    def id(self) -> int:
        return self.data["id"]  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        return self.data["name"]  # type: ignore[no-any-return]

    @property
    def parent(self) -> int:
        return self.data["ctrl_deps"]  # type: ignore[no-any-return]

    @property
    def is_operator(self) -> bool:
        """Whether the node is an operator or an annotation, and not a thread or the process."""
        return self.name not in (ROOT, THREAD)

    @property
    def record_id(self) -> int:
        """The id by which a profile refers to the node, or 0 if it has none."""
        return self.attrs.get("rf_id", 0)  # type: ignore[no-any-return]

    @property
    def own(self) -> dict[str, Any]:
        """The values that kpytrace adds: os_tid, start_ns, dur_ns, ext_id, stack. Empty in torch's own traces."""
        return self.attrs.get("kpytrace", {})  # type: ignore[no-any-return]

    def problem(self) -> str:
        """Returns why the node can't be read, or "" if it can. check() finds its other problems."""
        if not isinstance(self.data.get("id"), int):
            return f"node {self.data.get('id')!r}: an id must be a number, 1 or larger"
        if not isinstance(self.data.get("name"), str):
            return f"node {self.id}: it has no name"
        here = f"node {self.id} ({self.name})"
        if not isinstance(self.data.get("ctrl_deps"), int):
            return f"{here}: its parent, {self.data.get('ctrl_deps')!r}, is not a number"
        if not isinstance(self.own, dict):
            return f"{here}: its kpytrace, {self.own!r}, is not a map"
        for values, names in ((self.attrs, _NUMBERS), (self.own, _OWN_NUMBERS)):
            for name in names:
                if not _is_number(values.get(name, 0)):
                    return f"{here}: its {name}, {values[name]!r}, is not a number"
        return ""

    def inputs(self, what: str) -> Any:
        """Returns the "types" or the "shapes" of the node's inputs."""
        lists = self.data.get("inputs")
        if not isinstance(lists, dict) or what not in lists:
            raise Damaged(f"node {self.id} ({self.name}): its inputs have no {what}")
        return lists[what]

    def set_attr(self, name: str, kind: str, value: object) -> None:
        """Adds an attribute, or replaces the attribute of this name."""
        rest = [attr for attr in self.data["attrs"] if attr["name"] != name]
        self.data["attrs"] = [*rest, {"name": name, "type": kind, "value": value}]
        self.attrs[name] = value

    def signature(self) -> tuple[str, str]:
        """Returns the name, and the types and shapes of the inputs, by which nodes of two runs are compared."""
        return self.name, f"{self.inputs('types')} {self.inputs('shapes')}"


class Trace:
    """A whole execution trace."""

    def __init__(self, data: Any, path: Path = "") -> None:
        self.path = path
        try:
            self.data: dict[str, Any] = data
            self.schema: str = data["schema"]
            self.nodes = [Node(node) for node in data["nodes"]]
        except (KeyError, TypeError, AttributeError) as error:
            raise Damaged(f"not an execution trace: {error!r}") from None

    @classmethod
    def read(cls, path: Path, must_be_sound: bool = True) -> Trace:
        """Reads a file. Errors name it. With must_be_sound, an error is raised if a node can't be read."""
        data = read_json(path)
        own = data.get("kpytrace") if isinstance(data, dict) else None
        if isinstance(own, dict) and "journal" in own:
            raise Damaged(f"{path} was never completed: its program was killed, or still runs; "
                          f"`kpytrace et recover {path}` completes it")
        with naming(path):
            trace = cls(data, path)
            if must_be_sound:
                for problem in trace.problems():
                    raise Damaged(problem)
        return trace

    def problems(self) -> Iterator[str]:
        """Yields the reasons why the trace can't be read."""
        if not isinstance(self.own, dict) or not isinstance(self.own.get("dropped_ops", 0), int):
            yield f"the member kpytrace, {self.own!r}, does not have kpytrace's format"
        yield from filter(None, (node.problem() for node in self.nodes))

    @property
    def own(self) -> dict[str, Any]:
        """The values that kpytrace adds to the whole trace."""
        return self.data.get("kpytrace", {})  # type: ignore[no-any-return]

    def write(self, path: Path) -> None:
        write_json(path, self.data)

    def operators(self) -> Iterator[Node]:
        return (node for node in self.nodes if node.is_operator)

    def by_id(self) -> dict[int, Node]:
        return {node.id: node for node in self.nodes}

    def stack(self, node: Node) -> list[tuple[str, str, int]]:
        """Returns the Python frames around an operator, innermost first: function, file, line. Empty if
        unknown."""
        frames, stacks = self.own.get("frames", []), self.own.get("stacks", [])
        found: list[tuple[str, str, int]] = []
        at: Optional[int] = node.own.get("stack")
        try:
            while at is not None and 0 <= at < len(stacks) and len(found) <= len(stacks):  # there may be a cycle
                below, frame = stacks[at]
                name, file, line = frames[frame]
                found.append((name, file, line))
                at = below
        except (TypeError, ValueError, LookupError) as error:
            raise Damaged(f"node {node.id} ({node.name}): its stack can't be read: {error}") from None
        return found
