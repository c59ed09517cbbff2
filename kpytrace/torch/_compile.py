"""Compiles the shim: all its sources as one unit, since most of the time goes into torch's headers."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from . import TorchHostError
from ._environment import python_headers, torch_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pathlib
    from types import ModuleType

DEFINITIONS = ("-DUSE_KINETO", "-DFMT_HEADER_ONLY=1", "-DNDEBUG")  # as torch itself is built
PROGRESS_SECONDS = 1.0


def source_folder() -> pathlib.Path:
    import pathlib

    from .. import _file

    return pathlib.Path(_file("torch/src", "the source of the shim for torch"))


def sources() -> list[pathlib.Path]:
    """All that the shim is compiled from, the headers of the ABI too."""
    from .. import include_dir

    own = source_folder()
    return sorted([*own.glob("*.cc"), *own.glob("*.h"), *include_dir().glob("*.h")],
                  key=lambda path: path.name)


def command(torch: ModuleType, compiler: str, unit: str, output: str) -> list[str]:
    from .. import include_dir

    torch_root = torch_folder(torch)
    include = torch_root / "include"
    system = [include, include / "torch/csrc/api/include", include / "kineto", python_headers()]
    return [compiler, "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread",
            *DEFINITIONS, f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
            *(part for folder in system for part in ("-isystem", str(folder))),
            f"-I{source_folder()}", f"-I{include_dir()}", unit, "-o", output,
            f"-L{torch_root / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10"]


def _run(arguments: list[str], what: str) -> tuple[int, str]:
    """Runs the compiler, with a line on stderr that tells how long it has taken."""
    began = time.monotonic()
    moving = sys.stderr is not None and sys.stderr.isatty()
    with tempfile.TemporaryFile("w+") as log:
        if not moving:
            print(f"kpytrace: {what} ...", file=sys.stderr, flush=True)
        process = subprocess.Popen(arguments, stdout=log, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL)
        while True:
            try:
                status = process.wait(PROGRESS_SECONDS)
                break
            except subprocess.TimeoutExpired:
                if moving:
                    seconds = time.monotonic() - began
                    print(f"\rkpytrace: {what} ... {seconds:.0f} s", end="", file=sys.stderr,
                          flush=True)
            except BaseException:
                process.kill()
                process.wait()
                raise
        log.seek(0)
        text = log.read()
    print(f"{chr(13) if moving else ''}kpytrace: {what}: "
          f"{'failed' if status else 'done'} after {time.monotonic() - began:.0f} s",
          file=sys.stderr, flush=True)
    return status, text


def _errors(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line.lower()]
    return "\n".join((lines or text.splitlines())[:10])


def compile_shim(torch: ModuleType, compiler: str, path: pathlib.Path) -> None:
    """Makes PATH, which appears when it is complete."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        unit, output = os.path.join(folder, "shim.cc"), os.path.join(folder, "shim.so")
        with open(unit, "w") as file:
            file.writelines(f'#include "{source.name}"\n' for source in sources()
                            if source.suffix == ".cc")
        status, text = _run(command(torch, compiler, unit, output),
                            f"compiling the shim for torch {torch.__version__}, once")
        if status:
            raise TorchHostError(f"the shim can't be compiled for torch {torch.__version__} with "
                                 f"{compiler}; torch's own tracer is as it was. Please report "
                                 f"this with the compiler's words:\n{_errors(text)}")
        os.replace(output, path)
