"""Installs kpytrace in an unchanged program: KPYTRACE_TORCH=1 installs it into torch when the program imports
torch.

_startup calls start() when Python starts. KPYTRACE_TORCH may also be a mode.
"""

from __future__ import annotations

import os

from ._import_hook import AfterImport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

VARIABLE = "KPYTRACE_TORCH"
_OFF = ("", "0", "false", "no", "off")
_ON = ("1", "true", "yes", "on")


def _is_on(suffix: str) -> bool:
    return os.environ.get(VARIABLE + suffix, "1").lower() not in _OFF


def _execution_trace() -> Union[bool, str]:
    wanted = os.environ.get(VARIABLE + "_EXECUTION_TRACE", "").lower()
    return wanted in _ON if wanted in (*_OFF, *_ON) else wanted


def _install() -> None:
    """Installs kpytrace. The program continues after any error here."""
    wanted = os.environ.get(VARIABLE, "").lower()
    try:
        from kpytrace.torch import install

        options = {"threads": _is_on("_THREADS"), "kernel_stacks": _is_on("_KERNEL_STACKS"),
                   "execution_trace": _execution_trace()}
        if wanted in _ON:
            install(**options)
        else:
            install(wanted, **options)
    except Exception as error:
        from kpytrace._api.summary import print_message

        print_message(f"kpytrace: {VARIABLE} is set, but torch keeps its own tracer: {error}")


def start() -> None:
    """Is called by _startup."""
    if os.environ.get(VARIABLE, "").lower() in _OFF:
        return
    AfterImport(_install).start()
