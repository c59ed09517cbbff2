"""What the .pth file calls when Python starts and one of KPYTRACE, KPYTRACE_MEMORY and KPYTRACE_TORCH is set."""

from __future__ import annotations

import os


def start() -> None:
    if os.environ.get("KPYTRACE_TORCH"):
        from .torch import _auto as torch_auto

        torch_auto.start()
    if os.environ.get("KPYTRACE") or os.environ.get("KPYTRACE_MEMORY"):
        from . import _auto

        _auto.start()
