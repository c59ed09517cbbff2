"""The modes of kpytrace.torch.install(), and the error that it raises."""

from __future__ import annotations

MODES = ("all", "full", "fast")


class TorchHostError(RuntimeError):
    """kpytrace can't serve this torch; the text says why, and what to do. torch's own tracer is as it
    was."""

    __module__ = "kpytrace.torch"  # from where programs import it
