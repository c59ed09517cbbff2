"""Records tensors in CUDA's memory with a library beside the shim, which listens to torch's CUDA allocator. It is
compiled only if torch is a CUDA build and sees a device. If it can't be compiled, one warning gives the reason,
and tensors in the processor's memory are still recorded."""

from __future__ import annotations

import os
import warnings

from . import _compile, _shim
from ._types import TorchHostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

# Headers of a whole toolkit. torch's wheels bring the first without the second, which the first includes.
HEADERS = ("cuda_runtime_api.h", "crt/host_config.h")


def headers(torch: ModuleType) -> list[str]:
    """Returns the folder of CUDA's headers if its toolkit is installed, or else the folder of our stub headers."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    for home in filter(None, homes):
        folder = os.path.join(home, "include")
        if all(os.path.exists(os.path.join(folder, name)) for name in HEADERS):
            return [folder]
    return [str(_compile.source_folder() / _compile.CUDA_FOLDER / "stub_headers")]


UNIT = _compile.Unit("cuda", "the shim's part for CUDA", _compile.CUDA_FOLDER, headers=headers,
                     libraries=["-lc10_cuda"])


def is_served(torch: ModuleType) -> bool:
    """Whether there may be CUDA tensors. Does not initialise CUDA, since the program may fork later."""
    return bool(torch.version.cuda and torch.cuda.device_count())


_attached = False


def attach(torch: ModuleType, shim: Any) -> None:
    """Records CUDA tensors with all others, at once or when CUDA is initialised."""
    global _attached
    if _attached or not is_served(torch):
        return
    _attached = True
    try:
        library = str(_shim.build(torch, unit=UNIT))
    except TorchHostError as error:
        _warn(str(error))
        return

    def initialised() -> None:
        why = shim.attach_cuda(library)
        if why:
            _warn(why)
    torch.cuda._lazy_call(initialised)


def _warn(why: str) -> None:
    warnings.warn(f"kpytrace: CUDA tensors are not recorded: {why}", RuntimeWarning, stacklevel=2)
