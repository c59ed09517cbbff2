"""Compiles the shim, and the library beside it that listens to torch's CUDA allocator. All sources of the shim are
one unit, since most of the time goes into torch's headers."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from ._environment import python_headers, torch_folder
from ._types import TorchHostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pathlib
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Callable, Optional

DEFINITIONS = ("-DUSE_KINETO", "-DFMT_HEADER_ONLY=1", "-DNDEBUG")  # those that torch itself is built with
# The code that runs for each operator is kept small, since between two operators it leaves the processor's caches:
# calls without the PLT, and loops over dimensions without vectorization.
LITTLE_CODE = ("-fno-plt", "-fno-semantic-interposition", "-Wl,-Bsymbolic-functions", "-fno-tree-vectorize")
PROGRESS_SECONDS = 1.0


class Unit:
    """The sources of one library: those below FOLDER except those below WITHOUT, and the headers and libraries
    that only this unit needs."""

    def __init__(self, name: str, title: str, folder: str, without: Optional[str] = None,
                 headers: Callable[[ModuleType], list[str]] = lambda torch: [],
                 libraries: Sequence[str] = ()) -> None:
        self.name, self.title, self.folder, self.without = name, title, folder, without
        self.headers, self.libraries = headers, libraries

    def sources(self) -> list[str]:
        """Returns names relative to source_folder()."""
        root = source_folder()
        found = [path for path in (root / self.folder).rglob("*.cc")
                 if self.without is None or root / self.without not in path.parents]
        return sorted(path.relative_to(root).as_posix() for path in found)


SHIM_FOLDER = "hosts/torch"
CUDA_FOLDER = "hosts/torch/memory/cuda"
SHIM = Unit("shim", "the shim", SHIM_FOLDER, without=CUDA_FOLDER)


def source_folder() -> pathlib.Path:
    """Returns the root of the tree that the shim's sources include from. It has abi/ and hosts/torch/."""
    import pathlib

    from .._api.native import installed_file

    return pathlib.Path(installed_file("torch/src", "the source of the shim for torch"))


def sources() -> list[pathlib.Path]:
    """Returns all files that are compiled, including the headers of the ABI."""
    root = source_folder()
    found = [path for path in (root / SHIM_FOLDER).rglob("*.*") if path.suffix in (".cc", ".h")]
    return sorted([*found, *(root / "abi").glob("*.h")])


def cxx_runtime() -> list[str]:
    """Returns the path of this process's C++ library, to which the shim is linked. A compiler that links its own
    library statically would make a second copy, and a stream of one copy does not work with the other."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            paths = [line[line.index("/"):-1] for line in maps if "/libstdc++.so." in line]
    except OSError:
        paths = []
    return [path for path in paths[:1] if os.path.exists(path)]


def command(torch: ModuleType, compiler: str, source: str, output: str,
            unit: Unit = SHIM) -> list[str]:
    torch_root = torch_folder(torch)
    include = torch_root / "include"
    system = [include, include / "torch/csrc/api/include", include / "kineto", python_headers(),
              *unit.headers(torch)]
    return [compiler, "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread",
            *LITTLE_CODE, *DEFINITIONS, f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
            *(part for folder in system for part in ("-isystem", str(folder))),
            f"-I{source_folder()}", source, "-o", output, *cxx_runtime(),
            f"-L{torch_root / 'lib'}", *unit.libraries, "-ltorch_python", "-ltorch_cpu", "-lc10"]


def run_with_progress(arguments: list[str], what: str, environment: Optional[dict[str, str]] = None,
                      limit_seconds: float = float("inf")) -> tuple[Optional[int], str]:
    """Runs a program, with a line on stderr that shows how long it has taken. Returns its exit status, or None if
    it was killed after LIMIT_SECONDS, and its output."""
    began = time.monotonic()
    status: Optional[int] = None
    moving = sys.stderr is not None and sys.stderr.isatty()
    with tempfile.TemporaryFile("w+") as log:
        if not moving:
            print(f"kpytrace: {what} ...", file=sys.stderr, flush=True)
        process = subprocess.Popen(arguments, stdout=log, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, env=environment)
        while True:
            try:
                status = process.wait(PROGRESS_SECONDS)
                break
            except subprocess.TimeoutExpired:
                seconds = time.monotonic() - began
                if seconds >= limit_seconds:
                    process.kill()
                    process.wait()
                    break
                if moving:
                    print(f"\rkpytrace: {what} ... {seconds:.0f} s", end="", file=sys.stderr,
                          flush=True)
            except BaseException:
                process.kill()
                process.wait()
                raise
        log.seek(0)
        text = log.read()
    print(f"{chr(13) if moving else ''}kpytrace: {what}: "
          f"{'done' if status == 0 else 'failed'} after {time.monotonic() - began:.0f} s",
          file=sys.stderr, flush=True)
    return status, text


def _errors(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line.lower()]
    return "\n".join((lines or text.splitlines())[:10])


def compile_unit(torch: ModuleType, compiler: str, path: pathlib.Path, unit: Unit) -> None:
    """Compiles UNIT to PATH, which appears when it is complete."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        source, output = os.path.join(folder, "unit.cc"), os.path.join(folder, "unit.so")
        with open(source, "w") as file:
            file.writelines(f'#include "{name}"\n' for name in unit.sources())
        status, text = run_with_progress(
            command(torch, compiler, source, output, unit),
            f"compiling {unit.title} for torch {torch.__version__}, once")
        if status:
            raise TorchHostError(f"{unit.title} can't be compiled for torch {torch.__version__} with "
                                 f"{compiler}; torch's own tracer is unchanged. Please report "
                                 f"this with the compiler's output:\n{_errors(text)}")
        os.replace(output, path)
