"""The self-test of a shim. Before a shim is used on a torch that kpytrace was not tested with, the self-test
profiles a small model in a separate process. Compiling does not prove that the shim reads and writes torch's
objects correctly.

The result is a file beside the shim, so that the test runs once. A shim that was compiled again is tested again.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import sys

from ._compile import run_with_progress
from ._types import TorchHostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

# Releases on which the whole test suite runs. Builds between releases (2.13.0a0) do not count.
TESTED = ("2.13",)
PASSED = "passed"
LIMIT_SECONDS = 300.0
_NOT_FOR_THE_CHILD = re.compile("KPYTRACE|KINETO_USE_DAEMON|ENABLE_PYTORCH_EXECUTION_TRACE")


def is_tested(version: str) -> bool:
    """Whether VERSION, in the form of torch.__version__, is of a release in TESTED."""
    release = re.fullmatch(r"(\d+\.\d+)\.\d+(\+.*)?", version)
    return release is not None and release[1] in TESTED


def result_path(shim: pathlib.Path) -> pathlib.Path:
    return shim.with_suffix(".tested")


def passed(shim: pathlib.Path) -> bool:
    """Whether SHIM has already passed. Raises TorchHostError if it has failed."""
    try:
        result = result_path(shim).read_text("utf-8")
    except OSError:
        return False
    if result != PASSED:
        raise _refusal(result)
    return True


def run(torch: ModuleType, shim: pathlib.Path) -> None:
    """Tests SHIM, and stores the result. Raises TorchHostError."""
    result = _run(torch, shim)
    beside = f"{result_path(shim)}.{os.getpid()}.tmp"
    try:
        pathlib.Path(beside).write_text(result, "utf-8")
        os.replace(beside, result_path(shim))
    except OSError:
        pass  # the folder can't be written to, so the next process tests again
    if result != PASSED:
        raise _refusal(result)


def _run(torch: ModuleType, shim: pathlib.Path) -> str:
    """Returns PASSED, or what went wrong."""
    if not os.path.basename(os.path.realpath(sys.executable or "")).startswith("python"):
        raise TorchHostError(f"the shim for torch {torch.__version__} must be tested before its first use, and "
                             f"sys.executable ({sys.executable!r}) is not a Python that can run the test: run "
                             f"`python -m kpytrace.torch build` with the Python of this environment")
    environment = {name: value for name, value in os.environ.items()
                   if not _NOT_FOR_THE_CHILD.match(name)}
    program = pathlib.Path(__file__).with_name("_self_test_program.py")
    status, text = run_with_progress(
        [sys.executable, "-W", "ignore", str(program), str(shim), json.dumps(sys.path)],
        f"testing the shim for torch {torch.__version__}, once", environment, LIMIT_SECONDS)
    last = (text.strip().splitlines() or [""])[-1]
    if status is None:
        return f"it did not end in {LIMIT_SECONDS:.0f} seconds"
    if status < 0:
        return f"it was killed by signal {-status} ({signal.strsignal(-status)})"
    if status or last != PASSED:
        return f"exit status {status}: {last}"
    return PASSED


def _refusal(result: str) -> TorchHostError:
    return TorchHostError(
        f"the shim for this torch failed its self-test ({result}), and is not used; torch's own tracer is unchanged. "
        f"kpytrace is tested with torch {', '.join(TESTED)}: install that, or report this. `python -m "
        f"kpytrace.torch build --again` compiles and tests the shim again")
