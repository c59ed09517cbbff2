"""How Python's start switches the recorders on: the .pth file in a virtual environment, where Python runs it twice, and
python -E and -I, which ignore our variables as they ignore Python's own."""

import os
import pathlib
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case, FREE_THREADED, TAG, clean_environment, run_python

import kpytrace

PTH = pathlib.Path(__file__).parents[3] / "hosts/startup/kpytrace.pth"
PACKAGE = pathlib.Path(kpytrace.__file__).parents[1]

PROGRAM = """
import os, subprocess, sys
def work(): return len("x")
work()
for _ in range(2):
    pid = os.fork()
    if not pid:
        work()
        sys.exit(0)
    os.waitpid(pid, 0)
subprocess.run([sys.executable, "-c", "def work(): pass\\nwork()"], check=True)
"""


@unittest.skipUnless(BACKEND.exists(), f"there is no backend for CPython {TAG} beside the plugin")
class VirtualEnvironment(Case):
    def setUp(self):
        super().setUp()
        self.venv = self.folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.venv], check=True)
        site = next(self.venv.glob("lib/python*/site-packages"))
        (site / "kpytrace.pth").write_text(PTH.read_text())
        (site / "kpytrace").symlink_to(PACKAGE / "kpytrace")
        (site / "count.pth").write_text("import sys; sys.times = getattr(sys, 'times', 0) + 1\n")

    def python(self, *arguments, **variables):
        env = {name: value for name, value in clean_environment().items() if name != "PYTHONPATH"}
        return subprocess.run([self.venv / "bin/python", *arguments], cwd=self.folder, env={**env, **variables}, text=True,
                              capture_output=True, timeout=120)

    def program(self, **variables):
        (self.folder / "program.py").write_text(PROGRAM)
        done = self.python("program.py", **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_it_is_run_twice(self):
        """A precondition of these tests."""
        times = "2\n" if sys.version_info < (3, 15) else "1\n"  # 3.15 runs it once
        self.assertEqual(self.python("-c", "import sys; print(sys.times)").stdout, times)

    def test_alone(self):
        said = self.program(KPYTRACE="t.json")
        self.assertRegex(said, r"\Akpytrace: [0-9,]+ calls of 1 thread in [0-9.]+ s: .*t\.json\n"
                               r"kpytrace: see it with: kpytrace view .*t\.json\n\Z")

    def test_with_children(self):
        for output, ring in (("t.json", ""), ("r.json", " ring=10s"), ("k.kpt", "")):
            with self.subTest(output=output):
                said = self.program(KPYTRACE=f"{output} children=1{ring}")
                for line in said.splitlines():
                    self.assertRegex(line, r"calls of|4 processes|children have files of their own|see it with: kpytrace view")
                folder = self.folder / f"{output.partition('.')[0]}.children"
                members = sorted(path.name for path in folder.iterdir())
                self.assertEqual([name for name in members if not name.endswith(".kpt")], [])
                self.assertEqual(len(members), 3 + (not output.endswith(".kpt")), members)

    @unittest.skipIf(FREE_THREADED, "memory is not recorded there")
    def test_memory_with_children(self):
        said = self.program(KPYTRACE_MEMORY="m.pickle children=1")
        self.assertRegex(said, r"\Akpytrace: memory recording: \S+; 3 children have files of their own: \S+\n\Z")

    def test_subinterpreters(self):
        """Subinterpreters run the .pth file, too."""
        done = self.python("-c", textwrap.dedent("""
            import sys
            if sys.version_info >= (3, 13): import _interpreters as interpreters
            else: import _xxsubinterpreters as interpreters
            one = interpreters.create()
            interpreters.run_string(one, "import sys; print('kpytrace._processes.autostart' in sys.modules)")
            interpreters.destroy(one)
            """), KPYTRACE="t.json children=1")
        self.assertEqual((done.returncode, done.stdout), (0, "False\n"), done.stderr)
        self.assertRegex(done.stderr, r"\Akpytrace: [0-9,]+ calls of 1 process: .*\nkpytrace: see it with: .*\n\Z")

    def test_an_error_is_reported_once(self):
        (self.folder / "torch.py").write_text("")
        for variable, value, words in (("KPYTRACE", "1 deep=3", "the program is not recorded"),
                                       ("KPYTRACE_MEMORY", "1 deep=3", "the program's memory is not recorded"),
                                       ("KPYTRACE_TORCH", "1", "torch keeps its own tracer")):
            done = self.python("-c", "import sys; sys.path.insert(0, '.'); import torch", **{variable: value})
            self.assertEqual((done.returncode, done.stderr.count(words), done.stderr.count("\n")), (0, 1, 1), done.stderr)

    def test_isolated(self):
        before = sorted(os.listdir(self.folder))
        for option in ("-E", "-I"):
            for variable in ("KPYTRACE", "KPYTRACE_MEMORY", "KPYTRACE_TORCH"):
                done = self.python(option, "-c", "import sys; print([m for m in sys.modules if 'kpytrace' in m])",
                                   **{variable: "1"})
                self.assertEqual((done.stdout, done.stderr), ("[]\n", ""), (option, variable))
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_the_command_where_python_is_isolated(self):
        """Options on the command line work, although the environment is ignored."""
        (self.folder / "program.py").write_text("def work(): pass\nwork()\n")
        for option in ("-E", "-I"):
            done = self.python(option, "-m", "kpytrace", "run", "-o", "t.json", "program.py", KPYTRACE_OUTPUT="other.json",
                               KPYTRACE_MAX_DEPTH="1", KPYTRACE_TORCH="1")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(": work", " ".join(self.names(self.folder / "t.json")))
            (self.folder / "t.json").unlink()
        self.assertFalse((self.folder / "other.json").exists())


class Isolated(Case):
    def test_options(self):
        """Options, outputs and paths, of which one names a library that is loaded."""
        text = textwrap.dedent(f"""
            import os, sys
            sys.path.insert(0, {str(PACKAGE)!r})
            import kpytrace, kpytrace.torch._shim
            t = kpytrace.trace()
            assert t._output is None and "max_depth" not in t._options, t._options
            assert not str(kpytrace.torch._shim.cache_folder()).startswith("/nowhere")
            with t: pass
            assert "KPYTRACE_CUPTI" not in os.environ
            """)
        env = {"KPYTRACE_OUTPUT": str(self.path), "KPYTRACE_MAX_DEPTH": "3", "KPYTRACE_TORCH_CACHE": "/nowhere",
               "KPYTRACE_CUPTI": "/nowhere/libcupti.so", "KPYTRACE_VERBOSE": "1", "KPYTRACE_GPU": "1"}
        for option in ("-E", "-I"):
            done = run_python(option, "-W", "ignore", "-c", text, env=env)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertFalse(self.path.exists())


if __name__ == "__main__":
    unittest.main()
