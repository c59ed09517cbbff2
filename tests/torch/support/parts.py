"""Calls that are cut at an annotation continue as further events with the same "Python id"."""

import collections


def by_id(calls):
    """Returns {id: the parts of that call, in order} of Chrome events. Events without an id, which are garbage
    collections, are left out. Fails if parts are not of one call, or overlap."""
    parts = collections.defaultdict(list)
    for call in sorted(calls, key=lambda call: call["ts"]):
        number = call["args"].get("Python id")
        if number is not None:
            parts[number].append(call)
    for number, found in parts.items():
        for before, after in zip(found, found[1:]):
            same = all(before[field] == after[field] for field in ("name", "pid", "tid"))
            assert same and parent(before) == parent(after), (number, before, after)
            # Times are floats of microseconds in some tests, nanoseconds in others.
            assert before["ts"] + before["dur"] <= after["ts"] + 0.001, (number, before, after)
    return parts


def parent(call):
    return call["args"].get("Python parent id")


def once(calls):
    """Returns CALLS with only the first part of each."""
    calls = list(calls)
    first = {id(found[0]) for found in by_id(calls).values()}
    return [call for call in calls if call["args"].get("Python id") is None or id(call) in first]
