"""Captures the current stack as a few numbers, which can be symbolized later.

    >>> from kpytrace import traceback
    >>> where = traceback.gather()          # a fraction of a microsecond
    >>> print(where)

A Traceback keeps no frame, no code and no local variable alive, and can be symbolized after the code is gone, so a
program can store many of them. symbolize() symbolizes many at once. To find out where objects were
made:

    >>> with traceback.origins(Connection) as made:
    ...     work()
    >>> print(made.of(leaked))

Every function may be called from any thread. docs/traceback.md describes the rest.
"""

from __future__ import annotations

import os
from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import traceback
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any, Optional

    Generated = Callable[[str, int], Optional[Iterable[dict[str, Any]]]]

try:
    from . import _standalone
except ImportError as error:
    raise ImportError(f"the C part of this kpytrace ({os.path.dirname(__file__)}) can't be loaded: "
                      f"{error}. In a checkout run `pip install .`") from None

__all__ = ["Traceback", "format", "free_dead", "gather", "generated", "no_longer_generated",
           "origins", "stats", "symbolize", "symbolize_json"]

Traceback = _standalone.Traceback
gather = _standalone.gather
symbolize = _standalone.symbolize
symbolize_json = _standalone.symbolize_json
free_dead = _standalone.free_dead

_lock = RLock()


def _forget_in_child() -> None:
    global _lock
    _lock = RLock()  # another thread of the parent may have held it at the fork


os.register_at_fork(after_in_child=_forget_in_child)


def stats() -> dict[str, int]:
    """Returns the memory use of all tracebacks of the process: stacks, the dead ones among them that are not yet
    freed, code locations, bytes_held."""
    counters: dict[str, int] = _standalone.traceback_stats()
    return counters


# --- formatting ------------------------------------------------------------------------------------

def _frame_summary(make: Any, frame: dict[str, Any], positions: bool) -> traceback.FrameSummary:
    """The source is read when it is displayed. A frame of a library has none."""
    line = None if frame["kind"] == "python" or frame["kind"] == "generated" else ""
    more = {}
    if positions and frame["column"] is not None:
        more = {"end_lineno": frame["end_line"], "colno": frame["column"],
                "end_colno": frame["end_column"]}
    summary: traceback.FrameSummary = make(frame["filename"], frame["line"], frame["name"],
                                           lookup_line=False, line=line, **more)
    return summary


def _summary(where: Any) -> traceback.StackSummary:
    import sys
    from traceback import FrameSummary, StackSummary

    positions = sys.version_info >= (3, 11)
    return StackSummary(_frame_summary(FrameSummary, frame, positions)
                        for frame in reversed(where.symbolize()))


def format(where: Any) -> list[str]:
    """Returns a string for each frame, outermost first, with its source, like traceback.format_list."""
    if not isinstance(where, Traceback):
        raise TypeError(f"expected a Traceback of kpytrace, not {type(where)}")
    return _summary(where).format()


def _string(where: Any) -> str:
    return "".join(format(where))


# --- generated code --------------------------------------------------------------------------------

_generated: tuple[Generated, ...] = ()


def generated(function: Generated) -> Generated:
    """Registers FUNCTION(filename, line), which maps a line of generated code to its origin. It returns a list of
    {"name", "filename", "line"}, which are added after that frame, or None if it did not generate the line. Also a
    decorator. The function that was registered last is called first. Code that torch.compile generates is mapped
    without it."""
    global _generated
    if not callable(function):
        raise TypeError(f"expected a function, not {type(function)}")
    with _lock:
        _generated += (function,)
        _standalone.set_generated(_generated)
    return function


def no_longer_generated(function: Generated) -> None:
    """Unregisters FUNCTION."""
    global _generated
    with _lock:
        _generated = tuple(other for other in _generated if other is not function)
        _standalone.set_generated(_generated)


# --- where objects were made -----------------------------------------------------------------------

# By id: (a weak reference to the object, the Traceback of where it was made). The end of the object removes its
# entry.
_origins: dict[int, tuple[Any, Any]] = {}


def _note(made: Any, where: Any) -> None:
    """Stores where an object was made. The first call counts, which is that of the outermost __init__."""
    import weakref

    key = id(made)
    known = _origins.get(key)
    if known is not None and known[0]() is made:
        return

    def forget(reference: Any) -> None:
        entry = _origins.get(key)
        if entry is not None and entry[0] is reference:
            del _origins[key]
    _origins[key] = weakref.ref(made, forget), where


def _takes_no_arguments(cls: Any, original: Any) -> bool:
    """Whether __init__ must be called without arguments. object.__init__ accepts arguments if the class has its
    own __new__, but not from a wrapper."""
    return original is object.__init__ and cls.__new__ is not object.__new__


class origins:
    """Records where objects of these classes, and of classes derived from them, are made while the block
    runs. of(object) returns that, also after the block. No object is kept alive.

    An object that is made without its __init__, as unpickling may do, is not recorded.
    """

    def __init__(self, *classes: type) -> None:
        for cls in classes:
            if not isinstance(cls, type):
                raise TypeError(f"expected a class, not {cls!r}")
            if not cls.__weakrefoffset__:
                raise TypeError(f"objects of {cls!r} can't be watched: they have no weak references")
        self._classes = classes
        self._running = False
        self._wrapped: list[tuple[type, Any, Any]] = []

    def _wrap(self, cls: Any) -> None:
        original = cls.__init__
        own = vars(cls).get("__init__")
        watched = self

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            if watched._running:
                _note(self, gather(skip=1))
            # If the class has no __init__ of its own, the next one in the MRO of the object's class is called.
            target = original if own is not None else super(cls, type(self)).__init__
            if not _takes_no_arguments(type(self), target):
                target(self, *args, **kwargs)

        for name in ("__doc__", "__module__", "__qualname__", "__annotations__"):
            if hasattr(original, name):
                setattr(__init__, name, getattr(original, name))
        setattr(__init__, "__wrapped__", original)
        try:
            cls.__init__ = __init__
        except TypeError as error:  # a class that is written in C
            raise TypeError(f"objects of {cls!r} can't be watched: {error}") from None
        self._wrapped.append((cls, own, __init__))

    def _unwrap(self) -> None:
        """Removes our __init__. If another library has replaced it since, ours stays below and does nothing."""
        while self._wrapped:
            cls, own, ours = self._wrapped.pop()
            if vars(cls).get("__init__") is not ours:
                continue
            if own is None:
                del cls.__init__  # type: ignore[misc]
            else:
                cls.__init__ = own  # type: ignore[misc]

    def __enter__(self) -> origins:
        gather(depth=1)  # raises now if no traceback can be gathered
        with _lock:
            if self._running:
                raise RuntimeError("this block is running already: make another one")
            try:
                for cls in self._classes:
                    self._wrap(cls)
            except BaseException:
                self._unwrap()
                raise
            self._running = True
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 where: Optional[TracebackType]) -> None:
        with _lock:
            self._running = False
            self._unwrap()

    @staticmethod
    def of(made: Any) -> Any:
        """Returns the Traceback of where the object was made, or None if that was not recorded."""
        known = _origins.get(id(made))
        return known[1] if known is not None and known[0]() is made else None
