"""Where the program is, as a few numbers, and made readable later, or never.

    >>> from kpytrace import traceback
    >>> where = traceback.gather()          # a fraction of a microsecond
    >>> print(where)

A Traceback keeps no frame, no code and no local variable alive, and can be made readable when the code is
gone: store as many as you like. symbolize() makes many readable at once. To find out where objects were
made:

    >>> with traceback.origins(Connection) as made:
    ...     work()
    >>> print(made.of(leaked))

Everything here may be called from any thread. docs/traceback.md has the rest.
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
    _lock = RLock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_forget_in_child)


def stats() -> dict[str, int]:
    """What the tracebacks of the whole process take: stacks, of them dead ones that are not yet given
    back, places in code, bytes_held."""
    counters: dict[str, int] = _standalone.traceback_stats()
    return counters


# --- words for people ------------------------------------------------------------------------------

def _frame_summary(make: Any, frame: dict[str, Any], positions: bool) -> traceback.FrameSummary:
    """Its source is looked up when somebody wants to see it; a library has none."""
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
    """As traceback.format_list: a string for each frame, outermost first, with its source."""
    if not isinstance(where, Traceback):
        raise TypeError(f"this is no Traceback of kpytrace, but {type(where)}")
    return _summary(where).format()


def _string(where: Any) -> str:
    return "".join(format(where))


# --- generated code --------------------------------------------------------------------------------

_generated: tuple[Generated, ...] = ()


def generated(function: Generated) -> Generated:
    """Has FUNCTION(filename, line) tell what a line of code that it generated stands for: a list of
    {"name", "filename", "line"}, which go behind that frame, or None if it is none of its own. Also a
    decorator. The last one is asked first, and torch.compile's generated code is known anyway."""
    global _generated
    if not callable(function):
        raise TypeError(f"a function is needed, not {type(function)}")
    with _lock:
        _generated += (function,)
        _standalone.set_generated(_generated)
    return function


def no_longer_generated(function: Generated) -> None:
    """FUNCTION is not asked any more."""
    global _generated
    with _lock:
        _generated = tuple(other for other in _generated if other is not function)
        _standalone.set_generated(_generated)


# --- where objects were made -----------------------------------------------------------------------

# By id: (a weak reference to the object, where it was made). The object's end takes its entry away.
_origins: dict[int, tuple[Any, Any]] = {}


def _note(made: Any, where: Any) -> None:
    """The first time counts: that of the outermost __init__."""
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
    """object.__init__ beside a __new__ with arguments of its own takes them, but not from a wrapper."""
    return original is object.__init__ and cls.__new__ is not object.__new__


class origins:
    """Notes where objects of these classes, and of those derived from them, are made while the block
    runs. of(object) tells, also after it. No object is kept alive.

    What makes an object without its __init__, as unpickling may, is not noticed.
    """

    def __init__(self, *classes: type) -> None:
        for cls in classes:
            if not isinstance(cls, type):
                raise TypeError(f"a class is needed, not {cls!r}")
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
            # Where the class has none of its own, the next one is the object's, not the class's.
            target = original if own is not None else super(cls, type(self)).__init__
            if not _takes_no_arguments(type(self), target):
                target(self, *args, **kwargs)

        for name in ("__doc__", "__module__", "__qualname__", "__annotations__"):
            if hasattr(original, name):
                setattr(__init__, name, getattr(original, name))
        setattr(__init__, "__wrapped__", original)
        try:
            cls.__init__ = __init__
        except TypeError as error:  # one that is written in C
            raise TypeError(f"objects of {cls!r} can't be watched: {error}") from None
        self._wrapped.append((cls, own, __init__))

    def _unwrap(self) -> None:
        """What somebody else has put on top of ours stays, and ours does nothing any more."""
        while self._wrapped:
            cls, own, ours = self._wrapped.pop()
            if vars(cls).get("__init__") is not ours:
                continue
            if own is None:
                del cls.__init__  # type: ignore[misc]
            else:
                cls.__init__ = own  # type: ignore[misc]

    def __enter__(self) -> origins:
        gather(depth=1)  # where that can't be done, one wants to know now
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
        """The Traceback of where the object was made; None: nobody looked."""
        known = _origins.get(id(made))
        return known[1] if known is not None and known[0]() is made else None
