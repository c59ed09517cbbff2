"""Checks step by step whether kpytrace works in this environment, and prints a line for each step. The first step
that fails prints what to do, and ends the check."""

from __future__ import annotations

import os
import sys

from . import _compile, _environment, _self_test, _shim
from ._types import TorchHostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any


def _python() -> str:
    from .. import plugin_path

    minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
    backend = plugin_path().parent / f"libkpytrace_cpython{minor}.so"
    if not backend.exists():
        raise TorchHostError(f"the backend for this Python is missing ({backend.name}): install "
                             f"kpytrace with this Python")
    return f"Python {sys.version.split()[0]}, {backend}"


def _torch() -> str:
    torch = _environment.needed_torch()
    return f"torch {torch.__version__} with Kineto, {_environment.torch_folder(torch)}"


def _can_be_written(path: str) -> bool:
    while path != os.path.dirname(path) and not os.path.exists(path):
        path = os.path.dirname(path)
    return os.access(path, os.W_OK)


def _compiler(torch: ModuleType) -> str:
    compiler = _environment.find_compiler()
    if _shim.find(torch, compiler):
        return f"not needed: the shim is in {_shim.shim_folder(torch)}"
    if compiler is None:
        raise _environment.no_compiler(torch, str(_shim.cache_folder()), [])
    _compile.command(torch, compiler, "", "")
    if not _can_be_written(str(_shim.shim_folder(torch))):
        raise TorchHostError(f"{_shim.shim_folder(torch)} can't be written: set KPYTRACE_TORCH_CACHE "
                             f"to a folder that can be written")
    return f"{compiler} ({_environment.compiler_version(compiler)})"


def _built(torch: ModuleType) -> str:
    path = _shim.build(torch)
    how = "a release that kpytrace is tested with" if _self_test.is_tested(torch.__version__) else \
        "which has passed its self-test"
    return f"{path}, {how}"


def _names(nodes: Any) -> Iterator[str]:
    """Yields the names of all events in a tree."""
    for node in nodes:
        yield node.name
        yield from _names(node.children)


def _works(torch: ModuleType) -> str:
    """Traces a call, and checks that the profiler's events have it."""
    from . import install, uninstall

    def traced_by_kpytrace() -> None:
        pass

    install("all")
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                    with_stack=True) as profiler:
            traced_by_kpytrace()
    finally:
        after = uninstall()
    names = list(_names(profiler.profiler.kineto_results.experimental_event_tree()))
    if not any(name.endswith(": traced_by_kpytrace") for name in names):
        raise TorchHostError("a traced call is missing in the profiler's events; please report this")
    return f"a call was traced; after uninstall() Python is traced by: {after}"


def check() -> int:
    steps = (("python", _python), ("torch", _torch),
             ("compiler", lambda: _compiler(_environment.needed_torch())),
             ("shim", lambda: _built(_environment.needed_torch())),
             ("trace", lambda: _works(_environment.needed_torch())))
    for name, step in steps:
        try:
            print(f"ok    {name}: {step()}", flush=True)
        except (TorchHostError, FileNotFoundError) as error:
            print(f"FAIL  {name}: {error}", flush=True)
            return 1
    return 0
