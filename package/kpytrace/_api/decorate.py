"""Uses a context manager as a decorator, with the semantics of functools.wraps, for functions, methods, coroutines
and generators."""

from __future__ import annotations

import functools
from contextlib import nullcontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional, TypeVar

    from .trace import Trace

    Function = TypeVar("Function", bound=Callable[..., Any])

# Values of co_flags. inspect, which names them, takes 10 ms to import.
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200


def _flags(function: Any) -> int:
    """Returns the co_flags of the Python code that a call of `function` runs, or 0 if it runs none."""
    while isinstance(function, functools.partial):
        function = function.func
    if not hasattr(function, "__code__") and not isinstance(function, type):
        function = getattr(type(function), "__call__", None)
    return int(getattr(getattr(function, "__code__", None), "co_flags", 0))


def _wrapper_of(function: Any, manager: Callable[[], Any]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        with manager():
            return function(*args, **kwargs)

    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        with manager():
            return await function(*args, **kwargs)

    def generator(*args: Any, **kwargs: Any) -> Any:
        with manager():
            return (yield from function(*args, **kwargs))

    async def async_generator(*args: Any, **kwargs: Any) -> Any:
        with manager():
            inner = function(*args, **kwargs)
            step = inner.asend(None)
            while True:  # does the work of `yield from`, which is not allowed in an asynchronous generator
                try:
                    value = await step
                except StopAsyncIteration:
                    return
                try:
                    sent = yield value
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:
                    step = inner.athrow(error)
                else:
                    step = inner.asend(sent)

    flags = _flags(function)
    if flags & _ASYNC_GENERATOR:
        return async_generator
    if flags & _COROUTINE:
        return coroutine
    if flags & _ITERABLE_COROUTINE:
        import types

        return types.coroutine(generator)
    return generator if flags & _GENERATOR else call


def decorate(function: Function, manager: Callable[[], Any]) -> Function:
    """Returns a wrapper that runs each call of `function` inside a new context manager from `manager`."""
    if isinstance(function, (classmethod, staticmethod)):
        return type(function)(decorate(function.__func__, manager))  # type: ignore[return-value]
    if not callable(function):
        raise TypeError(f"expected a function, not {function!r}")
    wrapper: Function = functools.update_wrapper(_wrapper_of(function, manager), function)
    return wrapper


def trace_calls(function: Function, make: Callable[[], Trace]) -> Function:
    """Returns a wrapper that records each call in its own trace. A call that begins while the trace of another
    call runs is recorded by that trace."""
    newest: Optional[Trace] = None

    def manager() -> Any:
        nonlocal newest
        if newest is not None and newest.running:
            return nullcontext()
        newest = make()
        return newest

    return decorate(function, manager)
