"""Lists and tables of events, as plain values that can be compared."""

import torch.autograd.profiler as autograd_profiler

FIELDS = ["activity_type", "concrete_inputs", "correlation_id", "cuda_elapsed_us", "device_index", "device_resource_id",
          "device_type", "dtypes", "external_id", "extra_meta", "flops", "flow_id", "flow_start", "flow_type",
          "fwd_thread_id", "is_async", "is_hidden_event", "is_python_function", "is_user_annotation", "kwinputs",
          "linked_correlation_id", "metadata_json", "name", "nbytes", "overload_name", "privateuse1_elapsed_us",
          "python_module_id", "scope", "shapes", "stack", "start_thread_id", "end_thread_id", "structured_input_shapes",
          "structured_input_strides"]


def field(event, name):
    """The value of a method, or None if this torch has no such method."""
    return getattr(event, name, lambda: None)()


def torchs_own(prof):
    """The list of FunctionEvents that torch's own code makes from the same recording."""
    own = prof.profiler
    events = autograd_profiler.EventList(own._parse_kineto_results(own.kineto_results), use_device=own.use_device,
                                         profile_memory=own.profile_memory, with_flops=own.with_flops)
    events._build_tree()
    return events


def position(event):
    return event and (event.name, event.time_range.start, event.time_range.end, event.thread, event.id)


def attributes(event):
    """The attributes of a FunctionEvent or a FunctionEventAvg, with their types."""
    parts = {"cpu_parent": position(event.cpu_parent), "cpu_children": list(map(position, event.cpu_children or ()))}
    if hasattr(event, "time_range"):
        parts["time_range"] = event.time_range.start, event.time_range.end
    values = {name: value for name, value in vars(event).items() if not name.startswith("_kpytrace")}
    return {name: (type(value), value) for name, value in {**values, **parts}.items()}


def difference(ours, theirs):
    """The attributes that differ, or an empty dictionary."""
    ours, theirs = attributes(ours), attributes(theirs)
    return {name: (ours.get(name), theirs.get(name)) for name in ours.keys() | theirs.keys()
            if ours.get(name) != theirs.get(name)}


def unmade(prof):
    """The profile without its list of events, so that its tables are made from the recording."""
    prof.profiler._function_events = None
    return prof
