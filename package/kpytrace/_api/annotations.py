"""The program's own marks, spans and counters. Each running trace records them; while no trace runs they cost next
to nothing. Calls of functions in this file are not recorded, so that a mark appears in the function that makes it.
"""

from __future__ import annotations

from . import native
from . import trace as _trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Optional, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

_MARK, _BEGIN, _END, _COUNTER = 1, 2, 3, 4  # writers/annotations/notes.h


def _members(values: dict[str, Any]) -> str:
    """Returns the values as members of a JSON object, without its braces."""
    from _json import encode_basestring_ascii as quote  # json itself takes milliseconds to import

    def text(value: Any) -> str:
        if value is None:
            return "null"
        if value is True or value is False:
            return "true" if value else "false"
        if type(value) is str:
            return quote(value)
        try:
            shown = repr(value)
        except Exception as error:  # raised by the program's __repr__, or for an int with too many digits
            return quote(f"<{type(value).__name__} without a repr: {type(error).__name__}>")
        return shown if type(value) is int or (type(value) is float and value - value == 0) else quote(shown)

    return ",".join(f"{quote(key)}:{text(value)}" for key, value in values.items())


def _note(what: int, name: str, values: Optional[dict[str, Any]], value: float = 0.0,
          flow: int = 0, partners: Optional[dict[object, int]] = None) -> dict[object, int]:
    """Records a note in each running trace, or an end in each trace that has the matching beginning. Returns the
    note's number in each trace, by the trace's key."""
    numbers: dict[object, int] = {}
    if not _trace._traces.entries:
        return numbers
    text, members = name.encode("utf-8", "replace").decode(), _members(values) if values else ""
    for trace in _trace._traces.all():
        handle = trace._handle
        partner = 0 if partners is None else partners.get(trace.key, 0)
        if handle is not None and (partner or partners is None):
            number = native.standalone.note(handle, what, text, members, value, flow, partner)
            if number:
                numbers[trace.key] = number
    return numbers


def mark(name: str, /, *, flow: int = 0, **values: Any) -> None:
    """Records a mark at the current time in each running trace, with any values as its arguments.

    flow   a number: marks and spans with the same number are connected by arrows
    """
    _note(_MARK, name, values, flow=flow)


def counter(name: str, value: float, /) -> None:
    """Records a value of a counter. Viewers draw the counter's values over time."""
    _note(_COUNTER, name, None, value=float(value))


class span:
    """A span of the program in the trace, from the begin of a `with` block to its end:

    >>> with kpytrace.span("loading", files=12):
    ...     load()

    As a decorator, it records a span for each call of a function. begin() and end() serve code where a `with`
    block can't be used; they may run on different threads.
    """

    __slots__ = ("_name", "_flow", "_values", "_numbers")

    def __init__(self, name: str, /, *, flow: int = 0, **values: Any) -> None:
        self._name, self._flow, self._values = name, flow, values
        self._numbers: dict[object, int] = {}

    def begin(self) -> span:
        """Begins the span. A span that has ended may begin again."""
        self._numbers = _note(_BEGIN, self._name, self._values, flow=self._flow)
        return self

    def end(self) -> None:
        """Ends the span. Does nothing if the span has not begun."""
        numbers, self._numbers = self._numbers, {}
        if numbers:
            _note(_END, self._name, None, partners=numbers)

    def __enter__(self) -> span:
        return self.begin()

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 where: Optional[TracebackType]) -> None:
        self.end()

    def __call__(self, function: Function) -> Function:
        from .decorate import decorate

        return decorate(function, lambda: span(self._name, flow=self._flow, **self._values))
