"""Reads NAME.tables.json, the allocations of each stack at the peak, at the end and in all, and makes tables of
them by line, function, file and so on."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from typing import Any, Optional, TypeVar, Union

    Kind = TypeVar("Kind")
    Path = Union[str, os.PathLike[str]]
    Frame = tuple[str, str, int]
    Key = tuple[str, str, int]
    Amounts = dict[int, tuple[int, int]]  # bytes and blocks by index of a row

SCHEMA = "kpytrace.memory.1"
TIMES = ("peak", "end", "all")  # a pair of columns each
CHOICES = (*TIMES, "temporary", "moment")
_NUMBERS = ("sample_bytes", "entries", "entries_dropped", "frees_of_earlier_blocks", "peak_time_ns", "end_time_ns")
_FRAMES = ("line", "function", "file")
KINDS = (*_FRAMES, "device", "module", "category")
_MAX = 2**64 - 1


class Row:
    """The bytes and blocks of a line, a function, a file and so on: those that it allocated itself, and the total
    with those that were allocated during its calls."""

    __slots__ = ("name", "file", "line", "bytes", "blocks", "total_bytes", "total_blocks")

    def __init__(self, name: str, file: str, line: int) -> None:
        self.name, self.file, self.line = name, file, line
        self.bytes = self.blocks = self.total_bytes = self.total_blocks = 0

    def add(self, own: Sequence[int], total: Sequence[int]) -> None:
        """Adds bytes and blocks."""
        self.bytes += own[0]
        self.blocks += own[1]
        self.total_bytes += total[0]
        self.total_blocks += total[1]

    @property
    def where(self) -> str:
        """The row's name, for output."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.name}  {place}" if self.name and place else self.name or place

    def __repr__(self) -> str:
        return f"<Row {self.where}: {self.bytes:,} bytes in {self.blocks:,} blocks>"


def _key(frame: Frame, by: str) -> Key:
    name, file, line = frame
    return {"line": (name, file, line), "function": (name, file, 0), "file": ("", file, 0)}[by]


def _check(what: str, value: str, known: tuple[str, ...]) -> int:
    if value not in known:
        raise ValueError(f"{what} must be one of {', '.join(known)}, not {value!r}")
    return known.index(value)


def _of(kind: type[Kind], value: Any) -> Kind:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value


def _below(count: int, number: Any) -> int:
    if not 0 <= _of(int, number) < count:
        raise ValueError(f"the index {number} is out of range")
    return number  # type: ignore[no-any-return]


class Tables:
    """The tables of a recording. For a sampled recording, the numbers are estimates from the samples.

    The constructor reads the file, and the first access to a table parses it. So tables that are taken while
    memory is recorded do not add their own allocations to the recording."""

    sample_bytes: int
    entries: int
    entries_dropped: int
    frees_of_earlier_blocks: int
    peak_time_ns: int
    end_time_ns: int
    devices: list[str]
    begin_time_ns: int
    temporary_within: int
    moment_ns: int  # between the begin of the recording and the moment for which the tables were made
    _rows: list[list[Any]]
    _nodes: list[tuple[int, Frame]]  # the index of the caller, and the frame; the first node is outside of Python
    _temporary: Optional[Amounts]
    _moment: Optional[Amounts]
    _until_ns: int
    _series: Optional[dict[str, Any]]

    def __init__(self, path: Path) -> None:
        self._path = path
        with open(path, "rb") as file:
            self.text = file.read()
        if f'"{SCHEMA}"'.encode() not in self.text[:100]:
            raise ValueError(f"{path} has no tables of memory: export them as NAME.tables.json")

    def __getattr__(self, name: str) -> Any:
        if name not in Tables.__annotations__ or "_nodes" in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._understand()
        return getattr(self, name)

    def check(self) -> Tables:
        """Returns itself after parsing the file, so that a damaged file is refused now."""
        self._understand()
        return self

    def _understand(self) -> None:
        import json  # on demand, so that the import is not recorded

        try:
            self._take(json.loads(self.text))
        except KeyError as error:
            raise ValueError(f"{self._path} is damaged: {error} is missing") from None
        except (IndexError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{self._path} is damaged: {error}") from None

    def _take(self, data: dict[str, Any]) -> None:
        for name in _NUMBERS:
            setattr(self, name, _of(int, data[name]))
        self.devices = [_of(str, name) for name in data["devices"]]
        symbols: list[Frame] = [(_of(str, name), _of(str, file), _of(int, line)) for name, file, line in data["symbols"]]
        nodes: list[tuple[int, Frame]] = [(0, ("(no Python)", "", 0))]
        for parent, symbol in data["nodes"]:
            nodes.append((_below(len(nodes), parent), symbols[_below(len(symbols), symbol)]))
        for device, node, *amounts in data["rows"]:
            _below(len(self.devices), device)
            _below(len(nodes), node)
            if (list(map(type, amounts)) not in ([int] * 6, [int] * 6 + [str] * 2)
                    or not all(0 <= amount <= _MAX for amount in amounts[:6])):
                raise ValueError("a row does not have the amounts of the peak, the end and all blocks")
        self._rows, self._nodes = data["rows"], nodes
        self.temporary_within = _of(int, data.get("temporary_within", 0))
        self._temporary = self._moment = None
        self.moment_ns = 0
        if "temporary" in data:
            self._temporary = self._sum([number for entry in data["temporary"] for number in entry])
        self.begin_time_ns, self._until_ns = (_of(int, data.get(name, 0)) for name in ("begin_time_ns", "until_time_ns"))
        if "moments" in data:
            self.moment_ns = max((_of(int, time) for time, _ in data["moments"]), default=0)
            self._moment = self._sum([number for _, changes in data["moments"] for number in changes])
        self._series = data.get("series")
        if self._series is not None:
            self._check_series(self._series)

    def _sum(self, changes: list[Any]) -> Amounts:
        """Adds up the changes of rows, each with an index, bytes and blocks."""
        found: Amounts = {}
        for index, size, count in zip(changes[::3], changes[1::3], changes[2::3]):
            before = found.get(_below(len(self._rows), index), (0, 0))
            found[index] = before[0] + _of(int, size), before[1] + _of(int, count)
        if len(changes) % 3 or any(min(amount) < 0 for amount in found.values()):
            raise ValueError("a change of a row does not have bytes and blocks")
        return found

    def _check_series(self, series: dict[str, Any]) -> None:
        _of(int, series["step_ns"])
        for name in ("last", "most"):
            lines = [[_of(int, value) for value in line] for line in series[name]]
            if len(lines) != 1 + len(self.devices) or any(len(line) not in (0, len(lines[0])) for line in lines):
                raise ValueError("the series does not have a line for each device")

    def _rows_of(self, at: str) -> list[tuple[list[Any], int, int]]:
        if at in TIMES:
            column = 2 + 2 * TIMES.index(at)
            return [(row, row[column], row[column + 1]) for row in self._rows]
        if at == "moment" and self._moment is not None and self.moment_ns > self._until_ns - self.begin_time_ns:
            raise ValueError(f"there is no moment {self.moment_ns / 1e9:g} s after the begin: the "
                             f"recording has {(self._until_ns - self.begin_time_ns) / 1e9:g} s")
        found = self._temporary if at == "temporary" else self._moment
        if found is None and at == "moment":
            raise ValueError(f"{self._path} has no moment: make tables of a recording with tables(at=SECONDS)")
        if found is None:
            raise ValueError("temporary allocations are known only where every block is recorded: record without "
                             "sampling, with this version of kpytrace")
        return [(self._rows[index], *amount) for index, amount in found.items()]

    def _amounts(self, at: str, device: Optional[str]) -> list[tuple[list[Any], int, int]]:
        """Returns the row, bytes and blocks of each row that has blocks."""
        _check("at", at, CHOICES)
        wanted = None if device is None else _check("device", device, tuple(self.devices))
        return [found for found in self._rows_of(at) if found[2] and wanted in (None, found[0][0])]

    def series(self, device: Optional[str] = None) -> list[tuple[int, int, int]]:
        """Returns live bytes over time, at most 1,024 points for a recording of any length: for each the time of its
        end in nanoseconds since the begin, the bytes at that time, and the most since the point before."""
        number = 0 if device is None else 1 + _check("device", device, tuple(self.devices))
        series: Optional[dict[str, Any]] = self._series
        if series is None:
            raise ValueError(f"{self._path} has no live bytes over time: an older version of kpytrace made it")
        step: int = series["step_ns"]
        pairs = zip(series["last"][number], series["most"][number])
        return [((i + 1) * step, last, most) for i, (last, most) in enumerate(pairs)]

    def total(self, at: str = "end", device: Optional[str] = None) -> tuple[int, int]:
        """Returns the sum of bytes and blocks: at the "peak", at the "end", "all" that were ever allocated, or as in
        rows()."""
        rows = self._amounts(at, device)
        return sum(row[1] for row in rows), sum(row[2] for row in rows)

    def _device_or_tag(self, row: list[Any], by: str) -> Key:
        """Returns the device of a row, or the tag that a host reported for it. Python's own blocks have no tag."""
        if by == "device":
            return self.devices[row[0]], "", 0
        tags = row[8:] or ("", "")
        return tags[by == "module"] or f"(no {by})", "", 0

    def _add_frames(self, found: dict[Key, Row], by: str, amounts: list[tuple[list[Any], int, int]]) -> None:
        """Adds up node by node, so that deep stacks take no more time. The total of a recursive function is the
        sum of its outermost calls."""
        own = [(0, 0)] * len(self._nodes)
        for given, size, count in amounts:
            before = own[given[1]]
            own[given[1]] = before[0] + size, before[1] + count
        total = own.copy()
        inside: list[list[int]] = [[] for _ in own]
        for node in range(len(own) - 1, 0, -1):
            outside = self._nodes[node][0]
            if total[node][1]:
                inside[outside].append(node)
            if outside:
                total[outside] = total[outside][0] + total[node][0], total[outside][1] + total[node][1]
        keys = [_key(frame, by) if node else frame for node, (_, frame) in enumerate(self._nodes)]
        open_calls: dict[Key, int] = {}
        todo = inside[0] + [0] * bool(total[0][1])
        while todo:
            node = todo.pop()
            if node < 0:  # all nodes inside of it were visited
                open_calls[keys[-node]] -= 1
                continue
            key = keys[node]
            row = found.setdefault(key, Row(*key))
            row.add(own[node], (0, 0) if open_calls.get(key) else total[node])
            if node:
                open_calls[key] = open_calls.get(key, 0) + 1
                todo += [-node, *inside[node]]

    def rows(self, at: str = "end", by: str = "line", device: Optional[str] = None) -> list[Row]:
        """Returns rows by line, function, file or device, or for tensors by module or category, the largest first.
        `at` selects the blocks that were alive at the "peak" or at the "end" (allocated since the start and not
        freed), or "all" allocated blocks, or those that were "temporary" (their thread freed them before it made
        `temporary_within` more), or those that were alive at the "moment" for which the tables were made."""
        _check("by", by, KINDS)
        found: dict[Key, Row] = {}
        amounts = self._amounts(at, device)
        if by in _FRAMES:
            self._add_frames(found, by, amounts)
        else:
            for given, *amount in amounts:
                key = self._device_or_tag(given, by)
                found.setdefault(key, Row(*key)).add(amount, amount)
        return sorted(found.values(), key=lambda row: (-row.bytes, -row.total_bytes, row.where))

    def diff(self, before: Tables, at: str = "end", by: str = "line",
             device: Optional[str] = None) -> list[Row]:
        """Returns the rows that have changed since `before`, the largest change first."""
        if device is not None:  # one of the tables may have been taken before the first allocation on the device
            _check("device", device, tuple(dict.fromkeys(self.devices + before.devices)))
        theirs = before.rows(at, by, device) if device in (None, *before.devices) else []
        ours = self.rows(at, by, device) if device in (None, *self.devices) else []
        found = {(row.name, row.file, row.line): row for row in ours}
        for old in theirs:
            row = found.setdefault((old.name, old.file, old.line), Row(old.name, old.file, old.line))
            for field in ("bytes", "blocks", "total_bytes", "total_blocks"):
                setattr(row, field, getattr(row, field) - getattr(old, field))
        changed = [row for row in found.values() if row.bytes or row.blocks]
        return sorted(changed, key=lambda row: (-abs(row.bytes), -abs(row.blocks), row.where))

    def _stack(self, node: int) -> Iterator[Frame]:
        """Yields the frames of a stack, innermost first."""
        while node:
            node, frame = self._nodes[node]
            yield frame

    def folded(self, at: str = "peak", device: Optional[str] = None) -> str:
        """Returns collapsed stacks, `outer;inner 4096`, for a flame graph of bytes. flamegraph.pl, inferno and
        speedscope read them."""
        lines: dict[str, int] = {}
        for row, size, _ in self._amounts(at, device):
            names = [f"{name} ({file}:{line})" for name, file, line in self._stack(row[1])]
            stack = ";".join(name.replace(";", ":").replace("\n", " ") for name in reversed(names))
            lines[stack or "(no Python)"] = lines.get(stack or "(no Python)", 0) + size
        return "".join(f"{stack} {size}\n" for stack, size in sorted(lines.items()) if size)
