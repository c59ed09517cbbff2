"""Recordings of memory on top of the C host, kpytrace._standalone: each allocation with its time and its stack.

At most one recording runs in a process. The plugin holds it, outside of Python's own memory. An exception of a
signal handler leaves a recording that either runs and can be stopped, or does not run (registry.py).
"""

from __future__ import annotations

import os
from _thread import RLock

from .._processes import process_hooks, process_info
from . import native, numpy_import_hook, running_traces
from . import options as _options
from .registry import Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Optional, Union

    from .._files.memory_tables import Tables
    from .trace import Trace

    Path = Union[str, os.PathLike[str]]

SUFFIXES = (".pickle", ".json", ".pftrace", ".kpt", ".html")
AGGREGATED_SUFFIXES = (".tables.json", ".html")
SPOOL = ".spool.kpt"  # is added to the path of an output that is made from a .kpt file
_FILE, _NAMED_SPOOL, _UNNAMED_SPOOL, _AGGREGATE = range(4)  # how the C host writes a recording while it runs

_lock = RLock()  # held during each call, so that a second thread waits
_recordings = Registry()


def check_path(path: Path) -> str:
    """Returns the absolute path. Raises now, rather than at the end, if no recording can be written to it."""
    name = os.fsdecode(path)
    if not name.endswith(SUFFIXES):
        raise ValueError("the path of a memory recording must end in .kpt, .pickle (for torch's memory viewer), "
                         f".json, .pftrace, .tables.json or .html: {name!r}")
    return _options.check_output(name, "recording")


def _check_number(name: str, value: object, read: Any) -> int:
    try:
        number: int = read(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}={value!r}: {error}") from None
    return number


class Memory:
    """A recording of memory. It runs between start() and stop(), or inside a `with` block. It may be
    started again, and then continues, unless it is a .kpt file: that is complete when it is stopped. The recording is
    kept as long as this object lives, or until close().

    It is written to a .kpt file while it runs: to the path, or to a spool from which the other files are made. If a
    trace writes that path, the recording is a part of the trace's file, and ends before the trace does."""

    key: object = None  # in the registry
    _handle: object = None

    def __init__(self, path: Optional[Path] = None, sample_bytes: Union[int, str] = 0,
                 max_entries: int = 0, max_frames: int = 0, aggregate: Union[bool, str] = False) -> None:
        self._path = None if path is None else check_path(path)
        self._arguments = (
            _check_number("sample_bytes", sample_bytes, _options.read_bytes),
            _check_number("max_entries", max_entries, _options.read_u64),
            _check_number("max_frames", max_frames, _options.read_u32))
        self._aggregate = bool(_check_number("aggregate", aggregate, _options.read_switch))
        if self._path is not None and self._path.endswith((".kpt", ".html")) and self._arguments[1]:
            raise ValueError("max_entries keeps the last entries in memory, and a .kpt file has all of them, also the one "
                             "that a page is made from: give one of the other suffixes")
        if self._aggregate:
            self._check_aggregated(self._path)
        self._numpy = numpy_import_hook.Watch(self)
        self._closed = False

    def _check_aggregated(self, path: Optional[str]) -> None:
        if self._arguments[1]:
            raise ValueError("max_entries keeps the last entries, and aggregate keeps none: give one of them")
        if path is not None and not path.endswith(AGGREGATED_SUFFIXES):
            raise ValueError(f"an aggregated recording of memory has no history, so its path must end in .tables.json or "
                             f".html: {path!r}; record without aggregate for the other formats")

    @property
    def _is_file(self) -> bool:
        """Whether the path is the .kpt file itself."""
        return self._path is not None and self._path.endswith(".kpt")

    @property
    def running(self) -> bool:
        """Whether the recording runs now."""
        return self._handle is not None and bool(native.standalone.memory_is_recording(self._handle))

    def start(self) -> Memory:
        """Begins to record, or continues. Blocks from before the start are not recorded, but their frees are."""
        self._start()
        _recordings.kept[self.key] = self
        return self

    def _start(self) -> None:
        """Until start() stores it in `kept`, the recording ends with the last reference to this object."""
        prepare()  # before the lock: in a forked child its hook replaces the lock
        self._start_prepared()

    def _prepare(self) -> None:
        """Does what a start can do before a trace begins in whose file the recording will be, since the trace has the
        calls of a start."""
        prepare()
        self._handle = self._make()

    def _start_prepared(self) -> None:
        with _lock:
            if self._closed:
                raise RuntimeError("this recording is closed: make a new one")
            if self.running:
                return
            if _recordings.newest() is not None:
                raise RuntimeError("memory is being recorded already in this process: "
                                   "end that recording before you begin another")
            for ended in _recordings.all():  # an exception of a signal handler has interrupted their stop()
                _recordings.remove(ended)
            if self._handle is None:
                self._handle = self._make()
            _recordings.borrow(self)
            try:
                self._stream()
                self._begin()
            except BaseException:
                self._end()
                _recordings.remove(self)
                raise

    def _stream(self) -> None:
        """Begins to write the recording to a file. A recording of the last entries is kept in memory."""
        if self._arguments[1]:
            return
        trace = running_traces.streaming_to(self._path) if self._is_file else None
        if trace is not None:
            self._join(trace)
            return
        if self._aggregate:
            path, kind = "", _AGGREGATE
        elif self._path is None:
            path = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"kpytrace-{os.urandom(8).hex()}{SPOOL}")
            kind = _UNNAMED_SPOOL
        elif self._is_file:
            path, kind = self._path, _FILE
        else:
            path, kind = self._path + SPOOL, _NAMED_SPOOL
        process_hooks.allow_forks()  # a thread of kpytrace's writes
        native.standalone.memory_stream(self._handle, path, kind, process_info.describe())

    def _join(self, trace: Trace) -> None:
        """Begins to write the recording into the file of a trace. The lock of recordings, which this thread holds, is
        acquired before that of a trace, here and in Trace.stop()."""
        trace._call("memory_join", self._handle)
        trace._memory = self

    def _begin(self) -> None:
        if self._path is not None:
            native.standalone.memory_at_term(self._handle, self._path)
        self._look()
        self._numpy.start()

    def _look(self) -> None:
        """Begins to record, also the allocations of numpy if numpy is imported."""
        native.standalone.memory_start(self._handle)

    def _flush(self) -> None:
        """Writes what is not yet in the file."""
        with _lock:
            if self.running:
                native.standalone.memory_flush(self._handle)

    def _end(self) -> None:
        """May be called again: after an exception of a signal handler in here, the next stop() repeats it."""
        self._forget()
        native.standalone.memory_stop(self._handle)

    def _forget(self) -> None:
        """Ends the Python part of the recording. A forked child does only this, since it does not record."""
        self._numpy.stop()

    def _make(self) -> object:
        handle, reason = native.standalone.memory_make(native.load(), *self._arguments)
        if reason:
            import sysconfig

            if sysconfig.get_config_var("Py_GIL_DISABLED"):
                reason += ("; memory can't be recorded on free-threaded Python, run the program with a build that "
                           "has the GIL")
            raise RuntimeError(f"kpytrace can't record memory: {reason}")
        made: object = handle
        return made

    def stop(self) -> None:
        """Ends recording, and writes the file if there is one. If the file can't be written, the
        recording is kept and export() can write it elsewhere."""
        with _lock:
            if self._handle is None:
                raise RuntimeError("this recording has not been started: call start() first")
            if self.key not in _recordings.entries:
                return
            try:
                self._end()
                if self._path is not None and not self._is_file:
                    native.standalone.memory_export(self._handle, self._path, None)
                    native.standalone.memory_drop_spool(self._handle)
                native.standalone.memory_not_at_term(self._handle)
            finally:
                if not self.running:
                    _recordings.remove(self)

    def export(self, path: Path) -> str:
        """Writes the recording so far, also while it runs. Returns the path of the file. A failed
        export leaves no file."""
        target = check_path(path)
        if target.endswith(".kpt"):
            raise ValueError(f"a .kpt file is written while memory is recorded: give its name to kpytrace.memory, not to "
                             f"export: {os.fsdecode(path)!r}")
        if self._arguments[1] and target.endswith(".html"):
            raise ValueError("max_entries keeps the last entries in memory, and a page is made from a recording in a file: "
                             "give one of the other suffixes")
        if self._aggregate:
            self._check_aggregated(target)
        self._export(target, None)
        return target

    def _export(self, target: str, wanted: Optional[tuple[int, int]]) -> None:
        with _lock:
            if self._handle is None:
                raise RuntimeError("this recording has not been started: call start() first")
            if self._closed:
                raise RuntimeError("this recording is closed, and its data has been freed")
            native.standalone.memory_export(self._handle, target, wanted)

    def tables(self, at: Union[float, str, None] = None, temporary_within: int = 0) -> Tables:
        """Returns the bytes that each line and function has allocated so far, also while the recording runs: at
        the peak, at the end, and in all. Two such tables can be compared: after.diff(before).

        at                also the blocks that were alive so many seconds after the begin of the recording, 12.5 or
                          "12.5s": rows("moment")
        temporary_within  a block is temporary if the thread that allocated it freed it before that thread made so
                          many more; 0: 2"""
        wanted = (-1 if at is None else _check_number("at", at, _options.read_time),
                  _check_number("temporary_within", temporary_within, _options.read_within))
        from .._files.memory_tables import Tables

        # Not with tempfile: the import would allocate the largest rows of a small recording.
        folder = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"kpytrace-{os.urandom(8).hex()}")
        os.mkdir(folder, 0o700)
        try:
            path = os.path.join(folder, "memory.tables.json")
            self._export(path, wanted)
            try:
                return Tables(path)
            finally:
                os.remove(path)
        finally:
            os.rmdir(folder)

    def close(self) -> None:
        """Frees the recording now. A running recording is stopped, and nothing is written."""
        with _lock:
            if self.running:
                self._end()
            _recordings.remove(self)
            if self._handle is not None:
                native.standalone.memory_drop_spool(self._handle)
                native.standalone.memory_free(self._handle)
            self._closed = True

    def __enter__(self) -> Memory:
        self._start()
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 where: Optional[TracebackType]) -> None:
        self.stop()


def own_calls() -> tuple[tuple[str, str, bytes], ...]:
    """Returns filters for a trace whose recording of memory begins after the trace, and ends before it."""
    files = (__file__, numpy_import_hook.__file__, process_hooks.__file__)
    return tuple(("exclude", "file", os.fsencode(os.path.abspath(file))) for file in files)


def memory(path: Optional[Path] = None, *, sample_bytes: Union[int, str] = 0, max_entries: int = 0,
           max_frames: int = 0, aggregate: Union[bool, str] = False) -> Memory:
    """Records every block that Python allocates and frees, in every thread, with the stack that did it.

    path           the file of the recording: .kpt, which is written meanwhile, and from which
                   `kpytrace convert` makes the others; .pickle, for torch's memory viewer
                   (pytorch.org/memory_viz), .html, a page for the browser, .json, Chrome trace JSON,
                   .pftrace, for Perfetto, or .tables.json, for `kpytrace memory`, which are written at
                   the end of the block. With None no file is written; export() writes one at any time
    sample_bytes   record a random sample, one block per so many bytes ("512kB"), at next to no
                   cost; 0: every block
    max_entries    keep only the last so many allocations and frees; 0: all
    max_frames     keep only the innermost so many frames of a stack; 0: all
    aggregate      keep live bytes and totals by stack, and no history, for runs of days: no file grows;
                   export() writes .tables.json or .html at any time

    >>> with kpytrace.memory("snapshot.pickle"):
    ...     work()
    """
    return Memory(path, sample_bytes, max_entries, max_frames, aggregate)


# --- the first start, the end of the process, and its children -----------------------------------


def _stop_at_exit() -> None:
    with _lock:  # waits for a thread that writes a recording
        running: Optional[Memory] = _recordings.newest()
    if running is not None:
        process_hooks.stop_at_exit(running.stop, running._path)


def _forget_in_child() -> None:
    """A forked child records nothing, and must not write the file of its parent."""
    global _lock
    _lock = RLock()
    for recording in _recordings.all():
        recording._forget()
    _recordings.clear()


def __getattr__(name: str) -> Any:
    if name != "_active":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _recordings.newest()


def prepare() -> None:
    """Loads the C host. The first call also registers the hooks for the end of the process and for forks, after
    those of traces, so that a memory recording is stopped before the traces."""
    running_traces.prepare()
    process_hooks.watch(_stop_at_exit, _forget_in_child)
