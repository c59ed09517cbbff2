"""Calls a function when the program has imported torch. A finder in front of all others waits for the import, and changes
nothing in a program that does not import torch."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Optional


class AfterImport:
    """Finds torch by the other finders, and removes itself when torch is imported. Programs also search for torch
    without importing it; they receive torch's own spec and loader, with exec_module replaced."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._is_inside = False

    def start(self) -> None:
        """Waits for the import, or calls the function now if torch is imported already."""
        if "torch" in sys.modules:
            self._call()
        else:
            sys.meta_path.insert(0, self)  # type: ignore[arg-type]

    def stop(self) -> None:
        """Waits no longer. The function is not called any more."""
        self._call = lambda: None
        if self in sys.meta_path:
            sys.meta_path.remove(self)  # type: ignore[arg-type]

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
            self._call_after(spec.loader)
        return spec

    def _call_after(self, loader: Any) -> None:
        execute = loader.exec_module
        is_plain = "exec_module" not in vars(loader)  # no other AfterImport waits for this import

        def exec_module(module: ModuleType) -> None:
            if is_plain:
                del loader.exec_module
            else:
                loader.exec_module = execute
            execute(module)  # if it fails, the program may try again
            if self in sys.meta_path:
                sys.meta_path.remove(self)  # type: ignore[arg-type]
            self._call()

        loader.exec_module = exec_module
