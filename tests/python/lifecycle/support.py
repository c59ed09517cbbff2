"""Shared code of the life-cycle tests. Each test is a program that this Python runs in a separate process, with a
time limit. A hang, a crash and a failed assertion in it are all failures."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
LONG = os.environ.get("KPYTRACE_TEST_LONG", "0") not in ("", "0")
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
MONITORING = sys.version_info >= (3, 12)

PRELUDE = """
import os, sys, threading, time
def spin(seconds):
    "Work that is all calls."
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for i in range(100): abs(i)
"""


def rounds(quick, long):
    """Returns the number of rounds, which depends on KPYTRACE_TEST_LONG."""
    return long if LONG else quick


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kpt-life-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.trace = self.folder / "trace.json"

    def program(self, text, limit=60, status=0, env=None, arguments=()):
        """Runs the program and returns its output. It must exit with STATUS within LIMIT seconds."""
        path = self.folder / "program.py"
        path.write_text(PRELUDE + textwrap.dedent(text))
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KPYTRACE")}
        environment["PYTHONPATH"] = os.pathsep.join((environment.get("PYTHONPATH", ""), str(HERE)))
        environment["PYTHONFAULTHANDLER"] = "1"
        environment["TRACE"] = str(self.trace)
        environment.update(env or {})
        command = [sys.executable, "-X", "dev"] if os.environ.get("KPT_DEV") else [sys.executable]
        process = subprocess.Popen([*command, str(path), *arguments], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=environment,
                                   cwd=self.folder, start_new_session=True)
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGABRT)  # also to its children: each prints its stacks
            time.sleep(1)
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            self.fail(f"it hung\n{out[-2000:]}\n{err[-4000:]}")
        self.assertEqual(process.returncode, status, f"\n{out[-2000:]}\n{err[-4000:]}")
        self.errors = err
        return out


def main():
    unittest.main(verbosity=2)
