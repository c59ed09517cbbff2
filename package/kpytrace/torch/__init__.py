"""kpytrace as the Python tracer of PyTorch's profiler, installed at run time.

    >>> import kpytrace.torch
    >>> kpytrace.torch.install()

From then on the ordinary torch.profiler.profile(with_stack=True) records Python through kpytrace.
`python -m kpytrace.torch check` reports whether kpytrace works in this environment, and `build` compiles the
shim ahead of its first use. docs/torch.md describes the rest.

Importing this package does not import torch.
"""

from __future__ import annotations

import sys
from _thread import RLock

from ._types import MODES, TorchHostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Optional, Union

    from .._api.memory import Memory, Path
    from ._native.profile import profile
    from ._observer import ExecutionTraceObserver

__all__ = ["ExecutionTraceObserver", "TorchHostError", "install", "installed", "memory",
           "memory_by_module", "profile", "tracebacks", "uninstall"]

# Releases whose combined tracebacks were compared with ours. The interface of an unwinder differs between
# releases.
TRACEBACKS_OF = ((2, 11), (2, 13))

_lock = RLock()
_mode: Optional[str] = None
_has_memory_factory = False
_no_tracebacks: Optional[str] = "kpytrace is not installed in torch"


def __getattr__(name: str) -> Any:
    if name == "ExecutionTraceObserver":  # on demand: the module imports torch
        from ._observer import ExecutionTraceObserver

        return ExecutionTraceObserver
    if name == "profile":
        from ._native.profile import profile

        return profile
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def install(mode: str = "full", threads: bool = True, tracebacks: bool = True,
            memory: bool = True, execution_trace: Union[bool, str] = False,
            kernel_stacks: bool = True) -> None:
    """Makes kpytrace the Python tracer of all torch profilers that start from now on.

    mode     the calls that torch receives when a profiler stops:
             "all"   every call, for tools that walk prof.events();
             "full"  the calls that enclose an operator or an annotation, which are all that torch's own
                     analyses need; the other calls are written with the trace;
             "fast"  none; all calls are written with the trace;
             "native"  torch's profiler, with operators and GPUs, runs on kpytrace's own recording instead of Kineto.
                     A profile that needs Kineto runs as in "full", and a line on stderr gives the reason.
    threads  record threads that start while the profiler runs, too; torch's own tracer does not
    tracebacks  gather the Python frames of torch's combined tracebacks, too (memory snapshots, the
             flight recorder, torch.utils._traceback). tracebacks() returns the reason if that is not possible
    memory   write the memory snapshots that are requested from Kineto on demand, of Python and of tensors
    execution_trace  True: profilers that get an observer by ENABLE_PYTORCH_EXECUTION_TRACE get a
             kpytrace.torch.ExecutionTraceObserver; "all": torch.profiler.ExecutionTraceObserver is that
             class too, for programs that take it from there after this call
    kernel_stacks  exported traces have, with each kernel, copy and set of memory of a GPU, the Python
             stack of the call that launched it

    The first call compiles the shim for the installed torch, which takes a while. A later call may
    change the values, which then apply to the next profiler. Raises TorchHostError.
    """
    global _mode, _no_tracebacks
    if mode not in MODES:
        raise ValueError(f"mode must be {', '.join(map(repr, MODES[:-1]))} or {MODES[-1]!r}, "
                         f"not {mode!r}")
    if execution_trace not in (False, True, "all"):
        raise ValueError(f"execution_trace must be False, True or 'all', not {execution_trace!r}")
    from . import _shim
    from ._environment import needed_torch

    with _lock:
        torch = needed_torch()
        shim = _shim.load(torch)
        from . import _export, _observer, _results
        from ._settings import settings_of

        is_native = mode == "native"
        shim.install(*settings_of(torch, "full" if is_native else mode, bool(threads)))
        _results.keep_recordings(torch, shim)
        _export.install(torch, kernel_stacks)
        _set_native(is_native, bool(threads), bool(kernel_stacks))
        _no_tracebacks = _install_unwinder(torch, shim, tracebacks)
        _set_memory_factory(torch, shim, memory)
        if execution_trace:
            _observer.serve(torch, execution_trace == "all")
        else:
            _observer.stop_serving()
        _mode = mode


def installed() -> Optional[str]:
    """Returns the mode that is installed, or None."""
    return _mode


def tracebacks() -> Optional[str]:
    """Returns None if torch's combined tracebacks get their Python frames from kpytrace, or else the reason why
    they do not."""
    return _no_tracebacks


def _set_native(is_native: bool, threads: bool = True, kernel_stacks: bool = True) -> None:
    """Makes later profiles native, or not."""
    if is_native:
        from ._native import seam

        seam.install(threads, kernel_stacks)
    elif f"{__name__}._native.seam" in sys.modules:
        from ._native import seam

        seam.uninstall()


def _install_unwinder(torch: ModuleType, shim: Any, wanted: bool) -> Optional[str]:
    """Returns None, or the reason why torch keeps its own unwinder."""
    from .. import plugin_path

    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if not wanted:
        why = "install() was called with tracebacks=False"
    elif version not in TRACEBACKS_OF:
        why = (f"torch {torch.__version__} is not tested: kpytrace supports the tracebacks of "
               + ", ".join(f"{major}.{minor}" for major, minor in TRACEBACKS_OF))
    else:
        reason: Optional[str] = shim.install_unwinder(str(plugin_path()))
        return reason
    shim.uninstall_unwinder()
    return why


def _set_memory_factory(torch: ModuleType, shim: Any, wanted: bool) -> None:
    """Installs or removes our memory tracer. If torch's own can't be found again, snapshots on demand have no
    tracer after the removal."""
    global _has_memory_factory
    from .. import plugin_path
    from . import _cuda, _stock_symbols

    if wanted:
        _cuda.attach(torch, shim)
        shim.install_memory_factory(str(plugin_path()))
    elif _has_memory_factory:
        shim.uninstall_memory_factory(_stock_symbols.distance(torch, _stock_symbols.MEMORY_TRACER))
    _has_memory_factory = wanted


def memory(path: Optional[Path] = None, *, sample_bytes: Union[int, str] = 0, max_entries: int = 0,
           max_frames: int = 0, aggregate: Union[bool, str] = False, modules: bool = True) -> Memory:
    """Records the memory that kpytrace.memory() does, and torch's tensors, in the processor's memory and in
    CUDA's, in every thread. install() need not have been called. Raises TorchHostError.

    modules  record for each tensor the module whose forward made it; memory_by_module() adds them up

    >>> with kpytrace.torch.memory("snapshot.pickle"):
    ...     model(data)
    """
    from ._memory import TensorMemory

    return TensorMemory(path, modules, sample_bytes, max_entries, max_frames, aggregate)


def memory_by_module(path: Path) -> list[tuple[str, int, int]]:
    """Returns the memory of modules, from a snapshot (.pickle) of memory(). A row has the path of a module, such
    as Net.encoder.fc1, the bytes of its tensors that were alive at the end, and their maximum at any time. A
    tensor belongs to the innermost module whose forward made it; tensors that no module made have the path "". The
    largest peak comes first."""
    from ._memory import by_module

    return by_module(path)


def uninstall() -> str:
    """Restores torch's own tracer for the profilers that start from now on.

    torch has no call for that. If its library still has the symbol of its factory, as in the
    published wheels, uninstall() registers that factory again and returns "stock". Otherwise it returns
    "none", and with_stack=True records no Python until the process ends. Combined tracebacks are
    gathered by torch's own unwinder in both cases, and existing ones can still be symbolized.
    Memory snapshots on demand are restored in the same way as the tracer.
    """
    global _mode, _no_tracebacks
    with _lock:
        if _mode is None:
            return "stock"
        from . import _export, _observer, _shim, _stock_symbols
        from ._environment import needed_torch

        torch = needed_torch()
        shim = _shim.load(torch)
        distance = _stock_symbols.distance(torch, _stock_symbols.TRACER)
        shim.uninstall(distance)
        _set_memory_factory(torch, shim, False)
        shim.uninstall_unwinder()
        _no_tracebacks = "kpytrace is not installed in torch"
        _set_native(False)  # its functions are on top of those of _export
        _export.uninstall(torch)
        _observer.stop_serving()
        _mode = None
        return "stock" if distance else "none"
