"""A context manager as a decorator: of functions, coroutines and generators alike."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200  # co_flags; inspect takes 10 ms


def decorate(function: Function, manager: Callable[[], Any]) -> Function:
    """A function that runs `function` inside of what `manager` makes, anew for each call."""
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if not callable(function):
        raise TypeError(f"a function is needed, not {function!r}")
    if flags & _ASYNC_GENERATOR:
        raise TypeError("an asynchronous generator can't be decorated: put a with into it")
    if flags & _COROUTINE:
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            with manager():
                return await function(*args, **kwargs)
    elif flags & _GENERATOR:
        def wrapper(*args: Any, **kwargs: Any) -> Any:  # type: ignore[misc]
            with manager():
                return (yield from function(*args, **kwargs))
    else:
        def wrapper(*args: Any, **kwargs: Any) -> Any:  # type: ignore[misc]
            with manager():
                return function(*args, **kwargs)
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__dict__"):
        if hasattr(function, name):
            setattr(wrapper, name, getattr(function, name))
    wrapper.__wrapped__ = function  # type: ignore[attr-defined]
    return wrapper  # type: ignore[return-value]
