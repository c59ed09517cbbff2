"""Start, stop and trace: the package's functions on top of the C host, kpytrace._standalone.

At most one trace is active in a process. Everything here may be called from any thread, also from
signal handlers and finalizers: the locks are reentrant, the one for _active is held for a start at
most, and stopping a stopped trace is no change.
"""

from __future__ import annotations

import os
import time
from _thread import RLock  # threading itself takes a millisecond to import

from . import _options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Optional, Union

    from typing_extensions import Unpack

    from ._options import Options

    Path = Union[str, os.PathLike[str]]

# Formats that writers will have: a name that promises one of them must not get Chrome JSON.
_OTHER_SUFFIXES = (".kpt",)

_lock = RLock()
_active: Optional[Trace] = None
_standalone: Any = None  # the C host, once loaded


class Summary:
    """What a finished trace holds.

    path      the file that was written, or None
    calls     calls in the trace
    threads   threads that made them
    functions different functions among them
    dropped   events lost to a budget, a ring or missing memory
    seconds   from start to stop
    noop      why nothing could be recorded, or None
    """

    __slots__ = ("path", "calls", "threads", "functions", "dropped", "seconds", "noop")

    def __init__(self, path: Optional[str], calls: int, threads: int, functions: int,
                 dropped: int, seconds: float, noop: Optional[str]) -> None:
        self.path, self.calls, self.threads, self.functions = path, calls, threads, functions
        self.dropped, self.seconds, self.noop = dropped, seconds, noop

    def as_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __repr__(self) -> str:
        return f"Summary({', '.join(f'{k}={v!r}' for k, v in self.as_dict().items())})"


def _check_output(output: Path) -> str:
    """The absolute path, since programs change their folder; refused now rather than at the end."""
    path = os.path.abspath(os.fsdecode(output))
    for suffix in _OTHER_SUFFIXES:
        if path.removesuffix(".gz").endswith(suffix):
            raise ValueError(f"kpytrace writes no {suffix} yet: choose a name that ends in .json, .pftrace, "
                             f".speedscope.json or .collapsed, not {os.fsdecode(output)!r}")
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "the folder of the trace does not exist", folder)
    if os.path.isdir(path):
        raise IsADirectoryError(21, "the trace needs a file's name, this is a folder", path)
    return path


class Trace:
    """A trace: begun by start() or by entering a `with`, and ended by stop() or by leaving it.

    The recording is held as long as this object lives, or until close(), and may be written to
    several files.
    """

    def __init__(self, output: Optional[Path] = None, options: Optional[Options] = None) -> None:
        if output is None:
            output = os.environ.get("KPYTRACE_OUTPUT") or None
        self._output = None if output is None else _check_output(output)
        self._options = _options.resolve(options or {})
        self._handle: object = None
        self._noop: Optional[str] = None
        self._pid = 0
        self._began = 0.0
        self._ended: Optional[float] = None
        self._summary: Optional[Summary] = None
        self._lock = RLock()  # who stops it a second time waits for the first one's summary

    @property
    def running(self) -> bool:
        """Whether it records now."""
        return _active is self

    @property
    def summary(self) -> Optional[Summary]:
        """What stop() returned; None before."""
        return self._summary

    def start(self) -> Trace:
        """Begins to record. A trace can be started once."""
        return self._start()

    def _start(self) -> Trace:
        global _active
        with _lock:
            if _active is not None:
                raise RuntimeError("a trace is running already in this process: "
                                   "end it with kpytrace.stop() before you begin another")
            if self._handle is not None:
                raise RuntimeError("this trace has been used already: make a new one")
            plugin = _load()
            self._pid = os.getpid()
            self._began = time.perf_counter()
            # From here on calls are recorded: the fewer of our own, the better.
            self._handle, self._noop = _standalone.start(plugin, self._options)
            _active = self
        if self._noop:
            self._warn(f"kpytrace records nothing: {self._noop}")
        return self

    def _warn(self, text: str) -> None:
        import warnings

        try:
            # Where the user called start(), or wrote `with`: above this, _start and its caller.
            warnings.warn(text, RuntimeWarning, 4)
        except RuntimeWarning:  # python -W error: then the trace must not go on
            self.close()
            raise

    def stop(self) -> Summary:
        """Ends recording, writes the output if there is one, and tells what the trace holds. If the
        output can't be written the recording is kept: call again, or write() it elsewhere."""
        with self._lock:
            if self._handle is None:
                raise RuntimeError("this trace has not been started")
            if self._ended is None:
                self._end()
            if self._summary is None:
                self._summary = self._finish()
            return self._summary

    def _end(self) -> None:
        global _active
        _standalone.stop(self._handle)
        self._ended = time.perf_counter()
        with _lock:
            if _active is self:
                _active = None

    def _finish(self) -> Summary:
        # A fork leaves the child with an empty recording: it must not overwrite its parent's file.
        path = self._output if self._pid == os.getpid() else None
        counts = _standalone.write(self._handle, path)
        stats = _standalone.stats(self._handle)
        seconds = (self._ended or self._began) - self._began
        return Summary(path, counts["calls"], counts["threads"], counts["names"],
                       stats["events_dropped"], seconds, self._noop)

    def write(self, path: Path) -> int:
        """Writes the recording of a stopped trace to `path`, as Chrome JSON, compressed if it ends in
        .gz, and returns the number of its calls. A failed write leaves no file."""
        if self._ended is None:
            raise RuntimeError("stop the trace before you write it")
        calls: int = _standalone.write(self._handle, _check_output(path))["calls"]
        return calls

    def stats(self) -> dict[str, int]:
        """The tracer's counters, also while it runs."""
        if self._handle is None:
            raise RuntimeError("this trace has not been started")
        counters: dict[str, int] = _standalone.stats(self._handle)
        return counters

    def close(self) -> None:
        """Frees the recording now; stops it, without writing anything, if it still runs."""
        global _active
        with self._lock:
            if self._handle is not None:
                _standalone.close(self._handle)
            with _lock:
                if _active is self:
                    _active = None

    def __enter__(self) -> Trace:
        return self._start()

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 where: Optional[TracebackType]) -> None:
        self.stop()


def start(output: Optional[Path] = None, **options: Unpack[Options]) -> Trace:
    """Begins to trace this process: every Python call, in every thread.

    output   the file that stop() writes, as Chrome trace JSON: for ui.perfetto.dev, or
             chrome://tracing; compressed, if its name ends in .gz. None: stop() writes none, and
             the returned trace has write().

    Options, each also as an environment variable (KPYTRACE_MAX_DEPTH=20):

    c_calls=False             leave out functions written in C
    all_callables=True        record types, partials and callable instances too
    this_thread=True          record only the thread that calls start()
    gc=True                   record garbage collections too
    max_events=N              record at most so many events (a call has two)
    max_bytes="64MB"          hold at most so much
    on_full="ring"            a full budget keeps the end; "stop", the default, the beginning
    ring_ns="10s"             keep the last so many nanoseconds, or "10s", "500ms"
    ring_bytes="64MB"         keep the last so many bytes
    min_duration_ns="10us"    leave shorter calls out
    max_depth=N               do not record deeper calls
    overhead_permille=N       switch off code that would slow the program down by more
    tool_id=N                 the sys.monitoring tool to be, 1 to 5
    include=..., exclude=...  patterns of code, alone or in a list: a module ("json", with all
                              below it), a file or the beginning of its path ("src/"), a glob
                              ("*/site-packages/*"). An exclude wins over an include.

    Only one trace is active at a time. A trace that still runs when the program ends is stopped and
    written then.
    """
    return Trace(output, options)._start()


def stop() -> Summary:
    """Ends the trace that start() began, writes its output, and returns a summary of it."""
    running = _active
    if running is None:
        raise RuntimeError("no trace is running: begin one with kpytrace.start()")
    return running.stop()


def trace(path: Optional[Path] = None, **options: Unpack[Options]) -> Trace:
    """A trace of a block, written to `path` at its end; the options are those of start().

    >>> with kpytrace.trace("out.json", exclude="importlib") as t:
    ...     work()
    >>> t.summary.calls
    """
    return Trace(path, options)


# --- the first start, the end of the process, and its children -----------------------------------


def _stop_at_exit() -> None:
    running = _active
    if running is not None:
        running.stop()


def _forget_in_child() -> None:
    global _active, _lock
    _lock = RLock()  # another thread of the parent may have held them
    if _active is not None:
        _active._lock = RLock()
    _active = None


def _load() -> object:
    """Loads the C host and sets the hooks, at the first start: importing the package does neither.
    Returns the plugin's path."""
    global _standalone
    from . import plugin_path

    if _standalone is None:
        import atexit

        from . import _standalone as loaded

        atexit.register(_stop_at_exit)
        os.register_at_fork(after_in_child=_forget_in_child)
        _standalone = loaded
    return plugin_path()
