"""The package's functions start, stop, dump and trace."""

from __future__ import annotations

from .running_traces import traces
from .trace import Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from typing_extensions import Unpack

    from .options import Options, Path
    from .summary import Summary


def start(output: Optional[Path] = None, **options: Unpack[Options]) -> Trace:
    """Begins to trace this process: every Python call, in every thread.

    output   the file that stop() writes. Its suffix selects the format: .json, Chrome trace JSON, for
             ui.perfetto.dev or chrome://tracing; .pftrace, smaller, for ui.perfetto.dev;
             .html, a page for the browser; .speedscope.json; .collapsed, for flame graphs. Each of them
             is compressed if .gz follows.
             .kpt is our own format. It is written while the program runs, and `kpytrace convert`
             converts it to the others. With None stop() writes no file; the returned trace has write().

    Options, each also as an environment variable (KPYTRACE_MAX_DEPTH=20):

    c_calls=False             leave out functions written in C
    all_callables=True        record types, partials and callable instances too
    this_thread=True          record only the thread that calls start()
    gc=True                   record garbage collections too
    gpu=True, gpu=False       record GPUs, or do not (default: if there is a GPU): kernels, copies and the calls of
                              CUDA that start work, wait for it, allocate memory or load code, with the Python
                              line of each. If GPUs can't be recorded, a line on stderr gives the reason, and the
                              trace continues
    gpu="calls"               record nearly every call of CUDA, CUPTI's records of waits and its overhead, too. This
                              slows a program with many short calls
    torch=True                record torch's operators, annotations and autograd's nodes among the calls, also
                              of threads without Python. torch may be imported before or later. The first time,
                              a C++ compiler makes a shim for this torch; without one, a line on stderr gives the
                              reason, and the trace continues
    torch="shapes"            the same, with the sizes, types, strides and values of the operators' inputs
    tasks=False               give asyncio's tasks no tracks of their own
    max_events=N              record at most so many events (a call has two)
    max_bytes="64MB"          keep at most so many bytes in memory
    on_full="ring"            if a budget is full, keep the end; "stop", the default, keeps the beginning
    dump_on="step>3x,hang=60s"  write the ring by itself, on all ranks: if a step (a span named "step", or from one
                              step of an optimizer to the next) takes three times the median, or if nothing
                              happens for a minute; at most dumps_per_hour=6 times
    ring="10s"                keep the last ten seconds, or "64MB": a flight recorder. It is written at
                              the end, on SIGUSR2, on an uncaught exception, and by dump()
    memory=True               also record the memory that Python allocates, in the same .kpt file (help(kpytrace.memory)).
                              memory="512kB" records a random sample, one block per so many bytes
    stream=True               write a .kpt file beside the output while the program runs, so that
                              memory stays bounded, and convert it to the output at the end
    flush_ns="1s"             how often the events of idle threads are written to a stream
    compress=False            do not pack the events in .kpt files: 16 bytes a call instead of 3 to 5
    ring_ns="10s"             keep the last so many nanoseconds, or "10s", "500ms"
    ring_bytes="64MB"         keep the last so many bytes
    min_duration_ns="10us"    leave shorter calls out
    max_depth=N               do not record deeper calls
    overhead_permille=N       switch off code that would slow the program down by more than N thousandths
    tool_id=N                 the sys.monitoring tool ID to use, 1 to 5
    include=..., exclude=...  patterns of code, one or a list of them: a module ("json", with all its
                              submodules), a file or the beginning of its path ("src/"), a glob
                              ("*/site-packages/*"). An exclude has priority over an include.

    start() is refused while another trace of the program runs. trace() nests in a running trace, and both
    nest in the trace of `kpytrace run`. A trace that still runs when the program ends is stopped and written.
    """
    return Trace(output, options)._start(nests=False)


def stop() -> Summary:
    """Ends the trace that start() began, writes its output, and returns its summary."""
    return _newest().stop()


def dump(path: Optional[Path] = None) -> str:
    """Writes the recording so far of the newest running trace, as its dump() does. Where no trace runs, but a recording of
    memory, that is written to `path`, which must be given then."""
    if traces.newest() is None and path is not None:
        from . import memory

        recording: Optional[memory.Memory] = memory._active
        if recording is not None:
            return recording.export(path)
    return _newest().dump(path)


def _newest() -> Trace:
    running: Optional[Trace] = traces.newest()
    if running is None:
        raise RuntimeError("no trace is running: begin one with kpytrace.start()")
    return running


def trace(path: Optional[Path] = None, **options: Unpack[Options]) -> Trace:
    """Returns a trace of a block, which is written to `path` at the end of the block. It has the options of
    start(). As a decorator, it traces each call of the function. It may run inside another trace; each trace
    records all calls between its beginning and its end.

    >>> with kpytrace.trace("out.json", exclude="importlib") as t:
    ...     work()
    >>> t.summary.calls
    """
    return Trace(path, options)
