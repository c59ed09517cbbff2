"""Finds the shim in the cache or compiles it into the cache, and loads it.

A shim fits one torch, one Python and one version of kpytrace, which name its folder in the cache. The compiler is
part of the file's name, so that without a compiler any file of that folder can be used. A file appears complete,
by a rename. A process that compiles or tests a unit holds its lock, and other processes wait for it.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import sys
import sysconfig
from contextlib import contextmanager, nullcontext

from .._api.options import from_environment
from .._api.version import package_version
from . import _compile, _results, _self_test
from ._environment import compiler_version, find_compiler, needed_torch, no_compiler
from ._types import TorchHostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any, Optional

NAME = "kpytrace.torch._shim_module"
_loaded: Any = None


def cache_folder() -> pathlib.Path:
    own = from_environment("KPYTRACE_TORCH_CACHE")
    if own:
        return pathlib.Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base, "kpytrace", "torch")


def _digest(parts: list[bytes]) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def shim_folder(torch: ModuleType) -> pathlib.Path:
    """Returns the folder of the shims for this torch, this Python and these sources."""
    sources = _compile.sources()
    parts = [package_version().encode(), str(getattr(torch.version, "git_version", "")).encode()]
    parts += [path.name.encode() + b"\0" + path.read_bytes() for path in sources]
    tag = sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag
    return cache_folder() / f"torch-{torch.__version__}-{tag}-{_digest(parts)}"


def _path(folder: pathlib.Path, unit: _compile.Unit, compiler: str) -> pathlib.Path:
    return folder / f"{unit.name}-{_digest([compiler_version(compiler).encode()])}.so"


def find(torch: ModuleType, compiler: Optional[str],
         unit: _compile.Unit = _compile.SHIM) -> Optional[pathlib.Path]:
    """Returns the shim of this compiler, or without a compiler any that fits. Returns None if there is none."""
    folder = shim_folder(torch)
    if compiler is None:
        return min(folder.glob(f"{unit.name}-*.so"), default=None)
    path = _path(folder, unit, compiler)
    return path if path.exists() else None


@contextmanager
def _locked(folder: pathlib.Path, unit: _compile.Unit, what: str) -> Iterator[None]:
    """Holds the lock of one unit. The self-test of the shim runs under the shim's lock, and its process may compile
    the part for CUDA, so units must not share a lock."""
    import fcntl

    with open(folder / f"{unit.name}.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"kpytrace: another process is {what} {unit.title} for torch: waiting for it",
                  file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(torch: ModuleType, again: bool = False,
          unit: _compile.Unit = _compile.SHIM) -> pathlib.Path:
    """Returns the path of the shim. Compiles it if it is not in the cache, and tests it if kpytrace was not tested
    with this torch."""
    path = _compiled(torch, again, unit)
    if unit is not _compile.SHIM or _self_test.is_tested(torch.__version__) or _self_test.passed(path):
        return path
    # A read-only cache has no lock, and stores no result.
    with _locked(path.parent, unit, "testing") if os.access(path.parent, os.W_OK) else nullcontext():
        if not _self_test.passed(path):  # the process that held the lock may have tested it
            _self_test.run(torch, path)
    return path


def _compiled(torch: ModuleType, again: bool, unit: _compile.Unit) -> pathlib.Path:
    compiler = find_compiler()
    path = None if again else find(torch, compiler, unit)
    if path:
        return path
    folder = shim_folder(torch)
    if compiler is None:
        others = sorted({other.name.split("-")[1] for other in cache_folder().glob("torch-*")
                         if other != folder})
        raise no_compiler(torch, str(cache_folder()), [f"torch {name}" for name in others])
    path = _path(folder, unit, compiler)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder, unit, "compiling"):
            if again or not path.exists():  # another process that held the lock may have compiled it
                _self_test.result_path(path).unlink(missing_ok=True)
                _compile.compile_unit(torch, compiler, path, unit)
    except OSError as error:
        raise TorchHostError(f"the shim for torch can't be written to {folder} ({error}): set "
                             f"KPYTRACE_TORCH_CACHE to a folder that can be written") from error
    return path


def load(torch: Optional[ModuleType] = None) -> Any:
    """Returns the shim as a module, which is the same one until the process ends."""
    if _loaded is None:
        torch = torch or needed_torch()
        load_from(str(build(torch)), torch)
    return _loaded


def load_from(path: str, torch: ModuleType) -> None:
    """Loads the shim at PATH, without a self-test."""
    global _loaded
    import importlib.machinery
    import importlib.util

    loader = importlib.machinery.ExtensionFileLoader(NAME, path)
    spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise TorchHostError(f"the shim {path} can't be loaded ({error}): run `python -m "
                             f"kpytrace.torch build` to compile it again") from error
    _loaded = module
    _results.end_at_exit(torch, module)
