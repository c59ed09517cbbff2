"""What each stack had allocated, at the peak, at the end and in all: the file NAME.tables.json, and the tables
that people ask of it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any, Optional, TypeVar, Union

    Kind = TypeVar("Kind")
    Path = Union[str, os.PathLike[str]]
    Frame = tuple[str, str, int]
    Key = tuple[str, str, int]

SCHEMA = "kpytrace.memory.1"
TIMES = ("peak", "end", "all")
_NUMBERS = ("sample_bytes", "entries", "entries_dropped", "frees_of_earlier_blocks", "peak_time_ns", "end_time_ns")
KINDS = ("line", "function", "file", "device", "module", "category")


class Row:
    """Bytes and blocks of a line, a function, a file …: those that it allocated itself, and those that were
    allocated while it was called, by itself or by others."""

    __slots__ = ("name", "file", "line", "bytes", "blocks", "total_bytes", "total_blocks")

    def __init__(self, name: str, file: str, line: int) -> None:
        self.name, self.file, self.line = name, file, line
        self.bytes = self.blocks = self.total_bytes = self.total_blocks = 0

    @property
    def where(self) -> str:
        """The row's name for people."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.name}  {place}" if self.name and place else self.name or place

    def __repr__(self) -> str:
        return f"<Row {self.where}: {self.bytes:,} bytes in {self.blocks:,} blocks>"


def _key(frame: Frame, by: str) -> Key:
    name, file, line = frame
    return {"line": (name, file, line), "function": (name, file, 0), "file": ("", file, 0)}[by]


def _check(what: str, value: str, known: tuple[str, ...]) -> int:
    if value not in known:
        raise ValueError(f"{what} is one of {', '.join(known)}, not {value!r}")
    return known.index(value)


def _of(kind: type[Kind], value: Any) -> Kind:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _below(count: int, number: Any) -> int:
    if not 0 <= _of(int, number) < count:
        raise ValueError(f"there is no number {number}")
    return number  # type: ignore[no-any-return]


class Tables:
    """The tables of a recording. Of one that was sampled, the numbers are what is guessed from the samples.

    The file is read at once, and understood when something is asked: tables that are taken while memory is
    recorded do not fill it with themselves."""

    sample_bytes: int
    entries: int
    entries_dropped: int
    frees_of_earlier_blocks: int
    peak_time_ns: int
    end_time_ns: int
    devices: list[str]
    _rows: list[list[Any]]
    _stacks: list[tuple[Frame, ...]]  # of nodes, innermost first

    def __init__(self, path: Path) -> None:
        self._path = path
        with open(path, "rb") as file:
            self.text = file.read()
        if f'"{SCHEMA}"'.encode() not in self.text[:100]:
            raise ValueError(f"{path} holds no tables of memory: export one as NAME.tables.json")

    def __getattr__(self, name: str) -> Any:
        if name not in Tables.__annotations__ or "_stacks" in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._understand()
        return getattr(self, name)

    def check(self) -> Tables:
        """Itself, understood: what is damaged is refused now."""
        self._understand()
        return self

    def _understand(self) -> None:
        import json  # on demand: as above

        try:
            self._take(json.loads(self.text))
        except KeyError as error:
            raise ValueError(f"{self._path} is damaged: there is no {error}") from None
        except (IndexError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{self._path} is damaged: {error}") from None

    def _take(self, data: dict[str, Any]) -> None:
        for name in _NUMBERS:
            setattr(self, name, _of(int, data[name]))
        self.devices = [_of(str, name) for name in data["devices"]]
        symbols: list[Frame] = [(_of(str, name), _of(str, file), _of(int, line)) for name, file, line in data["symbols"]]
        stacks: list[tuple[Frame, ...]] = [()]
        for parent, symbol in data["nodes"]:
            stacks.append((symbols[_below(len(symbols), symbol)], *stacks[_below(len(stacks), parent)]))
        for device, stack, *amounts in data["rows"]:
            _below(len(self.devices), device)
            _below(len(stacks), stack)
            if list(map(type, amounts)) not in ([int] * 6, [int] * 6 + [str] * 2):
                raise ValueError("a row has not the amounts of three times")
        self._rows, self._stacks = data["rows"], stacks

    def _amounts(self, at: str, device: Optional[str]) -> list[tuple[list[Any], int, int]]:
        """Row, bytes and blocks of all that is not nothing."""
        column = 2 + 2 * _check("at", at, TIMES)
        wanted = None if device is None else _check("device", device, tuple(self.devices))
        return [(row, row[column], row[column + 1]) for row in self._rows
                if row[column + 1] and wanted in (None, row[0])]

    def total(self, at: str = "end", device: Optional[str] = None) -> tuple[int, int]:
        """Bytes and blocks in all: at the "peak", at the "end", or "all" that was ever allocated."""
        rows = self._amounts(at, device)
        return sum(row[1] for row in rows), sum(row[2] for row in rows)

    def _keys(self, row: list[Any], by: str) -> list[Key]:
        """What a row counts for, innermost first."""
        if by == "device":
            return [(self.devices[row[0]], "", 0)]
        if by in ("module", "category"):  # what a host told; Python's own blocks have none
            told = row[8:] or ("", "")
            return [(told[by == "module"] or f"(no {by})", "", 0)]
        return [_key(frame, by) for frame in self._stacks[row[1]]] or [("(no Python)", "", 0)]

    def rows(self, at: str = "end", by: str = "line", device: Optional[str] = None) -> list[Row]:
        """Rows by line, function, file or device, and of tensors by module or category, the largest first: of
        what was alive at the "peak", or at the "end" (allocated since the start and not freed), or of "all"
        that was allocated."""
        _check("by", by, KINDS)
        found: dict[Key, Row] = {}
        for given, size, count in self._amounts(at, device):
            keys = self._keys(given, by)
            own = keys[0]
            for key in dict.fromkeys(keys):  # of a function that calls itself only once
                row = found.get(key)
                if row is None:
                    row = found[key] = Row(*key)
                if key == own:
                    row.bytes += size
                    row.blocks += count
                row.total_bytes += size
                row.total_blocks += count
        return sorted(found.values(), key=lambda row: (-row.bytes, -row.total_bytes, row.where))

    def diff(self, before: Tables, at: str = "end", by: str = "line",
             device: Optional[str] = None) -> list[Row]:
        """What changed since `before`: rows of those that differ, the largest change first."""
        found = {(row.name, row.file, row.line): row for row in self.rows(at, by, device)}
        for old in before.rows(at, by, device):
            row = found.setdefault((old.name, old.file, old.line), Row(old.name, old.file, old.line))
            for field in ("bytes", "blocks", "total_bytes", "total_blocks"):
                setattr(row, field, getattr(row, field) - getattr(old, field))
        changed = [row for row in found.values() if row.bytes or row.blocks]
        return sorted(changed, key=lambda row: (-abs(row.bytes), -abs(row.blocks), row.where))

    def folded(self, at: str = "peak", device: Optional[str] = None) -> str:
        """Collapsed stacks, `outer;inner 4096`, for a flame graph of bytes: flamegraph.pl, inferno and
        speedscope read them."""
        lines: dict[str, int] = {}
        for row, size, _ in self._amounts(at, device):
            names = [f"{name} ({file}:{line})" for name, file, line in reversed(self._stacks[row[1]])]
            stack = ";".join(name.replace(";", ":").replace("\n", " ") for name in names)
            lines[stack or "(no Python)"] = lines.get(stack or "(no Python)", 0) + size
        return "".join(f"{stack} {size}\n" for stack, size in sorted(lines.items()) if size)
