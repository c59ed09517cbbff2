"""A trace of the program, on top of the C host, kpytrace._standalone.

Traces nest, but start() is refused while another trace of the program runs. Every function may be called from any
thread, also from signal handlers and finalizers: the locks are reentrant, the lock for starts is held at most for
the duration of a start, and stopping a stopped trace changes nothing. After an exception of a signal handler a
trace either runs and can be stopped, or does not run (registry.py).
"""

from __future__ import annotations

import os
import time
from _thread import RLock, get_ident  # threading itself takes a millisecond to import

from . import native, running_traces
from .summary import Summary, print_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Optional, TypeVar

    from ..torch._operators import Operators
    from ..torch._profiler_notice import ProfilerNotice
    from ..torch._triggers import Triggers
    from .memory import Memory
    from .options import Options, Path

    Function = TypeVar("Function", bound=Callable[..., Any])

_ANNOTATIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "annotations.py")

_traces = running_traces.traces


class Trace:
    """A trace. start() or entering a `with` block begins it, stop() or leaving the block ends it.

    The recording is kept as long as this object lives, or until close(), and may be written to
    several files.
    """

    key: object = None  # in the registry

    def __init__(self, output: Optional[Path] = None, options: Optional[Options] = None) -> None:
        # Not at the top of the file: options is the largest module, and a program without a trace does not need
        # it.
        from .options import check_output, from_environment, resolve

        if output is None:
            output = from_environment("KPYTRACE_OUTPUT") or None
        self._output = None if output is None else check_output(output)
        self._options = resolve(options or {})
        self._ring = ("ring_ns" in self._options or "ring_bytes" in self._options
                      or self._options.get("on_full") == "ring")
        self._stream = self._plan_stream()
        self._memory_sample: Optional[int] = self._options.pop("memory", None)  # type: ignore[assignment]
        if self._memory_sample is not None and (self._stream is None or self._stream != self._output):
            raise ValueError("memory is recorded into a .kpt file, which is written while the program runs: give an output "
                             "that ends in .kpt, and no ring")
        self._memory: Optional[Memory] = None  # the recording that is written to the same file
        self._is_triggered = "hang_ns" in self._options or "step_percent" in self._options
        if self._is_triggered and not (self._ring and self._output):
            raise ValueError("dump_on needs a ring and an output: give ring='30s' and the name of a file")
        self._handle: object = None
        self._is_whole = False  # it records the program from its start to its end, and other traces nest in it
        self._noop: Optional[str] = None
        self._no_gpu: Optional[str] = None
        self._gpu = 0  # how GPUs are recorded, as in the options
        self._pid = 0
        self._children_seconds = float("inf")  # the processor time of children before the start
        self._began = 0.0
        self._ended: Optional[float] = None
        self._counts: Optional[dict[str, int]] = None  # of the calls, threads and names that were written
        self._summary: Optional[Summary] = None
        self._failure: Optional[OSError] = None  # of the stream
        self._stopper = 0  # the thread that is in stop(), or was in it last
        self._progress: Optional[Callable[[int], None]] = None
        self._unwatch: Callable[[], None] = lambda: None
        self._wants_operators = self._options.pop("torch", False)
        self._operators: Optional[Operators] = None
        self._triggers: Optional[Triggers] = None
        self._notice: Optional[ProfilerNotice] = None
        self._is_quiet = False  # what can't be recorded is reported only in the summary
        self._lock = RLock()  # held during each call, so that a second stop() waits for the summary of the first

    def _plan_stream(self) -> Optional[str]:
        """Returns the path of the .kpt file that is written while the trace runs, or None if there is none."""
        kpt = self._output is not None and self._output.endswith(".kpt")
        wanted = self._options.pop("stream", kpt and not self._ring)
        if not wanted:
            return None
        if self._output is None:
            raise ValueError("stream needs an output: give the name of a file")
        if self._ring:
            raise ValueError("a ring is kept in memory and can't be streamed: leave out stream or the ring")
        return self._output if kpt else self._output + ".kpt"

    @property
    def running(self) -> bool:
        """Whether the trace records now."""
        return self._handle is not None and bool(native.standalone.is_recording(self._handle))

    @property
    def summary(self) -> Optional[Summary]:
        """The summary that stop() returned, or None before that."""
        return self._summary

    @property
    def memory(self) -> Optional[Memory]:
        """The recording of memory in the file of this trace, or None."""
        return self._memory

    def start(self) -> Trace:
        """Begins to record. A trace can be started once."""
        return self._start(nests=False)

    def _start(self, nests: bool) -> Trace:
        """The registry keeps a trace that does not nest until it is stopped, also without a reference of the
        caller."""
        plugin = running_traces.prepare()  # before the lock: in a forked child its hook replaces the lock
        from .._processes import process_hooks, process_info

        with running_traces.lock:
            self._children_seconds = process_info.children_seconds()
            if not nests and any(trace.running and not trace._is_whole for trace in _traces.all()):
                raise RuntimeError("a trace is running already in this process: "
                                   "end it with kpytrace.stop() before you begin another")
            if self._handle is not None:
                raise RuntimeError("this trace has been used already: make a new one")
            for trace in _traces.all():
                if trace._stopper == get_ident() and not trace.running:  # an exception has interrupted its stop()
                    _traces.remove(trace)
            options = dict(self._options, info=self._describe(), ring=self._ring)
            options.setdefault("tasks", True)  # costs nothing if no coroutine runs
            # A mark must appear in the function that makes it, not in ours.
            options["filters"] += (("exclude", "file", os.fsencode(_ANNOTATIONS)),)  # type: ignore
            if self._is_triggered:
                from weakref import finalize

                from ..torch._triggers import Triggers

                self._triggers = Triggers()
                finalize(self, self._triggers.stop).atexit = False  # for a trace that nobody stops
                options["filters"] += Triggers.filters()
            if self._output:
                from . import flight_recorder

                options.update(flight_recorder.signals(self._stream, self._output, self._ring))
                process_hooks.allow_forks()
            if self._wants_operators:
                self._prepare_operators()
            if self._memory_sample is not None:
                from . import memory

                self._memory = memory.Memory(self._stream, self._memory_sample)
                self._memory._prepare()
                options["filters"] += memory.own_calls()  # type: ignore[operator]
            self._pid = os.getpid()
            self._began = time.perf_counter()
            _traces.borrow(self)
            # From here on calls are recorded, so our own calls are kept to a minimum.
            self._handle, self._noop, self._no_gpu, self._gpu = native.standalone.start(plugin, options)
        if self._ring or self._noop or self._no_gpu or self._operators or self._gpu or self._memory:
            try:
                self._begun()
            except BaseException:
                self.close()
                raise
        if not nests:
            _traces.kept[self.key] = self
        return self

    def _prepare_operators(self) -> None:
        from weakref import finalize

        from ..torch._operators import Operators

        self._operators = Operators(self._is_quiet, self._wants_operators == "shapes")
        self._operators.prepare()
        finalize(self, self._operators.stop).atexit = False  # for a trace that nobody stops

    def _begun(self) -> None:
        if self._operators and not self._noop:
            self._operators.start(self._handle)
        if self._gpu:
            from .options import GPU_CALLS
            from ..torch._profiler_notice import ProfilerNotice

            self._notice = ProfilerNotice(self._is_quiet)
            self._notice.start(self._handle)
            if self._gpu == GPU_CALLS != self._options.get("gpu"):  # by a plugin before 1.2
                self._describe_again()
        if self._ring and self._output:
            from . import flight_recorder

            self._unwatch = flight_recorder.watch(self)
        if self._triggers and not self._noop:
            self._triggers.start(self._handle)
        if self._memory and not self._noop:
            self._memory._start_prepared()
        if self._noop:
            import warnings

            # Stack level of the user's call of start(), or of the `with`: _begun, _start, and its caller are below
            # it.
            warnings.warn(f"kpytrace records nothing: {self._noop}", RuntimeWarning, 4)
        if self._no_gpu:
            self._report_no_gpu()

    def _report_no_gpu(self) -> None:
        """Prints the reason once, and puts it into the file. The program and the trace continue."""
        self._describe_again()
        if not self._is_quiet:
            self._is_quiet = True
            print_message(f"kpytrace: GPUs are not recorded: {self._no_gpu}")

    def stop(self) -> Summary:
        """Ends recording, writes the output if there is one, and returns a summary. If the output can't
        be written, the recording is kept: call stop() again, or write() it elsewhere."""
        self._stop_memory()
        with self._lock:
            if self._handle is None:
                raise RuntimeError("this trace has not been started: call start() first")
            self._stopper = get_ident()
            try:
                if self._ended is None:
                    self._end()
                if self._summary is None:
                    self._summary = self._finish()
                return self._summary
            finally:
                if not self.running:
                    _traces.remove(self)

    def _stop_memory(self) -> None:
        """Ends the recording of memory in the same file. Not under the trace's lock, which is acquired after that of
        recordings of memory (Memory._join)."""
        if self._memory is not None and self._memory.running:
            self._memory.stop()

    def _end(self) -> None:
        """May be called again: after an exception of a signal handler in here, the next stop() repeats it."""
        if self._operators:
            self._operators.stop()
        for part in (self._notice, self._triggers):
            if part:
                part.stop()
        try:
            native.standalone.stop(self._handle)
        except OSError as error:  # the trace has stopped, but its stream is incomplete
            self._failure = error
        self._unwatch()
        self._ended = time.perf_counter()

    def _finish(self) -> Summary:
        # A forked child has an empty recording, and must not overwrite the file of its parent.
        path = self._output if self._pid == os.getpid() else None
        stats = native.standalone.stats(self._handle)
        self._no_gpu, kernels, gpu_dropped, lost = native.standalone.gpu(self._handle)
        if self._no_gpu:
            self._report_no_gpu()
        if self._counts is None:
            self._counts = self._write_output(path, stats)
        if path and self._stream and path != self._stream and os.path.exists(self._stream):
            os.unlink(self._stream)
        if self._failure:
            failure, self._failure = self._failure, None
            raise failure
        seconds = (self._ended or self._began) - self._began
        return Summary(path, self._counts["calls"], self._counts["threads"], self._counts["names"],
                       stats["events_dropped"], seconds, self._noop, kernels, self._no_gpu,
                       gpu_dropped + lost)

    def _write_output(self, path: Optional[str], stats: dict[str, int]) -> dict[str, int]:
        try:
            counts: dict[str, int] = native.standalone.write(
                self._handle, None if path == self._stream else path, self._progress)
        except OSError:
            if path is None or path != self._stream or os.path.isfile(path):
                raise
            counts = {"calls": stats["events"] // 2, "threads": stats["threads"], "names": 0}
        return counts

    def dump(self, path: Optional[Path] = None) -> str:
        """Writes the recording so far, while the trace continues. Returns the path of the file: `path`,
        or the output's name with a number in it, out.1.json, out.2.json …"""
        from .options import check_output

        if self._handle is None:
            raise RuntimeError("this trace has not been started: call start() first")
        if path is not None:
            target = check_output(path)
        elif self._output is None:
            raise ValueError("the trace has no output: pass a path to dump()")
        else:
            target = os.fsdecode(native.standalone.next_dump(self._handle, os.fsencode(self._output)))
        if self._memory is not None:
            self._memory._flush()
        self._call("write", target, None)
        return target

    def _dump_because(self, reason: str) -> str:
        """Dumps, with the reason in the file, and makes the other ranks dump."""
        try:
            with self._lock:
                self._call("set_info", self._describe() + f"dump={reason}\n".encode("utf-8", "replace"))
                try:
                    return self.dump()
                finally:
                    self._describe_again()
        finally:
            if self._triggers:
                self._triggers.tell(reason)

    def write(self, path: Path) -> int:
        """Writes the recording of a stopped trace to `path`, in the format of its suffix (see start()).
        Returns the number of its calls. A failed write leaves no file."""
        from .options import check_output

        if self._ended is None:
            raise RuntimeError("stop the trace before you write it")
        calls: int = self._call("write", check_output(path), None)["calls"]
        return calls

    def _call(self, function: str, *arguments: object) -> Any:
        """Calls the C host. It takes one call at a time, so a second thread waits."""
        with self._lock:
            return getattr(native.standalone, function)(self._handle, *arguments)

    def _describe(self) -> bytes:
        """Returns the lines about the process and about the choice of events that the file has."""
        from .._processes import process_info
        from .options import GPU_CALLS, GPU_OFF

        gpu = self._gpu or self._options.get("gpu", 0)
        calls = {GPU_OFF: b"", GPU_CALLS: b"gpu_calls=all\n"}.get(gpu, b"gpu_calls=work\n")  # type: ignore
        if self._no_gpu:
            calls = b"no_gpu=" + self._no_gpu.replace("\n", " ").encode("utf-8", "replace") + b"\n"
        return calls + process_info.describe_missing(self._options, self._children_seconds) + process_info.describe()

    def _describe_again(self) -> None:
        """Replaces the description of the process, since its name and its rank may have become known."""
        self._call("set_info", self._describe())

    def stats(self) -> dict[str, int]:
        """Returns the tracer's counters, also while it runs."""
        if self._handle is None:
            raise RuntimeError("this trace has not been started: call start() first")
        counters: dict[str, int] = self._call("stats")
        return counters

    def close(self) -> None:
        """Frees the recording now. A running trace is stopped, and nothing is written."""
        self._stop_memory()
        with self._lock:
            if self._handle is not None:
                if self._operators:
                    self._operators.stop()
                for part in (self._notice, self._triggers):
                    if part:
                        part.stop()
                native.standalone.close(self._handle)
                self._unwatch()
            _traces.remove(self)

    def __call__(self, function: Function) -> Function:
        """As a decorator: traces each call of the function, and writes the output after the call. A call that
        begins while another call is traced, as in a recursive function, is part of that trace."""
        if self._handle is not None:
            raise RuntimeError("this trace has been used already: make a new one")
        from .decorate import trace_calls

        return trace_calls(function, self._again)

    def _again(self) -> Trace:
        made = Trace.__new__(Trace)
        made.__dict__.update(self.__dict__, _lock=RLock())
        return made

    def __enter__(self) -> Trace:
        return self._start(nests=True)

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 where: Optional[TracebackType]) -> None:
        self.stop()


def __getattr__(name: str) -> Any:
    if name != "_active":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _traces.newest()
