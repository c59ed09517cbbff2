#!/usr/bin/env python3
"""Runs CPython's own tests, which are programs that were not written for kpytrace. Each module runs twice, without
and with tracing, and every test in it must have the same result.

usage: cpython_suite.py [--all] [MODULE...]      (--all, or KPYTRACE_TEST_LONG=1: the whole list)

EXCLUDED lists the tests whose results differ under any tracer, with the reason.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

QUICK = ["test_generators", "test_contextlib", "test_with", "test_scope", "test_functools"]
WHOLE = QUICK + [
    "test_asyncgen", "test_bisect", "test_call", "test_class", "test_concurrent_futures",
    "test_collections", "test_contextvars", "test_coroutines", "test_dataclasses",
    "test_decorators", "test_descr", "test_enum", "test_exception_group", "test_exceptions",
    "test_fork1", "test_gc", "test_itertools", "test_listcomps", "test_queue", "test_thread",
    "test_threading", "test_threading_local", "test_unittest", "test_weakref", "test_weakset",
    "test_yield_from", "test_asyncio.test_events", "test_asyncio.test_futures",
    "test_asyncio.test_locks", "test_asyncio.test_queues", "test_asyncio.test_runners",
    "test_asyncio.test_streams", "test_asyncio.test_tasks", "test_asyncio.test_taskgroups",
    "test_asyncio.test_timeouts", "test_sys_setprofile"]

_HOOK = "sets its own profile or trace function, of which there is one a thread up to 3.11"
_DEPTH = "measures how deep recursion goes, and a callback takes some of it"
_TIME = "asserts that something takes no longer than it does untraced"

_TOOL = "wants no event of the call that sets the profile function; with any tool of sys.monitoring there is one"
_COLLECT = "wants no collection between two calls of a line; any profile function lets one in up to 3.11"

# Part of a test's id, and why its result may differ.
EXCLUDED = {
    "SettraceTest": _HOOK,
    "ProfileHookTestCase": _HOOK, "ProfileSimulatorTestCase": _HOOK,
    "test_setprofile": _HOOK, "test_getprofile": _HOOK, "test_gettrace": _HOOK,
    "test_settrace": _HOOK,
    "test_recursion_limit": _DEPTH,
    "CSimpleQueueTest.test_reentrancy": _COLLECT,
    "TestEdgeCases.test_method_with_c_function": _TOOL,
}
if sys.version_info >= (3, 12):
    EXCLUDED = {k: v for k, v in EXCLUDED.items() if v not in (_HOOK, _COLLECT)}

# Runs in the child process: the tests of one module. Writes the result of each.
CHILD = '''
import json, sys, unittest
class Result(unittest.TextTestResult):
    ends = {}
    def note(self, test, end):
        # A failed subtest counts before the end of the test it is in.
        if self.ends.get(test.id(), "ok") == "ok": self.ends[test.id()] = end
    def addSuccess(self, test): super().addSuccess(test); self.note(test, "ok")
    def addError(self, test, e): super().addError(test, e); self.note(test, "error")
    def addFailure(self, test, e): super().addFailure(test, e); self.note(test, "failure")
    def addSkip(self, test, why): super().addSkip(test, why); self.note(test, "skipped")
    def addExpectedFailure(self, test, e):
        super().addExpectedFailure(test, e); self.note(test, "expected")
    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test); self.note(test, "unexpected")
    def addSubTest(self, test, sub, e):
        super().addSubTest(test, sub, e)
        if e is not None: self.note(test, "failure")
module, output, traced = sys.argv[1], sys.argv[2], sys.argv[3] == "traced"
sys.argv[1:] = []
summary = None
if traced:
    import kpytrace
    trace = kpytrace.start(gc=True, max_bytes="64MB", on_full="ring")
try:
    suite = unittest.defaultTestLoader.loadTestsFromName("test." + module)
    unittest.TextTestRunner(resultclass=Result, verbosity=2, warnings="ignore").run(suite)
finally:
    if traced:
        done = trace.stop()
        summary = {"calls": done.calls, "noop": done.noop}
    with open(output, "w") as f:
        json.dump({"ends": Result.ends, "summary": summary}, f)
'''


def run(module, traced, folder, limit):
    """Returns the result of each test, with the trace's summary, and the output; or None and a text if the run
    failed."""
    output = folder / "ends.json"
    script = folder / "child.py"
    script.write_text(CHILD)
    output.unlink(missing_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith("KPYTRACE")}
    process = subprocess.Popen(
        [sys.executable, str(script), module, str(output), "traced" if traced else "plain"],
        cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        text, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        return None, f"it took more than {limit} s\n{text[-2000:]}"
    if process.returncode or not output.exists():
        return None, f"it ended with {process.returncode}\n{text[-3000:]}"
    return json.loads(output.read_text()), text


def excluded(test):
    return any(part in test for part in EXCLUDED)


def differences(plain, traced):
    """Yields a line for each test with different results."""
    for test in sorted(set(plain) | set(traced)):
        before, after = plain.get(test, "absent"), traced.get(test, "absent")
        if before != after and not excluded(test):
            yield f"{test}: {before} untraced, {after} traced"


def output_of(test, text):
    """Returns unittest's output about a test that failed."""
    name = test.split(":")[0].rsplit(".", 1)[-1]
    at = text.rfind(f": {name} ")
    return text[at:at + 2500] if at >= 0 else text[-2000:]


def compare(module, folder, limit):
    """Returns 0 if the results are the same, and 1 otherwise."""
    began = time.monotonic()
    plain, text = run(module, False, folder, limit)
    if plain is None:
        print(f"  {module}: not compared, as it fails untraced: {text.splitlines()[0]}")
        return 0
    traced, text = run(module, True, folder, 5 * limit)
    if traced is None:
        print(f"  {module}: TRACED: {text}")
        return 1
    lines = list(differences(plain["ends"], traced["ends"]))
    if lines:  # run once more: a test that fails now and then by itself must not count
        again, text = run(module, True, folder, 5 * limit)
        if again is not None:
            lines = [line for line in differences(plain["ends"], again["ends"]) if line in lines]
    summary = traced["summary"]
    if summary["noop"] or not summary["calls"]:
        lines.append(f"{module}: nothing was recorded: {summary}")
    print(f"  {module}: {len(plain['ends'])} tests, {summary['calls']} calls held, "
          f"{time.monotonic() - began:.1f} s", flush=True)
    for line in lines:
        print(f"    DIFFERS {line}\n{output_of(line, text)}")
    return int(bool(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--limit", type=float, default=100, help="seconds for a module, untraced")
    parser.add_argument("modules", nargs="*")
    arguments = parser.parse_args()
    if not importlib.util.find_spec("test") or not importlib.util.find_spec("test.test_scope"):
        print("SKIPPED: this Python comes without its tests, the package `test`")
        return 77
    long = arguments.all or os.environ.get("KPYTRACE_TEST_LONG", "0") not in ("", "0")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="kpt-suite-") as folder:
        for module in arguments.modules or (WHOLE if long else QUICK):
            if importlib.util.find_spec("test." + module.split(".")[0]):
                failed += compare(module, pathlib.Path(folder), arguments.limit)
    print(f"{failed} modules differ" if failed else "no module differs")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
