"""Warns about the functions of torch's profiler whose results are wrong or empty in mode "fast", because torch's
objects then have no Python calls."""

from __future__ import annotations

from warnings import warn

from ._results import is_fast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def _warn_if_fast(results: Iterable[Any], what: str) -> None:
    if any(map(is_fast, results)):
        warn(f"kpytrace: {what}, because this profiler ran in mode 'fast', in which torch gets no Python calls: "
             f"use kpytrace.torch.install('full'), or KPYTRACE_TORCH=full", stacklevel=4)


def event_tree(original: Any) -> Any:
    """Wraps _ProfilerResult.experimental_event_tree, on which the memory profile and the patterns are based."""
    def experimental_event_tree(self: Any) -> Any:
        _warn_if_fast([self], "the event tree has no modules, optimizers or Python functions, and so memory "
                              "categories are wrong and patterns are missed")
        return original(self)
    return experimental_event_tree


def export_stacks(original: Any, attribute: str) -> Any:
    """Wraps EventList.export_stacks. ATTRIBUTE of the list has the results whose events it has."""
    def export_stacks(self: Any, *more: Any, **options: Any) -> Any:
        _warn_if_fast(getattr(self, attribute, ()), "export_stacks() writes no stacks")
        return original(self, *more, **options)
    return export_stacks


def key_averages(original: Any, attribute: str) -> Any:
    """Wraps EventList.key_averages, which may group by stacks."""
    def key_averages(self: Any, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
                     *more: Any, **options: Any) -> Any:
        if group_by_stack_n:
            _warn_if_fast(getattr(self, attribute, ()), "key_averages() can't group by stacks")
        return original(self, group_by_input_shapes, group_by_stack_n, *more, **options)
    return key_averages
