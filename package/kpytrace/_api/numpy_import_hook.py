"""Detects an import of numpy while memory is recorded. The plugin searches for numpy only in memory_start(),
because it must not call into Python while Python allocates."""

from __future__ import annotations

import sys
from _weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .memory import Memory

# The module that numpy imports second, before 2.0 and since. Once it is in sys.modules, the first one, which has
# the allocator, is fully initialised.
MODULES = ("numpy._core.umath", "numpy.core.umath")


def _is_there() -> bool:
    return any(name in sys.modules for name in MODULES)


class Watch:
    """A finder of modules that finds none. It is in sys.meta_path between start() and stop(), or until numpy is
    imported: numpy imports dozens of modules after umath, and importlib calls find_spec for each. It does not keep
    the recording alive."""

    def __init__(self, recording: Memory) -> None:
        self._recording = ref(recording)

    def start(self) -> None:
        if not _is_there():
            sys.meta_path.insert(0, self)  # type: ignore[arg-type]

    def stop(self) -> None:
        try:
            sys.meta_path.remove(self)  # type: ignore[arg-type]
        except ValueError:  # numpy was imported before, or an import on another thread has removed the finder
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
        except RuntimeError:  # the recording is being exported: retry at the next import
            return None
        return self._leave(name, path, target)

    def _leave(self, name: str, path: Any, target: Any) -> Any:
        """Removes this finder and calls the next one. importlib would skip the next finder, because it iterates
        over sys.meta_path itself, and the removal moves the following items by one."""
        finders: list[Any] = sys.meta_path
        try:
            place = finders.index(self)
        except ValueError:  # an import on another thread has removed it
            return None
        self.stop()
        following = getattr(finders[place], "find_spec", None) if place < len(finders) else None
        return following(name, path, target) if following else None
