"""An execution trace, read from a file and written to one; torch's own traces as well as ours."""

from __future__ import annotations

import gzip
import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from typing import Any, Optional, Union

    Path = Union[str, os.PathLike[str]]

SCHEMA = "1.1.1-chakra.0.0.4"
ROOT = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"
ROOT_ID = 1


class Damaged(ValueError):
    """What is there is no execution trace, or not all of one."""


def read_json(path: Path) -> Any:
    """What is in a .json or a .json.gz file."""
    with open(path, "rb") as file:
        head = file.read(2)
    opened = gzip.open(path, "rb") if head == b"\x1f\x8b" else open(path, "rb")
    with opened as file:
        try:
            return json.loads(file.read())
        except (ValueError, EOFError, OSError) as error:
            raise Damaged(f"{path} is no JSON, or not all of it: {error}") from None


def write_json(path: Path, data: object) -> None:
    """Writes all of it or nothing; compressed where the name ends in .gz."""
    import os

    beside = f"{os.fspath(path)}.{os.getpid()}.tmp"
    opened = gzip.open(beside, "wt", encoding="utf-8", compresslevel=5) \
        if os.fspath(path).endswith(".gz") else open(beside, "w", encoding="utf-8")
    try:
        with opened as file:
            file.write(json.dumps(data, separators=(",", ":")))
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


class Node:
    """An operator, an annotation, a thread or the process."""

    __slots__ = ("data", "attrs")

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
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
        """Whether a program ran it: an operator or an annotation."""
        return self.name not in (ROOT, THREAD)

    @property
    def record_id(self) -> int:
        """What links it to a profile; 0: nothing does."""
        return self.attrs.get("rf_id", 0)  # type: ignore[no-any-return]

    @property
    def own(self) -> dict[str, Any]:
        """What kpytrace adds: os_tid, start_ns, dur_ns, ext_id, stack. Empty in torch's own traces."""
        return self.attrs.get("kpytrace", {})  # type: ignore[no-any-return]

    def set_attr(self, name: str, kind: str, value: object) -> None:
        """Adds an attribute, or puts it in the place of the one that has its name."""
        rest = [attr for attr in self.data["attrs"] if attr["name"] != name]
        self.data["attrs"] = [*rest, {"name": name, "type": kind, "value": value}]
        self.attrs[name] = value

    def signature(self) -> tuple[str, str]:
        """Its name, and the types and shapes of its inputs: what two runs have in common."""
        inputs = self.data["inputs"]
        return self.name, f"{inputs['types']} {inputs['shapes']}"


class Trace:
    """All of an execution trace."""

    def __init__(self, data: Any, path: Path = "") -> None:
        try:
            self.data: dict[str, Any] = data
            self.schema: str = data["schema"]
            self.nodes = [Node(node) for node in data["nodes"]]
        except (KeyError, TypeError) as error:
            raise Damaged(f"{path} is no execution trace: {error!r} is missing") from None

    @classmethod
    def read(cls, path: Path) -> Trace:
        data = read_json(path)
        own = data.get("kpytrace") if isinstance(data, dict) else None
        if isinstance(own, dict) and "journal" in own:
            raise Damaged(f"{path} was never completed: its program was killed, or still runs; "
                          f"`kpytrace et recover {path}` makes what there is whole")
        return cls(data, path)

    def write(self, path: Path) -> None:
        write_json(path, self.data)

    def operators(self) -> Iterator[Node]:
        return (node for node in self.nodes if node.is_operator)

    def by_id(self) -> dict[int, Node]:
        return {node.id: node for node in self.nodes}

    def stack(self, node: Node) -> list[tuple[str, str, int]]:
        """The Python frames around an operator, innermost first: function, file, line. Empty if unknown."""
        tables = self.data.get("kpytrace", {})
        frames, stacks = tables.get("frames", []), tables.get("stacks", [])
        found: list[tuple[str, str, int]] = []
        at: Optional[int] = node.own.get("stack")
        while at is not None and 0 <= at < len(stacks) and len(found) <= len(stacks):  # it may go round
            below, frame = stacks[at]
            name, file, line = frames[frame]
            found.append((name, file, line))
            at = below
        return found
