"""Runs programs in new processes, with torch's tracer or with kpytrace's."""

import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
SCENARIOS = os.path.join(os.path.dirname(HERE), "profiler", "scenarios.py")

INSTALL = "import kpytrace.torch; kpytrace.torch.install({mode!r})\n"


def torch_version():
    """(2, 13), without an import."""
    return tuple(int(part) for part in importlib.metadata.version("torch").split(".")[:2])


def events_have_calls():
    """Whether prof.events() has Python calls. In torch 2.11 it has only operators, also under torch's own tracer."""
    return torch_version() >= (2, 12)


def environment(**changes):
    """The process's environment with CHANGES; None removes a variable. A program can import what is in this folder,
    and the test that runs it."""
    test = os.path.dirname(os.path.abspath(sys.argv[0]))
    changed = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], HERE, test])}
    for name, value in changes.items():
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = value
    return changed


def python(*arguments, timeout=120, **variables):
    """Runs this Python, and returns its status and output."""
    return subprocess.run([sys.executable, "-W", "ignore", *arguments], capture_output=True,
                          text=True, timeout=timeout, env=environment(**variables))


def program(code, mode=None, **variables):
    """Runs CODE, with kpytrace installed if there is a MODE; the reply has its standard output as
    .value, read as JSON where it is."""
    code = "import light\n" + (INSTALL.format(mode=mode) if mode else "") + textwrap.dedent(code)
    reply = python("-c", code, **variables)
    if reply.returncode != 0:
        raise AssertionError(f"exit status {reply.returncode}\n{reply.stdout}\n{reply.stderr}")
    last = reply.stdout.strip().rpartition("\n")[2]
    try:
        reply.value = json.loads(last)
    except ValueError:
        reply.value = last
    return reply


def scenarios(kind):
    """Returns the output of scenarios.py: {scenario: value}."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "out.json")
        reply = python(SCENARIOS, kind, output)
        if reply.returncode != 0:
            raise AssertionError(f"{kind}: exit status {reply.returncode}\n{reply.stderr}")
        with open(output) as file:
            found = json.load(file)
    return {name: result["value"] for name, result in found.items()}
