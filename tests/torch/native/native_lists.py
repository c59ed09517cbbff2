"""Lists and tables of events, as plain values that can be compared."""

import inspect
import unittest
import warnings

import torch.autograd.profiler as autograd_profiler
from torch.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg

FIELDS = ["activity_type", "concrete_inputs", "correlation_id", "cuda_elapsed_us", "device_index", "device_resource_id",
          "device_type", "dtypes", "external_id", "extra_meta", "flops", "flow_id", "flow_start", "flow_type",
          "fwd_thread_id", "is_async", "is_hidden_event", "is_python_function", "is_user_annotation", "kwinputs",
          "linked_correlation_id", "metadata_json", "name", "nbytes", "overload_name", "privateuse1_elapsed_us",
          "python_module_id", "scope", "shapes", "stack", "start_thread_id", "end_thread_id", "structured_input_shapes",
          "structured_input_strides"]

# What torch from 2.14 on also has, beside the grouping by overload: whether the averages have Python calls.
HAS_CALLS = "include_python_functions" in inspect.signature(EventList.key_averages).parameters
CALLS = ((False, True), (False, False)) if HAS_CALLS else ()


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


class Comparison(unittest.TestCase):
    def assert_as_torch(self, prof, groupings=((False, 0), (True, 0), (False, 1), (True, 3), (False, 99))):
        """All lists and tables equal those that torch's code makes from the events of the same recording."""
        theirs = torchs_own(prof)
        ours = prof.events()
        self.assertIsInstance(ours, EventList)
        self.assertEqual(len(ours), len(theirs))
        for one, other in zip(ours, theirs):
            self.assertIs(type(one), FunctionEvent)
            self.assertEqual(difference(one, other), {}, one.name)
            self.assertEqual(repr(one), repr(other))
        for by_shapes, size in groupings:
            for by_overload, *with_calls in ((False,), (True,), *CALLS):
                grouping = by_shapes, size, by_overload, *with_calls
                averages, known = unmade(prof).key_averages(*grouping), theirs.key_averages(*grouping)
                self.assertEqual([one.key for one in averages], [one.key for one in known])
                self.assert_tables_equal(averages, known)
                self.assert_averages_equal(averages, known)
        self.assert_averages_equal([unmade(prof).profiler.total_average()], [theirs.total_average()])
        self.assertEqual(unmade(prof).profiler.self_cpu_time_total, theirs.self_cpu_time_total)
        self.assertEqual(type(prof.profiler.self_cpu_time_total), type(theirs.self_cpu_time_total))
        return theirs

    def assert_averages_equal(self, ours, theirs):
        for one, other in zip(ours, theirs):
            self.assertIsInstance(one, FunctionEventAvg)
            self.assertEqual(difference(one, other), {}, one.key)
            self.assertEqual(repr(one), repr(other))

    def assert_tables_equal(self, ours, theirs):
        keys = [None, "count", "cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time_total", "cuda_time_total",
                "self_cuda_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for key in keys:
                self.assertEqual(ours.table(sort_by=key), theirs.table(sort_by=key), key)
