"""What the .pth file calls when Python starts and KPYTRACE or KPYTRACE_TORCH is set."""

from __future__ import annotations

import os


def start() -> None:
    if os.environ.get("KPYTRACE_TORCH"):
        from .torch import _auto as torch_auto

        torch_auto.start()
    if os.environ.get("KPYTRACE"):
        from . import _auto

        _auto.start()
