"""What a profile asks for. torch passes its configuration as an object that C++ reads and Python can't, so profiles get
a class of configurations that keeps its arguments.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

# Fields of _ExperimentalConfig that a native profile provides or that change nothing in it, and those that only Kineto
# provides, with a value other than their default.
_SERVED = {"verbose": True, "record_python_gc_info": True, "trace_only": True, "profile_all_threads": True,
           "disable_external_correlation": True}
_REFUSED = {"profiler_metrics": ["m"], "profiler_measure_per_kernel": True, "performance_events": ["e"],
            "enable_cuda_sync_events": True, "adjust_profiler_step": True, "capture_overload_names": True,
            "expose_kineto_event_metadata": True, "custom_profiler_config": "c", "adjust_timestamps": True}


def experimental_fields(config: Any) -> dict[str, Any]:
    """Returns the values of CONFIG's fields. torch exposes most of them only in the state for pickle, at an index that
    differs between releases: the index where a config with the field set differs from one without."""
    kind = type(config)
    values, default = config.__getstate__(), kind().__getstate__()
    fields = {}
    for name, other in {**_SERVED, **_REFUSED}.items():
        try:
            changed = kind(**{name: other}).__getstate__()
        except TypeError:  # this torch has no such field
            continue
        places = [no != yes for no, yes in zip(default, changed)]
        if True in places:
            fields[name] = values[places.index(True)]
    return fields


class Request:
    """The arguments of a profile's configuration."""

    def __init__(self, state: Any, record_shapes: bool, profile_memory: bool, with_stack: bool, with_flops: bool,
                 with_modules: bool, experimental_config: Any, trace_id: str = "") -> None:
        self.state, self.trace_id = state, trace_id
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules = with_flops, with_modules
        self.experimental = experimental_fields(experimental_config)

    def is_of(self, other: Request) -> bool:
        """Whether both belong to one profile, which has a configuration to prepare it and one to begin it."""
        return str(self.state) == str(other.state) and self.trace_id == other.trace_id

    def why_not_native(self, activities: set[Any], filters: Any, is_own_class: bool) -> Optional[str]:
        """Returns the reason why Kineto has to record this profile, or None. A program that passes the three options of
        torch's memory profile may ask for that profile later; one that uses kpytrace.torch.profile, IS_OWN_CLASS, knows
        that there is none."""
        if str(self.state).rpartition(".")[2] != "KINETO":
            return "its devices are recorded without Kineto's activities"
        others = sorted(str(one).rpartition(".")[2] for one in activities
                        if str(one).rpartition(".")[2] not in ("CPU", "CUDA"))
        if others:
            return f"it records {', '.join(others)}"
        if filters:
            return "it has filters of activities"
        if self.with_modules:
            return "with_modules=True was given"
        if self.record_shapes and self.profile_memory and self.with_stack and not is_own_class:
            return "record_shapes, profile_memory and with_stack together are those of torch's memory profile"
        for name, other in _REFUSED.items():
            default = type(other)()
            if self.experimental.get(name, default) != default:
                return f"experimental_config has {name}"
        return None


def with_request(original: Any) -> type:
    """Returns a class of configurations, derived from torch's, that keep their arguments."""
    class ProfilerConfig(original):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.kpytrace_request = Request(*arguments, **options)

    ProfilerConfig.__module__ = original.__module__
    ProfilerConfig.__qualname__ = original.__qualname__
    return ProfilerConfig
