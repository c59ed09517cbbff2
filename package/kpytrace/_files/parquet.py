"""Writes time by rank, step and function as Parquet, which is small enough for SQL with hundreds of ranks, or
every call. docs/ranks.md describes the columns and has queries. Needs pyarrow."""

from __future__ import annotations

import os
from array import array
from functools import partial

from .._api import native
from .._processes import process_info
from .atomic_file import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Optional

    from .kpt_header import File


_ROWS = 1 << 20  # rows of calls that are buffered before they are written


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"tables are written with pyarrow (pip install pyarrow): {error}") from None
    return pyarrow, pyarrow.parquet


def _schema(arrow: Any, calls: bool) -> Any:
    """Returns the columns that docs/ranks.md describes."""
    text = arrow.dictionary(arrow.int32(), arrow.string())
    whose = [("rank", arrow.int32()), ("local_rank", arrow.int32()), ("world_size", arrow.int32()), ("host", text),
             ("pid", arrow.int64()), ("process", text), ("thread", text), ("step", arrow.int32()),
             ("step_start_ns", arrow.int64()), ("step_ns", arrow.int64()), ("function", text), ("file", text),
             ("line", arrow.int32())]
    names = ("id", "parent_id", "start_ns", "duration_ns") if calls else ("calls", "own_ns", "total_ns", "min_ns",
                                                                          "max_ns")
    what = [(name, arrow.int64()) for name in names]
    return arrow.schema(whose + what + ([("depth", arrow.int32())] if calls else []))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _same(file: File) -> dict[str, Any]:
    """Returns the values that all rows of a file share."""
    info = file.info
    return {"rank": _number(info.get("rank")), "local_rank": _number(info.get("local_rank")),
            "world_size": _number(info.get("world_size")), "host": info.get("host"), "pid": file.pid,
            "process": process_info.title(info)}


class _Steps:
    """The steps of a file: packed for C, and as columns by number. Numbers begin at 1; 0 means no step."""

    def __init__(self, file: File, name: str) -> None:
        pairs = file.spans(name)
        self.packed = array("q", [ns for pair in pairs for ns in pair]).tobytes()
        self.starts = [None, *(begin for begin, _ in pairs)]
        self.lengths = [None, *(end - begin if end < 2**63 - 1 else None for begin, end in pairs)]
        self.numbers = [None, *range(len(pairs))]

    def columns(self) -> dict[str, list[Any]]:
        return {"step": self.numbers, "step_start_ns": self.starts, "step_ns": self.lengths}


class _Table:
    """Columns that are assembled into a table of the schema."""

    def __init__(self, arrow: Any, schema: Any, file: File, rows: int) -> None:
        self.arrow, self.schema = arrow, schema
        self.columns: dict[str, Any] = {name: arrow.repeat(arrow.scalar(value, self._plain(name)), rows)
                                        for name, value in _same(file).items()}

    def _plain(self, name: str) -> Any:
        kind = self.schema.field(name).type
        return kind.value_type if self.arrow.types.is_dictionary(kind) else kind

    def put(self, name: str, values: Any) -> None:
        self.columns[name] = self.arrow.array(values, type=self._plain(name))

    def put_taken(self, name: str, values: Any, indices: Any) -> None:
        """Adds a column that has, in each row, the value at the row's index."""
        self.columns[name] = self.arrow.array(values, type=self._plain(name)).take(indices)

    def made(self) -> Any:
        return self.arrow.table([self.columns[field.name].cast(field.type) for field in self.schema],
                                schema=self.schema)


def _sums(arrow: Any, schema: Any, file: File, handle: object, steps: _Steps, put: Callable[[Any], None]) -> None:
    """Writes a row for each step, thread and function."""
    standalone = native.standalone
    rows: list[Any] = standalone.profile(handle, 0, 2**32 - 1, True, None, steps.packed)
    rows = [tuple(part.decode("utf-8", "replace") if isinstance(part, bytes) else part for part in row) for row in rows]
    if not rows:
        return
    shown, functions, files, lines, threads, calls, own, total, least, most, numbers = zip(*rows)
    table = _Table(arrow, schema, file, len(rows))
    for name, values in steps.columns().items():
        table.put_taken(name, values, arrow.array(numbers, type=arrow.int32()))
    table.put("function", [function or name for function, name in zip(functions, shown)])
    for name, column in (("file", files), ("line", lines), ("thread", threads), ("calls", calls), ("own_ns", own),
                         ("total_ns", total), ("min_ns", least), ("max_ns", most)):
        table.put(name, column)
    put(table.made())


class _Calls:
    """Collects the calls of a file, which arrive in batches, into tables."""

    def __init__(self, arrow: Any, schema: Any, file: File, steps: _Steps, put: Callable[[Any], None]) -> None:
        self.arrow, self.schema, self.file, self.steps, self.put = arrow, schema, file, steps, put
        self.names: list[tuple[str, str, int]] = []
        self.threads: list[str] = []
        self.waiting: list[list[bytes]] = []
        self.rows = 0

    def take(self, names: list[Any], threads: list[Any], columns: list[bytes]) -> None:
        for number, *name in names:
            self.names += [("unknown", "", 0)] * (number + 1 - len(self.names))
            self.names[number] = tuple(name)  # type: ignore[assignment]
        for number, thread in threads:
            self.threads += ["unknown"] * (number + 1 - len(self.threads))
            self.threads[number] = thread
        self.waiting.append(columns)
        self.rows += len(columns[0]) // 8
        if self.rows >= _ROWS:
            self.flush()

    def flush(self) -> None:
        if not self.rows:
            return
        arrow, rows = self.arrow, self.rows
        kinds = [arrow.int64()] * 4 + [arrow.int32()] * 4
        ids, parents, starts, lengths, names, threads, depths, numbers = (
            arrow.Array.from_buffers(kind, rows, [None, arrow.py_buffer(b"".join(batch[i] for batch in self.waiting))])
            for i, kind in enumerate(kinds))
        table = _Table(arrow, self.schema, self.file, rows)
        for name, values in self.steps.columns().items():
            table.put_taken(name, values, numbers)
        for i, name in enumerate(("function", "file", "line")):
            table.put_taken(name, [known[i] for known in self.names], names)
        table.put_taken("thread", self.threads, threads)
        table.columns.update(id=ids, parent_id=parents, start_ns=starts, duration_ns=lengths, depth=depths)
        self.waiting, self.rows = [], 0
        self.put(table.made())


def _each_call(arrow: Any, schema: Any, file: File, handle: object, steps: _Steps, put: Callable[[Any], None]) -> None:
    standalone = native.standalone
    calls = _Calls(arrow, schema, file, steps, put)
    standalone.columns(handle, steps.packed, calls.take)
    calls.flush()


def _write(parquet: Any, schema: Any, path: str, fill: Callable[[Callable[[Any], None]], None]) -> int:
    """Writes a file that appears when it is complete, with a row group for each table that `fill` passes to put().
    Returns the number of rows."""
    count = 0

    def put(table: Any) -> None:
        nonlocal count
        writer.write_table(table)
        count += table.num_rows

    with whole(path) as name, parquet.ParquetWriter(name, schema) as writer:
        fill(put)
    return count


def _outputs(files: Sequence[File], folder: str) -> dict[str, Sequence[File]]:
    """Returns one path in the folder for each file, named after it. A name that occurs again gets a number."""
    found: dict[str, Sequence[File]] = {}
    for file in files:
        stem = os.path.join(folder, os.path.splitext(os.path.basename(file.path))[0])
        path, i = f"{stem}.parquet", 1
        while path in found:
            i += 1
            path = f"{stem}-{i}.parquet"
        found[path] = [file]
    return found


def write(files: Sequence[File], output: str, step: str, calls: bool = False, recover: bool = False,
          opened: Optional[Callable[[str, str, tuple[int, int]], None]] = None) -> int:
    """Writes one file, or, if `output` is a folder, a file for each input. Returns the number of rows. `opened`
    receives the path and the state of each input, and the number and the kind of records that are not known. A damaged input is an error, unless `recover` is set."""
    arrow, parquet = _arrow()
    plugin = native.load()
    standalone = native.standalone
    schema = _schema(arrow, calls)
    rows_of = _each_call if calls else _sums
    outputs = {output: files}
    if output.endswith(os.sep) or os.path.isdir(output):
        os.makedirs(output, exist_ok=True)
        outputs = _outputs(files, output)

    def fill(some: Sequence[File], put: Callable[[Any], None]) -> None:
        for file in some:
            handle, state, _ = standalone.open(plugin, file.path, recover)
            if opened:
                opened(file.path, state, standalone.skipped(handle))
            rows_of(arrow, schema, file, handle, _Steps(file, step), put)
            standalone.close(handle)

    return sum(_write(parquet, schema, path, partial(fill, some)) for path, some in outputs.items())
