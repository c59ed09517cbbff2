"""Reads the tracks of asyncio's tasks out of a Chrome trace, and checks their invariants: each resume is a
call of its thread, at the same time; resumes of a task do not overlap."""

import asyncio

from support import Case
from task_programs import truth

import kpytrace

FIRST_TID = 100_000_000


class Tracks:
    def __init__(self, trace):
        events = trace["traceEvents"]
        self.other = trace["otherData"]
        self.names = {e["tid"]: e["args"]["name"] for e in events
                      if e["ph"] == "M" and e["name"] == "thread_name" and e["tid"] >= FIRST_TID}
        self.calls = sorted((e for e in events if e.get("cat") == "python_function"),
                            key=lambda e: e["args"]["Python id"])
        self.slices = sorted((e for e in events if e.get("cat") == "asyncio_task"), key=lambda e: e["ts"])
        self._by_id = {e["args"]["Python id"]: e for e in self.calls}
        self._check()

    def _check(self):
        ends, resumes = {}, {}
        assert {e["tid"] for e in self.slices} == set(self.names), self.names
        for e in self.slices:
            call = self._by_id[e["args"]["call"]]
            assert (e["ts"], e["dur"], e["args"]["thread"]) == (call["ts"], call["dur"], call["tid"]), (e, call)
            assert e["ts"] >= ends.get(e["tid"], 0), e
            ends[e["tid"]] = e["ts"] + e["dur"]
            resumes[e["tid"]] = resumes.get(e["tid"], 0) + 1
            assert e["args"]["resume"] == resumes[e["tid"]], e

    def of(self, name):
        """Returns the slices of the only task of that name, with or without the name of its coroutine."""
        found = [tid for tid, shown in self.names.items() if shown == name or shown.rpartition(" ")[0] == name]
        assert len(found) == 1, (name, sorted(self.names.values()))
        return [e for e in self.slices if e["tid"] == found[0]]

    def within(self, e, function):
        """Returns the calls of FUNCTION in the resume E, in the order of time."""
        return [c for c in self.calls if c["tid"] == e["args"]["thread"] and e["ts"] <= c["ts"]
                and c["ts"] + c["dur"] <= e["ts"] + e["dur"] + 1e-6 and c["name"].endswith(f": {function}")]

    def check_truth(self, truth, function="stamp"):
        """TRUTH: (native thread id, task's name) of each call of FUNCTION, as they were made. Each must lie in
        a resume of that task, or in no resume if the name is None."""
        stamps, expected = {}, {}
        for call in self.calls:
            if call["name"].endswith(f": {function}"):
                stamps.setdefault(call["tid"], []).append(call)
        for thread, name in truth:
            expected.setdefault(thread, []).append(name)
        assert stamps.keys() == expected.keys(), (stamps.keys(), expected.keys())
        for thread, names in expected.items():
            calls = sorted(stamps[thread], key=lambda c: c["ts"])
            assert len(calls) == len(names), (len(calls), len(names))
            found = self._innermost(thread, calls)
            assert found == names, next((f, n) for f, n in zip(found, names) if f != n)

    def _innermost(self, thread, calls):
        """Returns the name of the task whose resume is the innermost around each of CALLS, or None."""
        slices = [e for e in self.slices if e["args"]["thread"] == thread]
        found, open_, at = [], [], 0
        for call in calls:
            while at < len(slices) and slices[at]["ts"] <= call["ts"]:
                open_.append(slices[at])
                at += 1
            open_ = [e for e in open_ if e["ts"] + e["dur"] >= call["ts"] + call["dur"]]
            found.append(self.names[open_[-1]["tid"]].split(" ")[0] if open_ else None)
        return found


class TaskCase(Case):
    """A test of programs with tasks. Clears the records of earlier programs."""

    def setUp(self):
        super().setUp()
        truth.clear()

    def traced(self, program, **options):
        """Runs the coroutine PROGRAM in a trace."""
        with kpytrace.trace(self.path, **options):
            asyncio.run(program)
        return self.tracks()

    def tracks(self, path=None):
        return Tracks(self.read_trace(path))
