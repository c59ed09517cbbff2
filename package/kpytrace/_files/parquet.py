"""Writes time by rank, step and function, or operator of torch, as Parquet, which is small enough for SQL with hundreds
of ranks, or every call. docs/ranks.md describes the columns and has queries. Needs pyarrow."""

from __future__ import annotations

import os
from enum import Enum
from functools import partial

from .._api import native
from .._processes import process_info
from .atomic_file import whole
from .table_steps import Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Optional

    from .kpt_header import File


_ROWS = 1 << 17  # rows of calls that are buffered before they are written
_ROWS_OF_GROUP = 1 << 16  # other rows
_KINDS = ("function", "operator", "annotation")  # by the number in columns() and profile()
_BY_FUNCTION, _BY_AUTOGRAD = 1, 2  # callers of operators(); a larger number: autograd, for one that is not known


class What(Enum):
    """What a row of a table is."""

    FUNCTIONS = 1
    CALLS = 2
    OPERATORS = 3
    OPERATORS_AND_CALLERS = 4


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"tables are written with pyarrow (pip install pyarrow): {error}") from None
    return pyarrow, pyarrow.parquet


def _schema(arrow: Any, what: What) -> Any:
    """Returns the columns that docs/ranks.md describes."""
    text = arrow.dictionary(arrow.int32(), arrow.string())
    whose = [("rank", arrow.int32()), ("local_rank", arrow.int32()), ("world_size", arrow.int32()), ("host", text),
             ("pid", arrow.int64()), ("process", text), ("thread", text), ("step", arrow.int32()),
             ("step_start_ns", arrow.int64()), ("step_ns", arrow.int64())]
    if what is What.OPERATORS or what is What.OPERATORS_AND_CALLERS:
        named = [("name", text), ("kind", text)]
        if what is What.OPERATORS_AND_CALLERS:
            named += [("caller", text), ("is_backward", arrow.bool_())]
    else:
        named = [("function", text), ("file", text), ("line", arrow.int32()), ("kind", text)]
    if what is What.CALLS:
        names = ["id", "parent_id", "start_ns", "duration_ns"]
    else:
        names = ["calls", "own_ns", "total_ns", "min_ns", "max_ns"]
    if what is What.OPERATORS or what is What.OPERATORS_AND_CALLERS:
        names += ["gpu_own_ns", "gpu_total_ns"]
    numbers = [(name, arrow.int64()) for name in names]
    return arrow.schema(whose + named + numbers + ([("depth", arrow.int32())] if what is What.CALLS else []))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _same(file: File) -> dict[str, Any]:
    """Returns the values that all rows of a file share."""
    info = file.info
    return {"rank": _number(info.get("rank")), "local_rank": _number(info.get("local_rank")),
            "world_size": _number(info.get("world_size")), "host": info.get("host"), "pid": file.pid,
            "process": process_info.title(info)}


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

    def put_steps(self, steps: Steps, numbers: Any) -> None:
        for name, values in steps.columns().items():
            self.put_taken(name, values, numbers)

    def made(self) -> Any:
        return self.arrow.table([self.columns[field.name].cast(field.type) for field in self.schema],
                                schema=self.schema)


def _texts(rows: list[Any]) -> list[Any]:
    return [tuple(part.decode("utf-8", "replace") if isinstance(part, bytes) else part for part in row) for row in rows]


def _sums(arrow: Any, schema: Any, file: File, handle: object, steps: Steps, put: Callable[[Any], None]) -> None:
    """Writes a row for each step, thread and function, some at a time."""

    def take(rows: list[Any]) -> None:
        shown, functions, files, lines, threads, calls, own, total, least, most, _, numbers, kinds = zip(*_texts(rows))
        table = _Table(arrow, schema, file, len(rows))
        table.put_steps(steps, arrow.array(numbers, type=arrow.int32()))
        table.put("function", [function or name for function, name in zip(functions, shown)])
        table.put("kind", [_KINDS[kind] for kind in kinds])
        for name, column in (("file", files), ("line", lines), ("thread", threads), ("calls", calls), ("own_ns", own),
                             ("total_ns", total), ("min_ns", least), ("max_ns", most)):
            table.put(name, column)
        put(table.made())

    native.standalone.profile(handle, 0, 2**32 - 1, True, None, steps.packed, take)


def _operator_sums(by_caller: bool, arrow: Any, schema: Any, file: File, handle: object, steps: Steps,
                   put: Callable[[Any], None]) -> None:
    """Writes a row for each step, thread and operator, and its caller if `by_caller` is set, some at a time."""

    def take(rows: list[Any]) -> None:
        names, ranges, callers, functions, calls, own, total, most, gpu_own, gpu_total, least, threads, numbers = zip(
            *_texts(rows))
        table = _Table(arrow, schema, file, len(rows))
        table.put_steps(steps, arrow.array(numbers, type=arrow.int32()))
        table.put("kind", ["annotation" if is_range else "operator" for is_range in ranges])
        if by_caller:
            table.put("caller", [function if caller in (_BY_FUNCTION, _BY_AUTOGRAD) else None
                                 for caller, function in zip(callers, functions)])
            table.put("is_backward", [caller >= _BY_AUTOGRAD for caller in callers])
        for name, column in (("name", names), ("thread", threads), ("calls", calls), ("own_ns", own),
                             ("total_ns", total), ("min_ns", least), ("max_ns", most), ("gpu_own_ns", gpu_own),
                             ("gpu_total_ns", gpu_total)):
            table.put(name, column)
        put(table.made())

    native.standalone.operators(handle, by_caller, None, steps.packed, take)


class _Calls:
    """Collects the calls of a file, which arrive in batches, into tables."""

    def __init__(self, arrow: Any, schema: Any, file: File, steps: Steps, put: Callable[[Any], None]) -> None:
        import pyarrow.compute

        self.compute = pyarrow.compute
        self.arrow, self.schema, self.file, self.steps, self.put = arrow, schema, file, steps, put
        self.names: list[tuple[str, str, int]] = []
        self.threads: list[str] = []  # from first_thread on
        self.first_thread = 0
        self.waiting: list[list[bytes]] = []
        self.rows = 0

    def take(self, names: list[Any], threads: list[Any], columns: list[bytes]) -> None:
        for number, *name in names:
            self.names += [("unknown", "", 0)] * (number + 1 - len(self.names))
            self.names[number] = tuple(name)  # type: ignore[assignment]
        for number, thread in threads:
            self.threads += ["unknown"] * (number - self.first_thread + 1 - len(self.threads))
            self.threads[number - self.first_thread] = thread
        self.waiting.append(columns)
        self.rows += len(columns[0]) // 8
        if self.rows >= _ROWS:
            self.flush()

    def flush(self) -> None:
        if not self.rows:
            return
        arrow, rows = self.arrow, self.rows
        types = [arrow.int64()] * 4 + [arrow.int32()] * 5
        ids, parents, starts, lengths, names, threads, depths, numbers, kinds = (
            arrow.Array.from_buffers(type_, rows, [None, arrow.py_buffer(b"".join(batch[i] for batch in self.waiting))])
            for i, type_ in enumerate(types))
        table = _Table(arrow, self.schema, self.file, rows)
        table.put_steps(self.steps, numbers)
        table.put_taken("kind", _KINDS, kinds)
        for i, name in enumerate(("function", "file", "line")):
            table.put_taken(name, [known[i] for known in self.names], names)
        table.put_taken("thread", self.threads, self.compute.subtract(threads, self.first_thread))
        table.columns.update(id=ids, parent_id=parents, start_ns=starts, duration_ns=lengths, depth=depths)
        self.waiting, self.rows = [], 0
        last = threads[-1].as_py()  # calls come thread by thread
        del self.threads[:last - self.first_thread]
        self.first_thread = last
        self.put(table.made())


def _each_call(arrow: Any, schema: Any, file: File, handle: object, steps: Steps, put: Callable[[Any], None]) -> None:
    """Writes a row for each call, and then for each annotation, which are numbered and named separately."""
    for ranges in (False, True):
        calls = _Calls(arrow, schema, file, steps, put)
        native.standalone.columns(handle, steps.packed, calls.take, ranges)
        calls.flush()


_WRITERS = {What.FUNCTIONS: _sums, What.CALLS: _each_call, What.OPERATORS: partial(_operator_sums, False),
            What.OPERATORS_AND_CALLERS: partial(_operator_sums, True)}


def _write(arrow: Any, parquet: Any, schema: Any, path: str, fill: Callable[[Callable[[Any], None]], None]) -> int:
    """Writes a file that appears when it is complete, with the tables that `fill` passes to put(). Small ones share a
    row group. Returns the number of rows."""
    count = 0
    waiting: list[Any] = []

    def flush() -> None:
        if waiting:
            writer.write_table(arrow.concat_tables(waiting))
        waiting.clear()

    def put(table: Any) -> None:
        nonlocal count
        waiting.append(table)
        count += table.num_rows
        if sum(one.num_rows for one in waiting) >= _ROWS_OF_GROUP:
            flush()

    with whole(path) as name, parquet.ParquetWriter(name, schema) as writer:
        fill(put)
        flush()
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


def write(files: Sequence[File], output: str, step: Optional[str], what: What = What.FUNCTIONS, recover: bool = False,
          opened: Optional[Callable[[str, str, tuple[int, int]], None]] = None,
          without_steps: Optional[Callable[[str], None]] = None) -> int:
    """Writes one file, or, if `output` is a folder, a file for each input. Returns the number of rows. `step` is as
    for Steps. `opened` receives the path and the state of each input, and the number and the kind of records that are not known. `without_steps` receives the path of each input in which `step` matches nothing. A damaged input is an error, unless
    `recover` is set."""
    arrow, parquet = _arrow()
    plugin = native.load()
    standalone = native.standalone
    schema = _schema(arrow, what)
    outputs = {output: files}
    if output.endswith(os.sep) or os.path.isdir(output):
        os.makedirs(output, exist_ok=True)
        outputs = _outputs(files, output)

    def fill(some: Sequence[File], put: Callable[[Any], None]) -> None:
        for file in some:
            handle, state, _ = standalone.open(plugin, file.path, recover)
            if opened:
                opened(file.path, state, standalone.skipped(handle))
            steps = Steps(file, handle, step)
            if step is not None and without_steps and not steps.packed:
                without_steps(file.path)
            _WRITERS[what](arrow, schema, file, handle, steps, put)
            standalone.close(handle)

    return sum(_write(arrow, parquet, schema, path, partial(fill, some)) for path, some in outputs.items())
