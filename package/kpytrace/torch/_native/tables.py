"""torch's lists and tables of a native profile's events, made in C from the recording: FunctionEvents with their tree,
and FunctionEventAvgs. They are objects of torch's classes, with the attributes that torch's own code gives them.
"""

from __future__ import annotations

import inspect
import os
import sys
from array import array

from .. import _exporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Optional

_STACKS, _INPUTS, _FLOPS = 1, 2, 4  # what is shown
_HIDDEN, _NOT_IN_STACK = 1, 2  # flags of names
_MOST_FRAMES = 2**31


class Tables:
    """The events of a result. PROFILER and UTIL are torch.autograd.profiler and profiler_util."""

    def __init__(self, result: Any, profiler: ModuleType, util: ModuleType) -> None:
        # The table copies all that it needs.
        request = result.request
        shows = _INPUTS * request.record_shapes | _FLOPS * request.with_flops
        if request.with_stack and request.experimental.get("verbose"):
            shows |= _STACKS
        self._util, self._device_type = util, profiler.DeviceType
        self._base_ns = result.trace_start_ns()
        self.events = _exporter.EventTable(result.recording, result.gpu_log(), shows,
                                           self._device_type)
        self._names: Optional[tuple[list[str], list[str], bytes, bytes]] = None
        self._shapes: Optional[bytes] = None
        self._lists: dict[Optional[str], list[Any]] = {}

    def _read_names(self) -> tuple[list[str], list[str], bytes, bytes]:
        """Returns by number: the names in tables, those in traces, a number for each of the former, and flags."""
        if self._names is None:
            util = self._util
            known = self.events.names()
            shown = [util._rewrite_name(name=name, with_wildcard=True) for name in known]
            traced = [util._rewrite_name(name=name, with_wildcard=False) for name in known]
            numbers: dict[str, int] = {}
            keys = array("I", [numbers.setdefault(name, len(numbers)) for name in shown])
            flags = bytes(_HIDDEN * util._filter_name(name) |
                          _NOT_IN_STACK * (not util._filter_stack_entry(name)) for name in known)
            self._names = shown, traced, keys.tobytes(), flags
        return self._names

    def _options(self, device: Optional[str]) -> tuple[Any, ...]:
        _, _, keys, flags = self._read_names()
        return keys, flags, self._base_ns, bool(device), sys.version_info >= (3, 12)

    def _event_model(self, device: Optional[str], **more: Any) -> dict[str, Any]:
        """Returns the attributes of an operator's event, as torch makes it."""
        values: dict[str, Any] = dict(
            id=0, name="", overload_name="", thread=0, start_us=0.0, end_us=0.0, fwd_thread=0, input_shapes=[], stack=[],
            scope=0, use_device=device, cpu_memory_usage=0, device_memory_usage=0, is_async=False, sequence_nr=-1,
            device_type=self._device_type.CPU)
        values.update(more)
        kind = self._util.FunctionEvent
        taken = inspect.signature(kind.__init__).parameters
        return dict(vars(kind(**{name: value for name, value in values.items() if name in taken})))

    def function_events(self, device: Optional[str]) -> list[Any]:
        """Returns torch's FunctionEvents, in their tree."""
        if device not in self._lists:
            util = self._util
            shown, traced, _, _ = self._read_names()
            model = self._event_model(
                device, trace_name="", concrete_inputs=[], kwinputs={}, device_index=os.getpid(), device_resource_id=0,
                flops=0, is_user_annotation=False, is_python_function=False, activity_type="cpu_op", metadata_json="",
                extra_meta=None, flow_id=0, flow_type=0, flow_start=False, external_id=0, linked_correlation_id=0,
                structured_input_shapes=[], structured_input_strides=[], input_dtypes=[], python_id=-1,
                python_parent_id=-1, python_module_id=-1)
            memory = self._event_model(device, trace_name=None, device_index=0)
            self._lists[device] = self.events.function_events(
                self._options(device), util.FunctionEvent, util.Interval, util.Kernel, model, memory, shown, traced)
        return self._lists[device]

    def _average_model(self, device: Optional[str]) -> dict[str, Any]:
        model = dict(vars(self._util.FunctionEventAvg()))
        for name in ("cpu_parent", "cpu_children"):
            model.pop(name, None)
        model.update(node_id=-1, use_device=device, overload_name="", input_shapes="", _kpytrace_tables=self)
        return model

    def averages(self, device: Optional[str], by_shapes: bool, stack_size: int, has_calls: bool) -> list[Any]:
        """Returns torch's FunctionEventAvgs, of events with one key each. HAS_CALLS: also of Python calls."""
        if by_shapes and self._shapes is None:
            numbers: dict[str, int] = {}
            texts = [str(shapes) for shapes in self.events.shapes()]
            self._shapes = array("I", [numbers.setdefault(text, len(numbers)) for text in texts]).tobytes()
        shown, _, _, _ = self._read_names()
        averages: list[Any] = self.events.averages(
            self._options(device), _average_class(self._util), self._average_model(device), shown,
            self._shapes if by_shapes else None, min(stack_size, _MOST_FRAMES), False, has_calls)
        return averages

    def total(self, device: Optional[str]) -> Any:
        """Returns the FunctionEventAvg of all events."""
        shown, _, _, _ = self._read_names()
        found = self.events.averages(self._options(device), _average_class(self._util), self._average_model(device),
                                     shown, None, 0, True, True)
        total = found[0] if found else self._util.FunctionEventAvg()
        total.key = "Total"
        return total

    def self_cpu(self, device: Optional[str]) -> Any:
        return self.events.self_cpu(self._options(device))


class _OfFirstEvent:
    """An attribute that an average takes over from its first event, read when it is needed, since it is a part of the
    tree of all events."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, average: Any, kind: Any) -> Any:
        if average is None or "_kpytrace_tables" not in vars(average):
            raise AttributeError(self._name)
        events = average._kpytrace_tables.function_events(average.use_device)
        value = getattr(events[average._kpytrace_row], self._name)
        setattr(average, self._name, value)  # is found before this descriptor from now on
        return value


_classes: dict[type, type] = {}


def _average_class(util: ModuleType) -> type:
    """Returns a class derived from torch's, whose objects read cpu_parent and cpu_children on demand."""
    original = util.FunctionEventAvg
    if original not in _classes:
        def reduce(self: Any, protocol: Any) -> tuple[Any, ...]:
            """Another process gets an object of torch's class."""
            state = {name: value for name, value in vars(self).items() if not name.startswith("_kpytrace")}
            state.update(cpu_parent=self.cpu_parent, cpu_children=self.cpu_children)
            return original, (), state

        _classes[original] = type(original.__name__, (original,), {
            "__module__": original.__module__, "__doc__": original.__doc__, "__reduce_ex__": reduce,
            "cpu_parent": _OfFirstEvent("cpu_parent"), "cpu_children": _OfFirstEvent("cpu_children")})
    return _classes[original]
