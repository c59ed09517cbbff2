"""What a native profile has recorded, read from kpytrace's own file of it."""

import collections
import json
import os
import tempfile

from kpytrace._api import native
from kpytrace.torch._native.result import NativeResult


def is_native(prof):
    return isinstance(prof.profiler.kineto_results, NativeResult)


def events(prof):
    """Returns the spans of kpytrace's Chrome file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "own.json")
        native.standalone.write(prof.profiler.kineto_results.handle, os.fsencode(path), None)
        with open(path, encoding="utf-8") as file:
            return [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]


def counts(prof):
    """Returns how often each operator and annotation was recorded, by name."""
    return collections.Counter(event["name"] for event in events(prof)
                               if event["cat"] in ("cpu_op", "user_annotation"))


def calls(prof, function):
    """Returns how often FUNCTION, a Python function, was recorded."""
    return sum(event["cat"] == "python_function" and event["name"].endswith(": " + function) for event in events(prof))


def events_of(prof):
    """Returns the number of begins and ends that were recorded."""
    return native.standalone.stats(prof.profiler.kineto_results.handle)["events"]
