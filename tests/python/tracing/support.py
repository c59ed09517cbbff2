"""Shared code of the tracer's tests: runs a function under kpytrace, and returns its calls with their nesting. The
tests run with the staged package in PYTHONPATH.

    recording = self.record(work)
    recording.of(work).outline()    ["work", "  inner", "    [len]"]
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import unittest.mock
import warnings

import kpytrace

VERSION = sys.version_info[:2]
MONITORING = VERSION >= (3, 12)
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
TAG = "%d.%d%s" % (*VERSION, "t" if FREE_THREADED else "")
BACKEND = kpytrace.plugin_path().with_name(f"libkpytrace_cpython{TAG}.so")
LONG = os.environ.get("KPYTRACE_TEST_LONG", "0") not in ("", "0")

BEGAN_BEFORE, ENDED_BY_STOP = "began before", "ended by stop"
CLAMPED, RECOVERED, WATCHED = "clamped", "recovered", "watched"

_BUILTIN = re.compile(r"<built-in (?:function|method) (.+?)(?: of (.+) object)?>\Z", re.S)


class Call:
    """One call: name as displayed, function as in the source, flags, times in ns."""

    def __init__(self, ident, parent, name, start, end, flags, args):
        self.id, self.parent_id, self.name, self.flags = ident, parent, name, frozenset(flags)
        self.start, self.end, self.args = start, end, args
        self.parent, self.children, self.depth = None, [], 0
        builtin = _BUILTIN.match(name)
        self.kind = "c" if builtin else "gc" if name == "Python GC" else "python"
        if builtin:
            function, owner = builtin.groups()
            self.function = f"{owner}.{function}" if owner else function
        else:
            self.function = name.rpartition("): ")[2]

    @property
    def duration(self):
        return self.end - self.start

    @property
    def label(self):
        """The function's name, in brackets for a C function."""
        return self.function if self.kind == "python" else f"[{self.function}]"

    def walk(self, depth=0):
        """Yields (depth, call) of this call and all below it, in pre-order, at any depth."""
        stack = [(depth, self)]
        while stack:
            depth, call = stack.pop()
            yield depth, call
            stack += [(depth + 1, child) for child in reversed(call.children)]

    def labels(self):
        return [(depth, call.label) for depth, call in self.walk()]

    def outline(self):
        return ["  " * depth + label for depth, label in self.labels()]

    def python_outline(self):
        """The same without C functions: Python functions that they call appear below their callers."""
        lines, depths = [], {None: -1}
        for _, call in self.walk():
            depth = depths[call.parent if call is not self else None]
            depths[call] = depth + (call.kind == "python")
            if call.kind == "python":
                lines.append("  " * depths[call] + call.label)
        return lines

    def below(self):
        """Returns the labels of the direct children."""
        return [child.label for child in self.children]

    def __repr__(self):
        return f"<{self.label} {self.start}..{self.end} {sorted(self.flags)}>"


class Thread:
    """The calls of one thread, in pre-order."""

    def __init__(self, tid, name):
        self.tid, self.name, self.roots = tid, name, []

    def walk(self):
        for root in self.roots:
            yield from root.walk()

    @property
    def calls(self):
        return [call for _, call in self.walk()]

    def labels(self):
        return [(depth, call.label) for depth, call in self.walk()]


class Recording:
    """All threads of a recording, each as a forest of calls."""

    def __init__(self, threads, calls_by_thread, stats):
        """THREADS: (tid, name) by number. The calls of each thread may be in any order."""
        self.stats = stats
        self.threads = []
        for number, (tid, name) in threads.items():
            thread = Thread(tid, name)
            calls = calls_by_thread.get(number, [])
            by_id = {call.id: call for call in calls}
            if len(by_id) != len(calls):
                raise AssertionError("an id is there twice")
            for call in sorted(calls, key=lambda c: c.id):
                call.parent = by_id[call.parent_id] if call.parent_id else None
                (call.parent.children if call.parent else thread.roots).append(call)
                call.depth = call.parent.depth + 1 if call.parent else 0
            self.threads.append(thread)

    @property
    def calls(self):
        return [call for thread in self.threads for call in thread.calls]

    def thread(self, name):
        thread, = (t for t in self.threads if t.name == name)
        return thread

    def all(self, function):
        """Returns the calls of a function, which is an object or a name; the name of a C function is in
        brackets."""
        code = getattr(function, "__code__", None)
        if code is None:
            return [call for call in self.calls if call.label == function]
        name = f"{code.co_filename}({code.co_firstlineno}): {code.co_name}"
        return [call for call in self.calls if call.name == name]

    def of(self, function):
        """Returns the only call of a function."""
        calls = self.all(function)
        if len(calls) != 1:
            raise AssertionError(f"{len(calls)} calls of {function}")
        return calls[0]

    def count(self, function):
        return len(self.all(function))

    def check_nesting(self):
        """Checks that each child lies within its parent, and that siblings do not overlap."""
        for thread in self.threads:
            last = None
            for root in thread.roots:
                assert last is None or last.end <= root.start, (last, root)
                last = root
            for call in thread.calls:
                assert call.start <= call.end, call
                at = call.start
                for child in call.children:
                    assert at <= child.start and child.end <= call.end, (call, child)
                    at = child.end


def read_chrome(path):
    """Returns the recording in a Chrome JSON file."""
    def pairs(items):
        found = dict(items)
        assert len(found) == len(items), items
        return found

    document = json.loads(pathlib.Path(path).read_bytes().decode("utf-8", "strict"),
                          object_pairs_hook=pairs)
    base = document["baseTimeNanoseconds"]
    threads, calls = {}, {}
    for event in document["traceEvents"]:
        if event["ph"] == "M" and event["name"] == "thread_name":
            threads[event["tid"]] = event["tid"], event["args"]["name"]
        elif event["ph"] == "X" and event.get("cat") != "asyncio_task":  # whose events repeat calls
            args = event["args"]
            start = base + round(event["ts"] * 1000)
            end = start + round(event["dur"] * 1000)
            flags = [f for f in (BEGAN_BEFORE, ENDED_BY_STOP, CLAMPED, RECOVERED) if args.get(f)]
            calls.setdefault(event["tid"], []).append(
                Call(args["Python id"], args["Python parent id"], event["name"], start, end, flags,
                     args))
    return Recording(threads, calls, document.get("otherData", {}))


class Case(unittest.TestCase):
    """A test case with its own folder, no option in the environment, and no running trace at its end."""

    @classmethod
    def setUpClass(cls):
        if not BACKEND.exists():
            raise unittest.SkipTest(f"there is no backend for CPython {TAG} beside the plugin")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reason = kpytrace.trace().start().stop().noop
        if reason:
            raise RuntimeError(f"nothing is recorded: {reason}")

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kpt-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("KPYTRACE")}
        patch = unittest.mock.patch.dict(os.environ, clean, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(self.end_trace)
        self.path = self.folder / "trace.json"

    def end_trace(self):
        running = kpytrace._api.trace._active
        if running is not None:
            running.close()

    def record(self, work, **options):
        """Runs WORK under a trace. Stores its result in self.result, or its exception in self.error."""
        self.result = self.error = None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trace = kpytrace.trace(self.path, **options)
            trace.start()
        try:
            self.result = work()
        except Exception as error:
            self.error = error
        finally:
            self.summary = trace.stop()
        return self.read(trace)

    def read(self, trace):
        """Returns the recording that a stopped trace has written."""
        recording = read_chrome(self.path)
        recording.stats = trace.stats()
        recording.check_nesting()
        self.assertIsNone(trace.summary.noop)
        self.assertEqual(trace.summary.calls, len(recording.calls))
        return recording

    def assert_outline(self, call, text, python_only=False):
        """Compares the calls from CALL on with TEXT, an indented list."""
        lines = [line for line in text.split("\n") if line.strip()]
        margin = min(len(line) - len(line.lstrip()) for line in lines)
        self.assertEqual(call.python_outline() if python_only else call.outline(),
                         [line[margin:].rstrip() for line in lines])


def define(source, name, file="<made>", scope=None):
    """Returns the function NAME that SOURCE defines."""
    scope = {} if scope is None else scope
    exec(compile(source, file, "exec"), scope)
    return scope[name]


def run_python(*arguments, **options):
    """Runs this Python in a separate process, with the package in its path and no option set."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("KPYTRACE")}
    env.update(options.pop("env", {}))
    return subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=env, timeout=120, **options)
