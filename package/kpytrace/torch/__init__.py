"""kpytrace as the Python tracer of PyTorch's profiler, swapped in at run time.

    >>> import kpytrace.torch
    >>> kpytrace.torch.install()

and from then on the ordinary torch.profiler.profile(with_stack=True) records Python through kpytrace.
`python -m kpytrace.torch check` says whether this environment can be served, and `build` compiles the
shim ahead of its first use. docs/torch.md has the rest.

Importing this imports no torch.
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
    from ._observer import ExecutionTraceObserver

__all__ = ["ExecutionTraceObserver", "TorchHostError", "install", "installed", "memory",
           "memory_by_module", "tracebacks", "uninstall"]

# Those whose combined tracebacks were compared with ours. What an unwinder is differs between releases.
TRACEBACKS_OF = ((2, 11), (2, 13))

_lock = RLock()
_mode: Optional[str] = None
_has_door = False
_no_tracebacks: Optional[str] = "kpytrace is not installed in torch"


def __getattr__(name: str) -> Any:
    if name == "ExecutionTraceObserver":  # wants torch
        from ._observer import ExecutionTraceObserver

        return ExecutionTraceObserver
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def install(mode: str = "full", threads: bool = True, tracebacks: bool = True,
            memory: bool = True, execution_trace: Union[bool, str] = False,
            kernel_stacks: bool = True) -> None:
    """Makes kpytrace the Python tracer of all torch profilers that start from now on.

    mode     what torch gets when a profiler stops:
             "all"   every call, for tools that walk prof.events();
             "full"  the calls that enclose an operator or an annotation: all that torch's own
                     analyses need; the rest is written with the trace;
             "fast"  none; they are written with the trace.
    threads  record threads that start while the profiler runs too; torch's own tracer does not
    tracebacks  gather the Python frames of torch's combined tracebacks too (memory snapshots, the
             flight recorder, torch.utils._traceback), where tracebacks() does not say why not
    memory   write the memory snapshots that Kineto is asked for on demand, of Python and of tensors
    execution_trace  True: profilers that ENABLE_PYTORCH_EXECUTION_TRACE gives an observer get a
             kpytrace.torch.ExecutionTraceObserver; "all": torch.profiler.ExecutionTraceObserver is that
             class too, for programs that take it from there after this call
    kernel_stacks  exported traces have, with each kernel, copy and set of memory of a GPU, the Python
             stack of the call that launched it

    The first time, the shim is compiled for the installed torch, which takes a while. Again with
    other values is fine, and holds for the next profiler. Raises TorchHostError.
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
        from .. import plugin_path
        from . import _export, _kept, _observer, _results

        shim.install(str(plugin_path()), MODES.index(mode), bool(threads), _tool_id(),
                     _prefixes(), [torch.nn.Module.__call__.__code__],
                     [torch.optim.Optimizer._optimizer_step_code.__code__], _kept.kept_codes())
        _results.keep_recordings(torch, shim)
        _export.install(torch, kernel_stacks)
        _no_tracebacks = _install_unwinder(torch, shim, tracebacks)
        _set_memory_door(torch, shim, memory)
        if execution_trace:
            _observer.serve(torch, execution_trace == "all")
        else:
            _observer.stop_serving()
        _mode = mode


def installed() -> Optional[str]:
    """The mode that is installed, or None."""
    return _mode


def tracebacks() -> Optional[str]:
    """None: torch's combined tracebacks get their Python frames from kpytrace. Else why they do not."""
    return _no_tracebacks


def _install_unwinder(torch: ModuleType, shim: Any, wanted: bool) -> Optional[str]:
    """None, or why torch's own unwinder goes on."""
    from .. import plugin_path

    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if not wanted:
        why = "install() was called with tracebacks=False"
    elif version not in TRACEBACKS_OF:
        why = (f"torch {torch.__version__} has not been tried: kpytrace knows the tracebacks of "
               + ", ".join(f"{major}.{minor}" for major, minor in TRACEBACKS_OF))
    else:
        reason: Optional[str] = shim.install_unwinder(str(plugin_path()))
        return reason
    shim.uninstall_unwinder()
    return why


def _set_memory_door(torch: ModuleType, shim: Any, wanted: bool) -> None:
    """Where torch's own can't be found again, snapshots on demand are nobody's afterwards."""
    global _has_door
    from .. import plugin_path
    from . import _cuda, _stock_symbols

    if wanted:
        _cuda.attach(torch, shim)
        shim.install_memory_door(str(plugin_path()))
    elif _has_door:
        shim.uninstall_memory_door(_stock_symbols.distance(torch, _stock_symbols.MEMORY_TRACER))
    _has_door = wanted


def memory(path: Optional[Path] = None, *, sample_bytes: Union[int, str] = 0, max_entries: int = 0,
           max_frames: int = 0, modules: bool = True) -> Memory:
    """Records what kpytrace.memory() does, and with it torch's tensors, in the processor's memory and in
    CUDA's, in every thread. install() need not have been called. Raises TorchHostError.

    modules  tell of each tensor in which module's forward it was made: memory_by_module() adds them up

    >>> with kpytrace.torch.memory("snapshot.pickle"):
    ...     model(data)
    """
    from ._memory import TensorMemory

    return TensorMemory(path, modules, sample_bytes, max_entries, max_frames)


def memory_by_module(path: Path) -> list[tuple[str, int, int]]:
    """What modules hold, by a snapshot (.pickle) of memory(): rows of the path of a module, as
    Net.encoder.fc1, the bytes of its tensors that were alive at the end, and the most that were at any
    time. A tensor is the innermost module's in whose forward it was made; those that were made in none
    have the path "". The largest peak comes first."""
    from ._memory import by_module

    return by_module(path)


def uninstall() -> str:
    """Gives the profilers that start from now on their own tracer back.

    torch has no call for that. Where its library still has the symbol of its factory, as the
    published wheels do, that is registered again, and the answer is "stock". Otherwise the answer is
    "none": with_stack=True then records no Python until the process ends. Combined tracebacks are
    gathered by torch's own unwinder in any case, and those that are there can still be symbolized.
    What holds for the tracer holds for memory snapshots on demand.
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
        _set_memory_door(torch, shim, False)
        shim.uninstall_unwinder()
        _no_tracebacks = "kpytrace is not installed in torch"
        _export.uninstall(torch)
        _observer.stop_serving()
        _mode = None
        return "stock" if distance else "none"


def _tool_id() -> int:
    """Of sys.monitoring. torch's tracer is tool 2 on these versions, and visible there."""
    return 2 if (3, 12, 0) <= sys.version_info[:3] < (3, 12, 5) else 0


_prefix_list: Any = None


def _prefixes() -> list[str]:
    """What file names are trimmed by, computed once per process as torch does."""
    global _prefix_list
    if _prefix_list is None:
        from torch.profiler.python_tracer import _prefix_regex

        _prefix_list = _prefix_regex()
    return _prefix_list
