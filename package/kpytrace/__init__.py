"""A tracer that records every Python call of every thread, and costs little enough to be left on.

    >>> import kpytrace
    >>> with kpytrace.trace("out.json"):
    ...     work()

writes a trace for ui.perfetto.dev or chrome://tracing; kpytrace.start("out.json") and
kpytrace.stop() do the same without a block. help(kpytrace.start) has the options. Into the trace
go the program's own marks, spans and counters:

    >>> kpytrace.mark("epoch done", epoch=3)
    >>> with kpytrace.span("loading", files=12):
    ...     load()
    >>> kpytrace.counter("queue", len(queue))

kpytrace.memory("snapshot.pickle") records the memory that a block allocates, for torch's memory
viewer.

From a shell, `kpytrace run script.py` traces a program that knows nothing of it.

For other hosts that load the plugin, plugin_path() and include_dir() say where it and its C headers
are:

    >>> library = ctypes.CDLL(str(kpytrace.plugin_path()))

Where the program is, as a few numbers that cost little to take and to keep, kpytrace.traceback tells:

    >>> where = kpytrace.traceback.gather()
    >>> print(where)

Importing the package loads nothing of this; the first start does.
"""

from __future__ import annotations

from ._api import native as _native
from ._api.annotations import counter, mark, span
from ._api.summary import Summary
from ._api.trace import Trace, dump, start, stop, trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pathlib
    from typing import Any

    from ._api.memory import Memory, memory

    __version__: str

__all__ = ["Memory", "Summary", "Trace", "__version__", "counter", "dump", "include_dir", "mark",
           "memory", "plugin_path", "span", "start", "stop", "trace"]


def __getattr__(name: str) -> Any:
    # On demand: few need them, and some take longer to import than all of this package.
    if name == "traceback":
        import importlib

        return importlib.import_module(".traceback", __name__)
    if name in ("Memory", "memory"):
        from ._api import memory

        return globals().setdefault(name, getattr(memory, name))
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib.metadata

    try:
        version = importlib.metadata.version("kpytrace")
    except importlib.metadata.PackageNotFoundError:  # imported from a checkout or a build folder
        version = "0+uninstalled"
    globals()["__version__"] = version
    return version


def plugin_path() -> pathlib.Path:
    """The path of libkpytrace.so, to be opened with dlopen."""
    import pathlib  # on demand: it takes longer than a start

    return pathlib.Path(_native.plugin_file())


def include_dir() -> pathlib.Path:
    """The folder of the C headers that a host or another plugin includes (kpt.h)."""
    import pathlib

    return pathlib.Path(_native.installed_file("include", "the folder of C headers"))
