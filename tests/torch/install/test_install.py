"""install() and uninstall(), the cache, and environments in which kpytrace does not work."""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support
from kpytrace.torch import _environment, _self_test

TRACED = """
import torch, traced
def marker(): torch.ones(1)
print(sum(row["name"].endswith(": marker") for row in traced.calls(traced.run(marker))))
"""

# Installs, says what happened, and then traces with whatever is there.
REFUSED = """
import json, torch, traced, kpytrace.torch
try:
    kpytrace.torch.install()
    text = "installed"
except kpytrace.torch.TorchHostError as error:
    text = str(error)
def marker(): torch.ones(1)
found = sum(row["name"].endswith(": marker") for row in traced.calls(traced.run(marker)))
print(json.dumps([text, found]))
"""


UNTESTED = "import kpytrace.torch._self_test; kpytrace.torch._self_test.TESTED = ()\n"

# Shims that compile and load, and do not work.
CRASHES = """#include <stdlib.h>
PyMODINIT_FUNC PyInit__shim_module(void) { abort(); }
"""
DOES_NOTHING = """
static PyObject *nothing(PyObject *, PyObject *) { Py_RETURN_NONE; }
static PyMethodDef any = {"any", nothing, METH_VARARGS, nullptr};
static PyObject *get(PyObject *, PyObject *) { return PyCFunction_New(&any, nullptr); }
static PyMethodDef methods[] = {{"__getattr__", get, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_shim_module", nullptr, -1, methods,
                                 nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__shim_module(void) { return PyModule_Create(&definition); }
"""


def program(code, **variables):
    return support.program(code, forked=True, **variables)


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def refused(self, code=REFUSED, **variables):
        """Returns the text of the error, after checking that torch's own tracer works."""
        text, found = program(code, **variables).value
        self.assertEqual(found, 1)
        return text

    def test_uninstall_brings_stock_back(self):
        value = program("""
            import json, sys, torch, traced, kpytrace.torch
            def inside():
                torch.ones(1)
                return type(sys.getprofile()).__name__
            before = traced.run(inside).result
            kpytrace.torch.install()
            kept = traced.run(inside)
            during, mode = kept.result, kpytrace.torch.installed()
            answer = kpytrace.torch.uninstall()
            result = kept.profiler.kineto_results
            names = ([e.name() for e in result.events()] if traced.EVENTS_HAVE_CALLS else
                     [e.name for e in traced.events_of(result.experimental_event_tree())])
            held = sum(name.endswith(": inside") for name in names)
            prof = traced.run(inside)
            found = [row["name"] for row in traced.calls(prof)]
            print(json.dumps([before, during, mode, answer, prof.result,
                              held and any(name.endswith(": inside") for name in found),
                              kpytrace.torch.installed(), kpytrace.torch.uninstall()]))
            """).value
        before, during, mode, answer, after, found, installed, again = value
        self.assertEqual((before, after), ("TraceContext", "TraceContext"))
        self.assertNotEqual(during, "TraceContext")
        self.assertEqual((mode, answer, found, installed, again),
                         ("full", "stock", True, None, "stock"))

    def test_what_was_recorded_before_uninstall_is_exported_after_it(self):
        value = program("""
            import gc, json, tempfile, torch, kpytrace.torch
            from torch.profiler import profile
            def inside():
                torch.ones(1)
            def calls(prof):
                with tempfile.TemporaryDirectory() as folder:
                    prof.export_chrome_trace(folder + "/trace.json")
                    with open(folder + "/trace.json") as file:
                        return sum(e["name"].endswith(": inside") for e in json.load(file)["traceEvents"])
            def places():
                return [vars(torch._C._autograd._ProfilerResult)["save"], torch.autograd._disable_profiler,
                        vars(torch.autograd.profiler.profile).get("kineto_results")]
            before = places()
            kpytrace.torch.install("fast")
            with profile(with_stack=True) as ended:
                inside()
            with profile(with_stack=True) as running:
                kpytrace.torch.uninstall()
                inside()
            found = [calls(ended), calls(running)]
            del ended, running
            gc.collect()
            print(json.dumps([found, places() == before]))
            """).value
        self.assertEqual(value, [[1, 1], True])

    def test_uninstall_of_a_stripped_torch(self):
        value = program("""
            import json, torch, traced, kpytrace.torch
            from kpytrace.torch import _stock_symbols
            _stock_symbols.TRACER = b"_ZN5torch7nothingEv"
            kpytrace.torch.install()
            answer = kpytrace.torch.uninstall()
            print(json.dumps([answer, len(traced.calls(traced.run(lambda: torch.ones(1))))]))
            """).value
        self.assertEqual(value, ["none", 0])

    def test_recordings_live_as_long_as_their_results(self):
        value = program("""
            import gc, json, torch, traced, kpytrace.torch
            from kpytrace.torch import _results
            kpytrace.torch.install("fast")
            first = traced.run(lambda: torch.ones(1))
            second = traced.run(lambda: torch.ones(1))
            kept = [_results.recording_of(p.profiler.kineto_results) is not None
                    for p in (first, second)]
            python = sum(e.name().endswith(": run")
                         for e in first.profiler.kineto_results.events())
            del first
            gc.collect()
            print(json.dumps([kept, python, len(_results._recordings)]))
            """).value
        self.assertEqual(value, [[True, True], 0, 1])

    def test_wrong_mode(self):
        reply = support.python("-c", "import kpytrace.torch; kpytrace.torch.install('some')")
        self.assertIn("mode must be 'all', 'full', 'fast' or 'native', not 'some'", reply.stderr)

    def test_late_threads_can_be_left_out(self):
        code = """
            import threading, torch, traced, kpytrace.torch
            kpytrace.torch.install("all", threads={threads})
            def marker(): torch.ones(1)
            def work():
                thread = threading.Thread(target=marker)
                thread.start()
                thread.join()
            found = traced.calls(traced.run(work))
            print(sum(row["name"].endswith(": marker") for row in found))
            """
        self.assertEqual(program(code.format(threads=True)).value, 1)
        self.assertEqual(program(code.format(threads=False)).value, 0)

    def test_no_compiler(self):
        text = self.refused(KPYTRACE_TORCH_CACHE=self.folder, PATH=self.folder, CXX=None)
        self.assertIn("no C++ compiler", text)
        self.assertIn("python -m kpytrace.torch build", text)

    def test_no_compiler_is_needed_for_a_full_cache(self):
        self.assertEqual(program(REFUSED, PATH=self.folder, CXX=None).value,
                         ["installed", 1])

    def test_another_torch_in_the_cache(self):
        os.makedirs(os.path.join(self.folder, "torch-2.0.1-cpython-311-0123456789abcdef"))
        text = self.refused(KPYTRACE_TORCH_CACHE=self.folder, PATH=self.folder, CXX=None)
        self.assertIn("The cache has one for torch 2.0.1, but a shim fits one torch only", text)

    def test_compiler_that_fails(self):
        compiler = self.write("bad-c++", "#!/bin/sh\necho 'x.cc:1: error: no such thing' >&2\nexit 1\n")
        text = self.refused(KPYTRACE_TORCH_CACHE=self.folder, CXX=compiler)
        self.assertIn("can't be compiled", text)
        self.assertIn("error: no such thing", text)

    def test_cache_that_can_not_be_written(self):
        path = self.write("file", "")
        text = self.refused(KPYTRACE_TORCH_CACHE=os.path.join(path, "below"))
        self.assertIn("KPYTRACE_TORCH_CACHE", text)

    def test_no_kineto(self):
        code = "import torch; torch.autograd.kineto_available = lambda: False\n" + REFUSED
        self.assertIn("without Kineto", self.refused(code))

    def test_no_torch(self):
        self.write("torch.py", "raise ImportError('none here')")
        reply = support.python("-c", f"import sys; sys.path.insert(0, {self.folder!r})\n"
                               "import kpytrace.torch; kpytrace.torch.install()")
        self.assertIn("torch can't be imported (none here): install it", reply.stderr)

    def test_two_processes_compile_at_once(self):
        """One process compiles, and both use the result. The compiler is slow and logs its calls; torch may call it for
        purposes of its own. With a GPU there are two libraries, the second for CUDA."""
        finished = support.python("-m", "kpytrace.torch", "build").stdout.splitlines()
        log = os.path.join(self.folder, "log")
        compiler = self.write("slow-c++", f"""#!/bin/sh
case "$*" in *--version*) echo slow; exit;; esac
echo "$*" >> {log}
sleep 2
case "$*" in *-lc10_cuda*) made={finished[-1]};; *) made={finished[0]};; esac
while [ "$1" != -o ]; do shift; done
cp $made "$2"
""")
        environment = support.environment(KPYTRACE_TORCH_CACHE=self.folder, CXX=compiler)
        command = [sys.executable, "-W", "ignore", "-m", "kpytrace.torch", "build"]
        both = [subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE) for _ in range(2)]
        replies = [process.communicate(timeout=120) for process in both]
        self.assertEqual([process.returncode for process in both], [0, 0], replies)
        self.assertEqual(len({out for out, _ in replies}), 1)
        with open(log) as file:
            calls = file.read().splitlines()
        self.assertEqual(len([call for call in calls if "/unit.cc -o " in call]), len(finished), calls)
        waited = [err for _, err in replies if "another process is compiling" in err]
        self.assertLessEqual(len(waited), len(finished))

    def stub_compiler(self, source):
        """Returns a compiler that makes a Python module from SOURCE, for any input."""
        path = self.write("stub.cc", "#include <Python.h>\n" + source)
        return self.write("stub-c++", f"""#!/bin/sh
case "$*" in *--version*) echo stub; exit;; esac
while [ "$1" != -o ]; do shift; done
exec {_environment.find_compiler()} -shared -fPIC -I{_environment.python_headers()} {path} -o "$2"
""")

    def test_issue_23_self_test_passes_once(self):
        """On a torch that is not in the list of tested releases, the first use of a shim runs the self-test."""
        shim = support.python("-m", "kpytrace.torch", "build").stdout.splitlines()[0]
        folder = os.path.join(self.folder, os.path.basename(os.path.dirname(shim)))
        os.mkdir(folder)
        shutil.copy(shim, folder)
        for tests in (1, 0):
            reply = program(UNTESTED + REFUSED, KPYTRACE_TORCH_CACHE=self.folder)
            self.assertEqual(reply.value, ["installed", 1])
            self.assertEqual(reply.stderr.count("testing the shim for torch"), 2 * tests, reply.stderr)

    def test_issue_23_self_test_fails(self):
        """A shim that crashes, and one that does nothing: neither is used, and the result is stored."""
        for source, why in ((CRASHES, "killed by signal 6"), (DOES_NOTHING, "kpytrace has recorded nothing")):
            with self.subTest(why):
                cache = tempfile.mkdtemp(dir=self.folder)
                variables = {"KPYTRACE_TORCH_CACHE": cache, "CXX": self.stub_compiler(source)}
                for tests in (1, 0):
                    reply = program(UNTESTED + REFUSED, **variables)
                    text, found = reply.value
                    self.assertEqual(found, 1)
                    self.assertIn("failed its self-test", text)
                    self.assertIn(why, text)
                    self.assertIn("python -m kpytrace.torch build --again", text)
                    self.assertEqual(reply.stderr.count("testing the shim for torch"), 2 * tests)

    def test_the_self_test_compiles_another_unit(self):
        """As the part for CUDA on a machine with a GPU. The self-test waited for the lock of its parent, until it had
        taken too long, and the shim was refused."""
        reply = program(UNTESTED + """
import signal, torch
from kpytrace.torch import _compile, _cuda, _self_test, _shim

def compile_unit(torch, compiler, path, unit):
    path.write_text("")

def run(torch, shim):
    print(_shim.build(torch, unit=_cuda.UNIT).name.startswith("cuda-"))

_compile.compile_unit, _self_test.run = compile_unit, run
signal.alarm(60)
_shim.build(torch)
""", KPYTRACE_TORCH_CACHE=self.folder)
        self.assertEqual(reply.stdout, "True\n")

    def test_issue_23_tested_releases(self):
        with unittest.mock.patch.object(_self_test, "TESTED", ("2.13", "2.15")):
            for version, tested in (("2.13.0", True), ("2.13.1+cu130", True), ("2.15.0+cpu", True),
                                    ("2.14.0", False), ("2.13.0a0+git12", False), ("2.130.0", False)):
                self.assertEqual(_self_test.is_tested(version), tested, version)

    def test_zero_touch(self):
        shutil.copy(pathlib.Path(__file__).parents[3] / "hosts/startup/kpytrace.pth", self.folder)
        code = (f"import site; site.addsitedir({self.folder!r})\nimport kpytrace.torch\n"
                "import torch\nprint(kpytrace.torch.installed())")
        for value, mode in (("1", "full"), ("all", "all"), ("0", "None")):
            self.assertEqual(program(code, KPYTRACE_TORCH=value).value, mode, value)
        reply = program(code, KPYTRACE_TORCH="1", CXX="/nowhere", PATH=self.folder,
                                KPYTRACE_TORCH_CACHE=self.folder)
        self.assertEqual(reply.value, "None")
        self.assertIn("torch keeps its own tracer", reply.stderr)

    def test_both_variables(self):
        """KPYTRACE records beside the profiler; neither warns of the other."""
        shutil.copy(pathlib.Path(__file__).parents[3] / "hosts/startup/kpytrace.pth", self.folder)
        path = os.path.join(self.folder, "program.json")
        reply = program(f"""
            import warnings
            warnings.simplefilter("always")
            import site
            site.addsitedir({self.folder!r})
            import json, torch
            from torch.profiler import profile
            def work(): return torch.ones(2) + 1
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with profile(with_stack=True) as p:
                    work()
            p.export_chrome_trace({self.folder!r} + "/profile.json")
            print(json.dumps([str(warning.message) for warning in caught]))
            """, KPYTRACE=path, KPYTRACE_TORCH="1")
        self.assertEqual([text for text in reply.value if "kpytrace" in text], [])
        self.assertNotIn("Warning: kpytrace", reply.stderr)
        for name in ("program.json", "profile.json"):
            with open(os.path.join(self.folder, name)) as file:
                self.assertIn(": work", file.read(), name)


if __name__ == "__main__":
    unittest.main()
