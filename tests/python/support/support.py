"""Helpers of the tests of the Python package. They run with PYTHONPATH at the staged package, and
KPT_SAMPLE at the sample plugin, whose tracers hold fourteen calls on two threads."""

import contextlib
import gc
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import unittest
import unittest.mock
import warnings

from snapshots import Snapshot

import kpytrace

SAMPLE = pathlib.Path(os.environ.get("KPT_SAMPLE", "sample.so"))
READERS = os.environ.get("KPT_READERS", "")
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
TAG = "%d.%d%s" % (*sys.version_info[:2], "t" if FREE_THREADED else "")
BACKEND = kpytrace.plugin_path().with_name(f"libkpytrace_cpython{TAG}.so")


def clean_environment():
    """Returns an environment without options and without a GPU. If the machine has a GPU, the sample plugin reports
    one, too, and the tests count events."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("KPYTRACE")}
    return {**clean, "KPYTRACE_GPU": "0"} if os.path.exists("/dev/nvidiactl") else clean


class Case(unittest.TestCase):
    """A test with its own folder and without options in the environment. Fails if a trace is left running."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kpt-standalone-"))
        self.addCleanup(shutil.rmtree, self.folder)
        patch = unittest.mock.patch.dict(os.environ, clean_environment(), clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(self.end_trace)
        self.path = self.folder / "trace.json"

    def end_trace(self):
        running = kpytrace._api.trace._active
        if running is not None:
            running.close()

    def use_plugin(self, path):
        """Makes start() load another plugin."""
        patch = unittest.mock.patch.object(kpytrace._api.native, "plugin_file", lambda: path)
        patch.start()
        self.addCleanup(patch.stop)

    def use_noop(self):
        """Uses the real plugin in a folder without a backend."""
        (self.folder / "alone").mkdir()
        self.use_plugin(shutil.copy(kpytrace.plugin_path(), self.folder / "alone"))

    @contextlib.contextmanager
    def no_warnings(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    def read_trace(self, path=None):
        """Returns the trace, parsed strictly: no duplicate keys, no NaN."""
        def pairs(items):
            found = dict(items)
            if len(found) != len(items):
                self.fail(f"a key twice: {items}")
            return found

        def constant(name):
            self.fail(f"{name} is no JSON")

        text = (path or self.path).read_bytes().decode("utf-8", "strict")
        gc.disable()  # it would look through all that was read, again and again, in vain
        try:
            return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
        finally:
            gc.enable()

    def calls(self, path=None):
        return [e for e in self.read_trace(path)["traceEvents"] if e["ph"] == "X"]

    def names(self, path=None):
        return [event["name"] for event in self.calls(path)]


class MemoryCase(Case):
    """A test that records memory. Stops a recording that the test leaves running."""

    def setUp(self):
        super().setUp()
        self.path = self.folder / "memory.pickle"
        self.addCleanup(self.end_memory)

    def record(self, work, *arguments, **options):
        """Returns the snapshot, and the result of `work`, which keeps its blocks alive."""
        with kpytrace.memory(self.path, **options):
            kept = work(*arguments)
        return Snapshot(self.path).check(self), kept

    def program(self, text, status=0):
        """Runs a program in a new process, with a time limit."""
        done = run_python("-X", "faulthandler", "-c", textwrap.dedent(text), self.path, cwd=self.folder)
        self.assertEqual(done.returncode, status, done.stderr[-3000:])
        return done

    def kept_sizes(self, path=None):
        return [block["size"] for block in Snapshot(path or self.path).check(self).blocks]

    def end_memory(self):
        memory = sys.modules.get("kpytrace._api.memory")  # imported when it is asked for
        if memory and memory._active is not None:
            memory._active.close()


def read_perfetto(path):
    """Returns the output of perfetto_calls.py, which reads with Perfetto's own descriptions."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_PRELOAD")}
    script = pathlib.Path(__file__).with_name("perfetto_calls.py")
    return json.loads(subprocess.run([READERS, script, path], check=True, env=clean,
                                     stdout=subprocess.PIPE).stdout)


def line_of(function, offset):
    return function.__code__.co_firstlineno + offset


def limit_file_size(size):
    """Returns a statement after which its process can't write a file of more than SIZE bytes. In a build with
    coverage the process then writes no coverage data: the limit would cut the files that all processes share."""
    return "import os, resource; os.environ['GCOV_PREFIX'] = '/dev/null'; " \
           f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"


def run_python(*arguments, **options):
    """Runs this Python in a new process, with the package in its path and no option set."""
    env = {**clean_environment(), **options.pop("env", {})}
    return subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=env, timeout=options.pop("timeout", 120),
                          **options)
