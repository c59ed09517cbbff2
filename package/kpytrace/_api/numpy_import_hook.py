"""Notices that numpy is imported while memory is recorded. The plugin looks for numpy only in memory_start(), because it
must not call into Python while Python allocates."""

from __future__ import annotations

import sys
from _weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .memory import Memory

# Its second module, before 2.0 and since: when that is there, the first one, which has the allocator, is whole.
MODULES = ("numpy._core.umath", "numpy.core.umath")


def _is_there() -> bool:
    return any(name in sys.modules for name in MODULES)


class Watch:
    """Between start() and stop(), or until numpy is there, a finder of modules that finds none: numpy imports
    dozens of modules behind that one, and each is asked of it. It does not keep the recording."""

    def __init__(self, recording: Memory) -> None:
        self._recording = ref(recording)

    def start(self) -> None:
        if not _is_there():
            sys.meta_path.insert(0, self)  # type: ignore[arg-type]

    def stop(self) -> None:
        try:
            sys.meta_path.remove(self)  # type: ignore[arg-type]
        except ValueError:  # numpy was there, or another thread's import has seen it at the same time
            pass

    def invalidate_caches(self) -> None:
        """Part of a finder's interface. There are no caches."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        recording = self._recording()
        if recording is not None and not _is_there():
            return None
        try:
            if recording is not None:
                recording._look()
        except RuntimeError:  # the recording is being exported: at the next import
            return None
        return self._leave(name, path, target)

    def _leave(self, name: str, path: Any, target: Any) -> Any:
        """Removes this finder, and asks the next one. importlib would skip that one: it iterates over the list
        itself, whose items move up by one here."""
        finders: list[Any] = sys.meta_path
        try:
            place = finders.index(self)
        except ValueError:  # another thread's import was first
            return None
        self.stop()
        following = getattr(finders[place], "find_spec", None) if place < len(finders) else None
        return following(name, path, target) if following else None
