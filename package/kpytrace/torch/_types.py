"""The modes of kpytrace.torch.install(), and the error that it raises."""

from __future__ import annotations

MODES = ("all", "full", "fast", "native")


class TorchHostError(RuntimeError):
    """kpytrace does not work with this torch. The text gives the reason, and what to do. torch's own tracer stays
    as it was."""

    __module__ = "kpytrace.torch"  # the module from which programs import it
