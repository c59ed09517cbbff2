"""A tracer that records every Python call of every thread, and costs little enough to be left on.

    >>> import kpytrace
    >>> with kpytrace.trace("out.json"):
    ...     work()

writes a trace for ui.perfetto.dev or chrome://tracing; kpytrace.start("out.json") and
kpytrace.stop() do the same without a block. help(kpytrace.start) lists the options. The program can
add its own marks, spans and counters to the trace:

    >>> kpytrace.mark("epoch done", epoch=3)
    >>> with kpytrace.span("loading", files=12):
    ...     load()
    >>> kpytrace.counter("queue", len(queue))

kpytrace.memory("snapshot.pickle") records the memory that a block allocates, for torch's memory
viewer.

From a shell, `kpytrace run script.py` traces an unchanged program.

Other hosts load the plugin themselves. plugin_path() returns its path, and include_dir() the folder of
its C headers:

    >>> library = ctypes.CDLL(str(kpytrace.plugin_path()))

kpytrace.traceback captures the current stack as a few numbers, which is cheap to take and to keep:

    >>> where = kpytrace.traceback.gather()
    >>> print(where)

Importing the package loads no C code; the first start does.
"""

from __future__ import annotations

from ._api import native as _native
from ._api.annotations import counter, mark, span
from ._api.functions import dump, start, stop, trace
from ._api.summary import Summary
from ._api.trace import Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pathlib
    from typing import Any

    from ._api.memory import Memory, memory

    __version__: str

__all__ = ["Memory", "Summary", "Trace", "__version__", "counter", "dump", "include_dir", "mark",
           "memory", "plugin_path", "span", "start", "stop", "trace"]


def __getattr__(name: str) -> Any:
    # On demand: few programs use these modules, and some take longer to import than the rest of the package.
    if name == "traceback":
        import importlib

        return importlib.import_module(".traceback", __name__)
    if name in ("Memory", "memory"):
        from ._api import memory

        return globals().setdefault(name, getattr(memory, name))
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._api.version import package_version

    return globals().setdefault(name, package_version())


def __dir__() -> list[str]:
    """Returns the API, without the package's own modules."""
    return sorted({*__all__, "traceback", *({"torch"} & globals().keys())})


def plugin_path() -> pathlib.Path:
    """Returns the path of libkpytrace.so, for dlopen."""
    import pathlib  # on demand: the import takes longer than a start

    return pathlib.Path(_native.plugin_file())


def include_dir() -> pathlib.Path:
    """Returns the folder of the C headers (kpt.h) that a host or another plugin includes."""
    import pathlib

    return pathlib.Path(_native.installed_file("include", "the folder of C headers"))
