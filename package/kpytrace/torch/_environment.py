"""Finds the parts of the environment that the shim needs: torch with Kineto and its headers, Python's headers, a
compiler. A function raises TorchHostError, which explains what to do, if its part is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig

from ._types import TorchHostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pathlib
    from types import ModuleType
    from typing import Optional


def needed_torch() -> ModuleType:
    try:
        import torch
    except ImportError as error:
        raise TorchHostError(f"torch can't be imported ({error}): install it, then call "
                             f"kpytrace.torch.install() again") from error
    if getattr(sys, "_is_gil_enabled", lambda: True)() is False or \
            sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise TorchHostError("this Python is free-threaded, and kpytrace.torch needs a "
                             "build with the GIL: use kpytrace.trace() here")
    import torch.autograd.profiler  # a submodule, which `import torch` imports anyway

    if not torch.autograd.kineto_available():
        raise TorchHostError(f"torch {torch.__version__} is built without Kineto, so its profiler "
                             f"can't record Python stacks: use a build with USE_KINETO=1, such as "
                             f"the published wheels, or kpytrace.trace()")
    return torch


def torch_folder(torch: ModuleType) -> pathlib.Path:
    import pathlib

    folder = pathlib.Path(torch.__file__ or "").parent
    header = folder / "include/torch/csrc/profiler/collection.h"
    if not header.exists():
        raise TorchHostError(f"the headers of torch {torch.__version__} are not installed "
                             f"({header} is missing): install torch from its wheel")
    return folder


def python_headers() -> str:
    folder = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(folder, "Python.h")):
        raise TorchHostError(f"Python's headers are not installed ({folder}/Python.h is missing): "
                             f"install the package python{sys.version_info[0]}."
                             f"{sys.version_info[1]}-dev, or run `python -m kpytrace.torch build` "
                             f"where they are, and copy its cache")
    return folder


def find_compiler() -> Optional[str]:
    """Returns the path of a C++ compiler: $CXX, or the first of the usual names. Returns None if there is none."""
    for name in filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++")):
        path = shutil.which(name)
        if path:
            return path
    return None


def compiler_version(compiler: str) -> str:
    reply = subprocess.run([compiler, "--version"], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=False)
    return reply.stdout.partition("\n")[0]


def no_compiler(torch: ModuleType, cache: str, others: list[str]) -> TorchHostError:
    found = (f" The cache has one for {', '.join(others)}, but a shim fits one torch only."
             if others else "")
    return TorchHostError(
        f"{cache} has no shim for torch {torch.__version__}, and no C++ compiler was found to make "
        f"one.{found} Install g++ (or name a compiler in CXX), or run `python -m kpytrace.torch "
        f"build` on a machine that has one and the same torch and Python, and copy its cache folder "
        f"(KPYTRACE_TORCH_CACHE) here")
