"""Replaces the methods of torch.autograd.profiler.profile that make lists and tables of events. A profile that isn't
native, that has made its list already, or that limits the time for it, uses torch's.
"""

from __future__ import annotations

import inspect
from functools import wraps
from time import perf_counter_ns

from .result import NativeResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Optional

    from .tables import Tables


def _is_torchs(parse: Any) -> bool:
    """Whether the method that makes events was replaced by neither a program nor a subclass, but maybe by kpytrace."""
    module = getattr(parse, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] in ("torch", "kpytrace")


def _us(ns: int) -> int:
    return -(-ns // 1000)  # no step took no time at all


def patches(torch: ModuleType) -> list[tuple[type, str, Any]]:
    """Returns (class, name, replacement)."""
    kind = torch.autograd.profiler.profile
    util = torch.autograd.profiler_util

    def tables_of(self: Any) -> Optional[Tables]:
        result = getattr(self, "kineto_results", None)
        if (type(result) is not NativeResult or self._function_events is not None or
                getattr(self.experimental_config, "trace_only", False) or
                getattr(self, "post_processing_timeout_s", None) is not None or
                not _is_torchs(getattr(self, "_parse_kineto_results", None))):
            return None
        return result.tables()

    def tables_alone(self: Any) -> Optional[Tables]:
        """Returns the tables if the events are those of one recording."""
        return None if getattr(self, "_old_function_events", None) else tables_of(self)

    def ensure(original: Any) -> Any:
        @wraps(original)
        def _ensure_function_events(self: Any) -> None:
            began = perf_counter_ns()
            tables = tables_of(self)
            if tables is None:
                return original(self)
            self._needs_processing = False
            read = perf_counter_ns()
            events = util.EventList(tables.function_events(self.use_device), use_device=self.use_device,
                                    profile_memory=self.profile_memory, with_flops=self.with_flops)
            events._tree_built = True
            stats = self._stats
            stats.parse_kineto_call_duration_us = _us(read - began)
            stats.function_events_build_tree_call_duration_us = _us(perf_counter_ns() - read)
            stats.number_of_events = len(events)
            if self._old_function_events and self.acc_events:
                events.extend(self._old_function_events)
                self._old_function_events = None
            self._function_events = events
        return _ensure_function_events

    def key_averages(original: Any) -> Any:
        others = list(inspect.signature(original).parameters)[3:]  # after self and the two groupings

        @wraps(original)  # inspect.signature() has torch's parameters
        def key_averages(self: Any, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                         *more: Any, **options: Any) -> Any:
            tables = tables_alone(self) if group_by_stack_n >= 0 else None
            if tables is None:
                return original(self, group_by_input_shape, group_by_stack_n, *more, **options)
            # No event has an overload name, so that grouping by it changes nothing. From 2.14 on, torch leaves Python
            # calls out by default.
            given = {**dict(zip(others, more)), **options}
            has_calls = given.get("include_python_functions", "include_python_functions" not in others)
            return util.EventList(tables.averages(self.use_device, bool(group_by_input_shape), group_by_stack_n,
                                                  bool(has_calls)),
                                  use_device=self.use_device, profile_memory=self.profile_memory,
                                  with_flops=self.with_flops)
        return key_averages

    def total_average(original: Any) -> Any:
        @wraps(original)
        def total_average(self: Any) -> Any:
            tables = tables_alone(self)
            return original(self) if tables is None else tables.total(self.use_device)
        return total_average

    def self_cpu_time_total(original: Any) -> Any:
        def self_cpu_time_total(self: Any) -> Any:
            tables = tables_alone(self)
            return original.__get__(self) if tables is None else tables.self_cpu(self.use_device)
        return property(self_cpu_time_total, doc=original.__doc__)

    makers = {"_ensure_function_events": ensure, "key_averages": key_averages, "total_average": total_average,
              "self_cpu_time_total": self_cpu_time_total}
    return [(kind, name, make(vars(kind)[name])) for name, make in makers.items() if name in vars(kind)]
