"""Installs kpytrace in an unchanged program: KPYTRACE_TORCH=1 installs it into torch when the program imports
torch.

_startup calls start() when Python starts. A finder in front of all others waits for `import torch`, and changes
nothing in a program that does not import it. KPYTRACE_TORCH may also be a mode.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Optional, Union

VARIABLE = "KPYTRACE_TORCH"
_OFF = ("", "0", "false", "no", "off")
_ON = ("1", "true", "yes", "on")


class _Finder:
    """Finds torch by the other finders, and removes itself when torch is imported. Programs also search for torch
    without importing it; they receive torch's own spec and loader, with exec_module replaced."""

    def __init__(self) -> None:
        self._is_inside = False

    def invalidate_caches(self) -> None:
        """Part of a finder's interface. There are no caches."""

    def find_spec(self, name: str, path: Optional[Sequence[str]] = None,
                  target: Optional[ModuleType] = None) -> Optional[ModuleSpec]:
        if name != "torch" or self._is_inside:
            return None
        import importlib.util

        self._is_inside = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._is_inside = False
        if spec is not None and spec.loader is not None:
            self._install_after(spec.loader)
        return spec

    def _install_after(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            if self in sys.meta_path:
                sys.meta_path.remove(self)  # type: ignore[arg-type]
            execute(module)
            _install()

        loader.exec_module = exec_module


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
    if "torch" in sys.modules:
        _install()
    else:
        sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
