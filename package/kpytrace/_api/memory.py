"""Recordings of memory: who allocated what, and when, on top of the C host, kpytrace._standalone.

At most one records in a process. The recording is the plugin's, outside of Python's own memory. What a signal
handler raises leaves one that either records, and can be stopped, or does not (registry.py).
"""

from __future__ import annotations

import os
from _thread import RLock

from .._processes import process_hooks
from . import native, numpy_import_hook
from . import options as _options
from . import trace as _trace
from .registry import Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Optional, Union

    from .._files.memory_tables import Tables

    Path = Union[str, os.PathLike[str]]

SUFFIXES = (".pickle", ".json", ".pftrace")

_lock = RLock()  # around each call: a second thread waits
_recordings = Registry()


def check_path(path: Path) -> str:
    """Returns the absolute path. Raises now, rather than at the end, if no recording can be written there."""
    name = os.fsdecode(path)
    if not name.endswith(SUFFIXES):
        raise ValueError(f"memory is written as .pickle, for torch's memory viewer, .json, .pftrace or "
                         f".tables.json: {name!r} is none of them")
    return _options.check_output(name, "recording")


def _check_number(name: str, value: object, read: Any) -> int:
    try:
        number: int = read(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}={value!r}: {error}") from None
    return number


class Memory:
    """A recording of memory: runs between start() and stop(), or inside of a `with`. It may be
    started again, and then goes on; it is held as long as this object lives, or until close()."""

    key: object = None  # of the registry
    _handle: object = None

    def __init__(self, path: Optional[Path] = None, sample_bytes: Union[int, str] = 0,
                 max_entries: int = 0, max_frames: int = 0) -> None:
        self._path = None if path is None else check_path(path)
        self._arguments = (
            _check_number("sample_bytes", sample_bytes, _options.read_bytes),
            _check_number("max_entries", max_entries, _options.read_u64),
            _check_number("max_frames", max_frames, _options.read_u32))
        self._numpy = numpy_import_hook.Watch(self)
        self._closed = False

    @property
    def running(self) -> bool:
        """Whether it records now."""
        return self._handle is not None and bool(native.standalone.memory_is_recording(self._handle))

    def start(self) -> Memory:
        """Begins to record, or goes on. Blocks from before are not known; their frees are."""
        self._start()
        _recordings.kept[self.key] = self
        return self

    def _start(self) -> None:
        """Until it is kept, the recording ends with the last reference to this object."""
        prepare()  # before the lock: in the child of a fork its hook makes that anew
        with _lock:
            if self._closed:
                raise RuntimeError("this recording is closed: make a new one")
            if self.running:
                return
            if _recordings.newest() is not None:
                raise RuntimeError("memory is being recorded already in this process: "
                                   "end that recording before you begin another")
            for ended in _recordings.all():  # whose stop() a handler's exception has interrupted
                _recordings.remove(ended)
            if self._handle is None:
                self._handle = self._make()
            _recordings.borrow(self)
            try:
                self._begin()
            except BaseException:
                self._end()
                _recordings.remove(self)
                raise

    def _begin(self) -> None:
        if self._path is not None:
            native.standalone.memory_at_term(self._handle, self._path)
        self._look()
        self._numpy.start()

    def _look(self) -> None:
        """Records from now on, also what numpy allocates, if it is there."""
        native.standalone.memory_start(self._handle)

    def _end(self) -> None:
        """Again is no change: a handler that raises here leaves it for the next stop()."""
        self._forget()
        native.standalone.memory_stop(self._handle)

    def _forget(self) -> None:
        """What is Python's of it ends; in the child of a fork, where it records no more, that is all."""
        self._numpy.stop()

    def _make(self) -> object:
        handle, reason = native.standalone.memory_make(native.load(), *self._arguments)
        if reason:
            import sysconfig

            if sysconfig.get_config_var("Py_GIL_DISABLED"):
                reason += "; it can't be recorded on free-threaded Python, run the program with another build"
            raise RuntimeError(f"kpytrace can't record memory: {reason}")
        made: object = handle
        return made

    def stop(self) -> None:
        """Ends recording, and writes the file if there is one. If that can't be written the
        recording is kept: export() it elsewhere."""
        with _lock:
            if self._handle is None:
                raise RuntimeError("this recording has not been started")
            if self.key not in _recordings.entries:
                return
            self._end()
            try:
                if self._path is not None:
                    native.standalone.memory_export(self._handle, self._path)
                    native.standalone.memory_not_at_term(self._handle)
            finally:
                _recordings.remove(self)

    def export(self, path: Path) -> str:
        """Writes what was recorded so far, also while it runs, and returns the file's name. A failed
        export leaves no file."""
        target = check_path(path)
        with _lock:
            if self._handle is None:
                raise RuntimeError("this recording has not been started")
            if self._closed:
                raise RuntimeError("this recording is closed, and what it held is gone")
            native.standalone.memory_export(self._handle, target)
        return target

    def tables(self) -> Tables:
        """What each line and function has allocated so far, also while it runs: at the peak, at the end, and
        in all. Two of them can be compared: after.diff(before)."""
        from .._files.memory_tables import Tables

        # By hand: tempfile and what it imports would be the largest rows of a small recording.
        folder = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"kpytrace-{os.urandom(8).hex()}")
        os.mkdir(folder, 0o700)
        try:
            path = self.export(os.path.join(folder, "memory.tables.json"))
            try:
                return Tables(path)
            finally:
                os.remove(path)
        finally:
            os.rmdir(folder)

    def close(self) -> None:
        """Frees the recording now; stops it, without writing anything, if it still runs."""
        with _lock:
            if self.running:
                self._end()
            _recordings.remove(self)
            if self._handle is not None:
                native.standalone.memory_free(self._handle)
            self._closed = True

    def __enter__(self) -> Memory:
        self._start()
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 where: Optional[TracebackType]) -> None:
        self.stop()


def memory(path: Optional[Path] = None, *, sample_bytes: Union[int, str] = 0, max_entries: int = 0,
           max_frames: int = 0) -> Memory:
    """Records every block that Python allocates and frees, in every thread, with the stack of who did.

    path           the file that the end of the block writes: .pickle, for torch's memory viewer
                   (pytorch.org/memory_viz), .json, Chrome trace JSON, .pftrace, for Perfetto, or
                   .tables.json, for `kpytrace memory`. None: none is written, and export() writes one
                   at any time
    sample_bytes   record one block in so many bytes, "512kB", by chance, and so cost next to
                   nothing; 0: every block
    max_entries    keep the last so many allocations and frees; 0: all
    max_frames     of a stack, the innermost so many; 0: all

    >>> with kpytrace.memory("snapshot.pickle"):
    ...     work()
    """
    return Memory(path, sample_bytes, max_entries, max_frames)


# --- the first start, the end of the process, and its children -----------------------------------


def _stop_at_exit() -> None:
    with _lock:  # another thread may be writing one
        running: Optional[Memory] = _recordings.newest()
    if running is not None:
        process_hooks.stop_at_exit(running.stop, running._path)


def _forget_in_child() -> None:
    """The child records nothing, and must not write its parent's file."""
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
    """Loads the C host and, the first time, registers the hooks for the end of the process and for forks, behind those
    of traces: a memory recording is stopped before them."""
    _trace.prepare()
    process_hooks.watch(_stop_at_exit, _forget_in_child)
