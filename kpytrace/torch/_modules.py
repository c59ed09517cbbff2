"""Which module's forward runs: torch's global hooks of modules tell the shim, thread by thread, so that a
tensor can be recorded with the innermost one."""

from __future__ import annotations

import threading
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class Modules:
    """Between start() and stop() the shim knows. Paths are those in the outermost module that is called,
    with its class in front: Net.encoder.fc1; of a module that is in none of its fields, its class."""

    def __init__(self, enter: Callable[[str], None]) -> None:
        self._enter = enter
        self._paths: dict[int, tuple[Any, str]] = {}  # id: a weak reference, and the path
        self._hooks: list[Any] = []

    def start(self) -> None:
        from torch.nn.modules.module import (register_module_forward_hook,
                                             register_module_forward_pre_hook)

        self._local = threading.local()  # who was inside at an earlier stop has been left untold
        self._hooks = [register_module_forward_pre_hook(self._begins),
                       register_module_forward_hook(self._ends, always_call=True)]

    def stop(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _stack(self) -> list[tuple[Any, str]]:
        try:
            stack: list[tuple[Any, str]] = self._local.stack
        except AttributeError:
            stack = self._local.stack = []
        return stack

    def _begins(self, module: Any, arguments: object) -> None:
        stack = self._stack()
        path = self._path(module, stack[0][0] if stack else module)
        stack.append((module, path))
        self._enter(path)

    def _ends(self, module: Any, arguments: object, result: object) -> None:
        """One whose end was not told, as its hooks raised, ends with the one around it."""
        stack = self._stack()
        if any(open_one is module for open_one, _ in stack):
            while stack.pop()[0] is not module:
                pass
        self._enter(stack[-1][1] if stack else "")

    def _known(self, module: Any) -> str:
        reference, path = self._paths.get(id(module), (None, ""))
        return path if reference is not None and reference() is module else ""

    def _path(self, module: Any, root: Any) -> str:
        path = self._known(module)
        if not path:
            for name, part in root.named_modules():
                self._keep(part, ".".join(filter(None, (type(root).__name__, name))))
            path = self._known(module) or self._keep(module, type(module).__name__)
        return path

    def _keep(self, module: Any, path: str) -> str:
        path = path.encode("utf-8", "backslashreplace").decode()  # a part's name may be no valid text
        key, paths = id(module), self._paths
        paths[key] = weakref.ref(module, lambda gone: paths.pop(key, None)), path
        return path
