"""Runs programs in new processes, with torch's tracer or with kpytrace's."""

import atexit
import importlib.metadata
import json
import os
import socket
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


class Forker:
    """A process that has imported torch, which takes two seconds, and that forks one for each program. kpytrace is not
    imported in it. With WHOLE it has imported torch's compiler, too (light/sitecustomize.py)."""
    # What a program may have of its own. torch and the dynamic linker read others when they are loaded.
    VARIABLES = {"CXX", "KPYTRACE_TEST_LONG", "KPYTRACE_TORCH_CACHE", "PATH"}
    PROGRAM = 99  # a descriptor that is free
    all = {}

    def __init__(self, whole):
        self.connection, other = socket.socketpair()
        with open(os.devnull) as none:
            os.dup2(none.fileno(), self.PROGRAM)
        variables = environment(KPT_FORKER=str(other.fileno()), KPYTRACE_TEST_LONG="1" if whole else None)
        variables["PYTHONPATH"] = os.path.join(HERE, "forked") + os.pathsep + variables["PYTHONPATH"]
        self.process = subprocess.Popen([sys.executable, "-W", "ignore", f"/dev/fd/{self.PROGRAM}"], env=variables,
                                        pass_fds=(other.fileno(), self.PROGRAM), stdin=subprocess.DEVNULL)
        os.close(self.PROGRAM)
        other.close()
        atexit.register(self.end)

    def end(self):
        self.connection.close()
        self.process.wait()

    def run(self, code, timeout, **variables):
        """As python("-c", CODE)."""
        with tempfile.TemporaryFile("w+") as program, tempfile.TemporaryFile("w+") as out, \
                tempfile.TemporaryFile("w+") as err:
            program.write(code)
            program.seek(0)
            message = json.dumps({"environment": environment(**variables)}).encode()
            socket.send_fds(self.connection, [message], [file.fileno() for file in (program, out, err)])
            self.connection.settimeout(timeout)
            answer = self.connection.recv(100)
            for file in (out, err):
                file.seek(0)
            return subprocess.CompletedProcess(["-c", code], int(answer), out.read(), err.read())

    @classmethod
    def of(cls, variables):
        """Returns the one for a program with VARIABLES, or None if it needs a process of its own. In long runs all
        do."""
        if os.environ.get("KPYTRACE_TEST_LONG") or not cls.VARIABLES.issuperset(variables):
            return None
        whole = "KPYTRACE_TEST_LONG" in variables
        if whole not in cls.all:
            cls.all[whole] = cls(whole)
        return cls.all[whole]


def attempt(code, mode=None, forked=False, **variables):
    """Runs CODE, with kpytrace installed if there is a MODE, and returns its status and output. FORKED: in quick runs
    the process is forked from one that has imported torch. Not for what compares threads: Kineto has noted the number
    of the main thread by then. Nor for what tests the start or the end of a process."""
    code = (INSTALL.format(mode=mode) if mode else "") + textwrap.dedent(code)
    forker = Forker.of(variables) if forked else None
    return forker.run(code, 120, **variables) if forker else python("-c", code, **variables)


def program(code, mode=None, forked=False, **variables):
    """As attempt(), and raises if the status is not 0. The reply has the program's standard output as .value, read as
    JSON where it is."""
    reply = attempt(code, mode, forked, **variables)
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
