"""Whether the spans of a Chrome trace nest."""

import collections


def crossing_in(trace):
    """Pairs of names: spans of a thread that cross, calls, annotations and operators."""
    tracks = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event.get("ph") == "X" and event.get("cat") in ("python_function", "user_annotation",
                                                           "cpu_op"):
            start = round(event["ts"] * 1000)  # a sum in microseconds would be off by one
            tracks[event["tid"]].append((start, start + round(event["dur"] * 1000), event["name"]))
    found = []
    for spans in tracks.values():
        stack = []
        for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
            while stack and stack[-1][0] <= start:
                stack.pop()
            if stack and end > stack[-1][0]:
                found.append([name, stack[-1][1]])
            stack.append((end, name))
    return found
