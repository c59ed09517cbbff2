"""Our objects in structures of Python and of other libraries: each has the complete type that the structure
requires."""

import importlib.util
import os
import pathlib
import re
import sys
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case, FREE_THREADED, TAG, run_python

FORKS = """
import os, pickle, re, sys, threading, warnings
def fork():
    pid = os.fork()
    if not pid: os._exit(0)
    os.waitpid(pid, 0)
"""


@unittest.skipUnless(BACKEND.exists(), f"there is no backend for CPython {TAG} beside the plugin")
class Libraries(Case):
    def program(self, text, *arguments, status=0, **options):
        (self.folder / "program.py").write_text(textwrap.dedent(text))
        done = run_python(*arguments, "program.py", cwd=self.folder, **options)
        self.assertEqual(done.returncode, status, done.stderr[-3000:])
        return done

    def recorded(self, text, *arguments):
        return self.program(FORKS + textwrap.dedent(text), "-m", "kpytrace", "run", *arguments, "--")

    def test_warning_filters(self):
        """scikit-learn reads the pattern of each filter, and sends the filters to its workers."""
        done = self.recorded("""
            before = list(warnings.filters)
            fork()
            warnings.warn_explicit("This process (pid=1) is multi-threaded, use of fork() may lead to deadlocks",
                                   DeprecationWarning, "x.py", 1)
            for action, message, category, module, line in warnings.filters:
                assert action in ("default", "error", "ignore", "always", "module", "once"), action
                for pattern in (message, module):
                    assert pattern is None or isinstance(pattern, str) or isinstance(pattern, re.Pattern), pattern
                    isinstance(pattern, re.Pattern) and re.compile(pattern.pattern)
                assert issubclass(category, Warning) and isinstance(line, int)
            assert pickle.loads(pickle.dumps(warnings.filters)) == warnings.filters
            added = [row for row in warnings.filters if row not in before]
            for _ in range(3): fork()
            assert [row for row in warnings.filters if row not in before] == added
            print(len(added), len(before))
            """, "-o", "t.kpt")
        self.assertRegex(done.stdout, "^1 [0-9]+$" if sys.version_info >= (3, 12) else "^0 [0-9]+$")
        self.assertNotIn("deadlocks", re.sub(r"x\.py:1.*\n", "", done.stderr))

    @unittest.skipIf(sys.version_info < (3, 12), "it does not warn")
    def test_the_warning_of_a_fork(self):
        """Python warns as without us: if the program has other threads."""
        for threads, warned in ((0, 0), (1, 1)):
            with self.subTest(threads=threads):
                done = self.recorded(f"""
                    fork()
                    over = threading.Event()
                    others = [threading.Thread(target=over.wait) for _ in range({threads})]
                    for thread in others: thread.start()
                    with warnings.catch_warnings(record=True) as caught:
                        warnings.simplefilter("always")
                        fork()
                        warnings.warn("another")
                    over.set()
                    for thread in others: thread.join()
                    print(*(warning.category.__name__ for warning in caught))
                    """, "-o", "t.kpt")
                self.assertEqual(done.stdout.split(), ["DeprecationWarning"] * warned + ["UserWarning"])

    def test_warnings_that_were_shown_once(self):
        """A fork does not make Python show them again."""
        done = self.recorded("""
            fork()
            for _ in range(3):
                warnings.warn("shown once")
                fork()
            """, "-o", "t.kpt")
        self.assertEqual(done.stderr.count("UserWarning: shown once"), 1, done.stderr)

    def test_functions_that_are_pickled(self):
        text = """
            import multiprocessing, os, pickle, signal, _signal
            if __name__ == "__main__":
                assert pickle.loads(pickle.dumps(os._exit)) is os._exit
                assert pickle.loads(pickle.dumps(_signal.signal)) is _signal.signal
                assert (os._exit.__name__, os._exit.__module__) == ("_exit", "posix")
                child = multiprocessing.get_context("spawn").Process(target=os._exit, args=(7,))
                child.start()
                child.join()
                assert child.exitcode == 7, child.exitcode
            """
        self.program(text, "-m", "kpytrace", "run", "--")
        self.program(text, "-m", "kpytrace", "run", "--children", "--")

    @unittest.skipIf(FREE_THREADED, "memory is not recorded there")
    def test_finders_of_modules(self):
        (self.folder / "torch").mkdir()
        (self.folder / "torch" / "__init__.py").write_text("here = 5\n")
        done = self.program("""
            import importlib, importlib.machinery, importlib.metadata, importlib.util, pkgutil, sys
            import kpytrace, kpytrace.torch._autostart as auto
            auto._install = lambda: print("installed")
            auto.start()
            with kpytrace.memory():
                importlib.invalidate_caches()
                assert importlib.util.find_spec("there_is_none") is None
                list(importlib.metadata.distributions())
                for _ in range(2):  # a program that looks whether there is a torch, and imports it later
                    spec = importlib.util.find_spec("torch")
                    assert type(spec.loader) is importlib.machinery.SourceFileLoader, spec
                    assert spec.loader.get_source("torch") == "here = 5\\n"
                module = importlib.util.module_from_spec(spec)
                import torch
            assert torch.here == 5 and torch.__loader__ is torch.__spec__.loader
            assert type(torch.__loader__) is importlib.machinery.SourceFileLoader
            assert "exec_module" not in vars(torch.__loader__)
            assert not any(type(finder).__module__.startswith("kpytrace") for finder in sys.meta_path), sys.meta_path
            importlib.reload(torch)
            """, env={"KPYTRACE_TORCH": "1", "PYTHONPATH": os.pathsep.join((str(self.folder), os.environ["PYTHONPATH"]))})
        self.assertEqual(done.stdout, "installed\n")


@unittest.skipUnless(importlib.util.find_spec("sklearn"), "scikit-learn is not installed")
class ScikitLearn(Case):
    def test_cross_validation(self):
        done = run_python("-m", "kpytrace", "run", "-o", str(self.folder / "t.kpt"), "-c", textwrap.dedent("""
            import os
            from sklearn.datasets import load_iris
            from sklearn.linear_model import LogisticRegression
            from sklearn.model_selection import cross_val_score
            os.fork() or os._exit(0)
            print(len(cross_val_score(LogisticRegression(max_iter=200), *load_iris(return_X_y=True), n_jobs=2)))
            """), cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (0, "5\n"), done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()
