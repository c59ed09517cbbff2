"""kpytrace run and KPYTRACE=1: a traced program behaves as without the tracer. Each program here runs with python
alone and with kpytrace, and both have the same status and output."""

import io
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import Case, run_python

from kpytrace._processes import autostart

# What a program can see, with where it differs by nature left out.
PROGRAMS = {
    "arguments": "import sys; print(sys.argv, __name__, __spec__ is None, sorted(vars()))",
    "main": "import __main__, sys; print(__main__.__file__, sys.modules['__main__'] is __main__)",
    "path": "import sys; print(sys.path, sys.flags, sys.warnoptions)",
    "environment": "import os; print({k: v for k, v in os.environ.items()})",
    "standard input": "import sys; print(sys.stdin.read().upper())",
    "an exception": "def f():\n    raise ValueError('text')\nf()",
    "a chained exception": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e",
    "a syntax error": "def f(:",
    "an exit status": "import sys; sys.exit(7)",
    "an exit text": "import sys; sys.exit('a message')",
    "an exit in a thread": "import sys, threading\nt = threading.Thread(target=sys.exit, args=(3,))\n"
                           "t.start(); t.join(); print('goes on')",
    "an exception in a thread": "import threading\n"
                                "t = threading.Thread(target=lambda: 1 / 0, name='worker')\n"
                                "t.start(); t.join(); print('goes on')",
    "_exit": "import os, sys; print('x', flush=True); os._exit(9)",
    "exit functions": "import atexit; atexit.register(print, 'first'); atexit.register(print, 'last')",
    "a deadly signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "an interrupt": "import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(5)",
    "its own profiler": "import cProfile, io, pstats\np = cProfile.Profile()\np.enable()\nsorted([3, 1])\n"
                        "p.disable()\nprint(len(p.getstats()) > 0)",
    "its own profile function": "import sys\nseen = []\nsys.setprofile(lambda f, e, a: seen.append(e))\n"
                                "len([])\nsys.setprofile(None)\nprint(seen[-3:])",  # beside another tool
                                # the interpreter tells the return of setprofile itself, too
    "a deep recursion": "import sys\nsys.setrecursionlimit(20000)\n"
                        "def f(n):\n    return n and 1 + f(n - 1)\nprint(f(15000))",
    "a recursion without end": "def f(): f()\ntry:\n    f()\nexcept RecursionError as e:\n    print(e)",
    "a child": "import os, subprocess, sys\nprint(subprocess.check_output([sys.executable, '-c', "
               "'import os; print(\"KPYTRACE\" in os.environ)'], text=True))",
    "a fork": "import os\npid = os.fork()\nif not pid: os._exit(5)\n"
              "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
    "a pool": "import multiprocessing as m\n"
              "if __name__ == '__main__':\n    with m.get_context('fork').Pool(2) as p: "
              "print(p.map(abs, [-1, -2]))",
    "names": "def _make(name):\n    def f(): pass\n    f.__code__ = f.__code__.replace(co_name=name)\n"
             "    return f\nfor n in ('a\"b', 'back\\\\slash', 'new\\nline', '\\x01\\x7f', 'ünïcödé', "
             "'\\U0001f40d', '\\ud800', 'semi;colon', '<x>&', 'a' * 30000, ''):\n    _make(n)()",
    "many threads in turn": "import threading\nfor i in range(300):\n"
                            "    t = threading.Thread(target=len, args=('',)); t.start(); t.join()",
    "no standard error": "import os, sys; os.close(2); sys.stderr = None; print('fine')",
    "standard streams that are closed": "import sys; sys.stdout.close()",
}


class Run(Case):
    def setUp(self):
        super().setUp()
        self.script = self.folder / "the program.py"
        self.output = self.folder / "the trace.json"

    def run_both(self, text, *arguments, **options):
        """Returns the status, output and errors with python alone and with `kpytrace run`."""
        self.script.write_text(text, encoding="utf-8", errors="surrogatepass")
        ends = []
        for command in ([], ["-m", "kpytrace", "run", "-q", "-o", str(self.output)]):
            reply = run_python(*command, str(self.script), *arguments, cwd=self.folder,
                               input="text", **options)
            ends.append((reply.returncode, reply.stdout, reply.stderr))
        return ends

    def test_programs_cannot_tell(self):
        for name, text in PROGRAMS.items():
            if name == "its own profile function" and sys.version_info < (3, 12):
                continue  # the interpreter has one place for it
            with self.subTest(name):
                self.output.unlink(missing_ok=True)
                alone, traced = self.run_both(text, "a", "-b", "c d")
                self.assertEqual(alone, traced)
                if name == "a deadly signal":  # nobody is asked: only a .kpt would be there
                    continue
                calls = self.calls(self.output)
                if name != "a syntax error":
                    self.assertTrue(any("the program.py" in call["name"] for call in calls))

    def test_forks_are_warned_of_for_the_programs_threads_only(self):
        """Python 3.12 and later count all threads, and a stream has one of ours."""
        self.output = self.folder / "the trace.kpt"
        fork = "import os\npid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)\n"
        alone, traced = self.run_both(fork)
        self.assertEqual(alone, traced)
        held = "import threading\nheld = threading.Event()\nthreading.Thread(target=held.wait).start()\n"
        for status, _, said in self.run_both(held + fork + "held.set()"):
            self.assertEqual(status, 0)
            self.assertEqual("use of fork() may lead to deadlocks" in said, sys.version_info >= (3, 12), said)

    def test_the_interpreters_options_stay(self):
        self.script.write_text("import sys, _imp; print(sys.flags, sys.stdout.write_through, sys.warnoptions, "
                               "sys._xoptions, _imp.check_hash_based_pycs)")
        command = ["run", "-q", "-o", str(self.output)]
        for alone, traced in ((["-O", "-X", "dev"], ["-O", "-X", "dev", "-m", "kpytrace"]),
                              (["-u"], ["-um", "kpytrace"]), ([], ["-mkpytrace"]), (["-uO"], ["-uOmkpytrace"]),
                              (["-Wonce", "-OXdev", "-W", "ignore"], ["-Wonce", "-OXdev", "-W", "ignore", "-m", "kpytrace"]),
                              (["--check-hash-based-pycs", "always"],
                               ["--check-hash-based-pycs", "always", "-m", "kpytrace"])):
            with self.subTest(traced):
                ends = [(reply.returncode, reply.stdout, reply.stderr) for reply in (
                    run_python(*alone, str(self.script)), run_python(*traced, *command, str(self.script)))]
                self.assertEqual(*ends)
                self.assertEqual(ends[0][0], 0, ends)
                self.assertTrue(self.calls(self.output))
                self.output.unlink()

    def test_modules_code_and_standard_input(self):
        (self.folder / "package").mkdir()
        (self.folder / "package" / "__main__.py").write_text(
            "import sys; print(__name__, __package__, sys.argv[1:])")
        for arguments in (["-m", "package", "x"], ["-c", "import sys; print(sys.argv)", "-x", "y"],
                          ["-"]):
            ends = []
            for command in ([], ["-m", "kpytrace", "run", "-q", "-o", str(self.output)]):
                reply = run_python(*command, *arguments, cwd=self.folder,
                                   input="import sys; print('in', sys.argv)")
                ends.append((reply.returncode, reply.stdout, reply.stderr))
            self.assertEqual(*ends)
            self.assertEqual(ends[0][0], 0, ends[0][2])
            self.assertTrue(self.calls(self.output))

    def test_a_line_names_the_output(self):
        self.script.write_text("len('')")
        reply = run_python("-m", "kpytrace", "run", "-o", str(self.output), str(self.script))
        self.assertRegex(reply.stderr, r"^kpytrace: [\d,]+ calls of 1 thread in .* s: .*trace\.json\n")
        reply = run_python("-m", "kpytrace", "run", str(self.script), cwd=self.folder)
        self.assertTrue((self.folder / "kpytrace.kpt").exists(), reply.stderr)

    def test_the_last_line_is_the_next_command(self):
        for output, command in (("a.kpt", "view a.kpt"), ("a b.json.gz", "view 'a b.json.gz'"), ("a.html", "view a.html"),
                                ("a.pftrace", "view --perfetto a.pftrace"), ("../x.kpt", "view /.*/x.kpt"),
                                ("a.speedscope.json", None), ("a.collapsed", "")):
            with self.subTest(output):
                reply = run_python("-m", "kpytrace", "run", "-o", output, "-c", "import os; os.chdir('/')", cwd=self.folder)
                last = reply.stderr.splitlines()[-1]
                expected = (f"kpytrace: see it with: kpytrace {command}" if command else
                            "kpytrace: .* calls of .*" if command == "" else "kpytrace: see it in https://www.speedscope.app")
                self.assertRegex(last, f"^{expected}$")
        (self.folder.parent / "x.kpt").unlink()

    def test_a_console_script_on_the_path(self):
        tool = self.folder / "bin" / "a-tool"
        tool.parent.mkdir()
        tool.write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:], __name__)\n")
        tool.chmod(0o755)
        (self.folder / "a-tool").mkdir()  # a folder of the project with the same name
        path = os.pathsep.join((str(tool.parent), os.environ.get("PATH", "")))
        reply = run_python("-m", "kpytrace", "run", "-q", "-o", "x.kpt", "a-tool", "-x", env={"PATH": path}, cwd=self.folder)
        self.assertEqual((reply.returncode, reply.stdout), (0, "['-x'] __main__\n"), reply.stderr)
        reply = run_python("-m", "kpytrace", "run", "ls", "/", cwd=self.folder)
        self.assertEqual((reply.returncode, reply.stdout), (2, ""))
        self.assertIn("is not a Python script", reply.stderr)

    def test_an_interrupt_from_outside(self):
        self.script.write_text("import time\nprint('ready', flush=True)\nwhile True:\n    time.sleep(60)")
        ends = []
        for command in ([], ["-m", "kpytrace", "run", "-q", "-o", str(self.output)]):
            child = subprocess.Popen([sys.executable, *command, str(self.script)], text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(child.stdout.readline(), "ready\n")
            time.sleep(1)  # it sleeps now, in both cases
            child.send_signal(signal.SIGINT)
            ends.append((*child.communicate(timeout=60), child.returncode))
        self.assertEqual(*ends)
        self.assertTrue(self.calls(self.output))

    def test_mistakes_are_reported(self):
        rows = [([], "no program is given"), (["none.py"], "the script does not exist"), (["-m"], "needs a module"),
                (["--ringg", "1s", "x.py"], "did you mean --ring"), (["-o"], "needs a value"),
                (["--gc=1", "x.py"], "takes no value"), (["--ring", "soon", "-c", ""], "ring must"),
                (["--max-depth", "x", "-c", ""], "max_depth must be a whole number"),
                (["-o", "none/x.json", "-c", ""], "does not exist"),
                (["-o", "x.kpt.gz", "-c", ""], "can't be compressed with gzip"),
                (["--stream", "--ring", "1s", "-c", ""], "a ring is kept in memory")]
        for words, text in rows:
            reply = run_python("-m", "kpytrace", "run", *words, cwd=self.folder)
            self.assertIn(reply.returncode, (1, 2), words)
            self.assertIn(text, reply.stderr)
            self.assertEqual(reply.stdout, "")
            self.assertEqual(len(reply.stderr.splitlines()), 1, reply.stderr)

    def test_the_output_can_not_be_written(self):
        """The program ends as without us, and a line gives the reason why there is no trace."""
        self.script.write_text("import os, sys; os.rmdir(sys.argv[1]); print('done')")
        (self.folder / "gone").mkdir()
        reply = run_python("-m", "kpytrace", "run", "-o", str(self.folder / "gone" / "x.json"),
                           str(self.script), str(self.folder / "gone"))
        self.assertEqual((reply.returncode, reply.stdout), (0, "done\n"))
        self.assertIn("x.json could not be written", reply.stderr)

    def test_a_variable_that_switches_recording_off(self):
        reply = run_python("-m", "kpytrace", "run", "-o", str(self.output), "-c", "pass", env={"KPYTRACE_MEMORY": "0"})
        self.assertIn("calls of 1 thread", reply.stderr)
        reply = run_python("-m", "kpytrace", "run", "-c", "pass", env={"KPYTRACE_MEMORY": "off"}, cwd=self.folder)
        self.assertIn("calls of 1 thread", reply.stderr)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {self.output.name, "kpytrace.kpt"})

    def test_the_message_names_the_recording_that_failed(self):
        """If memory can't be recorded, the calls still are. Before the fix, the message denied both."""
        reply = run_python("-c", "from kpytrace import _startup; _startup.start()", cwd=self.folder,
                           env={"KPYTRACE": "calls.json", "KPYTRACE_MEMORY": "1 depth=3"})
        refused, recorded, _ = reply.stderr.splitlines()
        self.assertRegex(refused, "^kpytrace: KPYTRACE_MEMORY is set, but the program's memory is not recorded: .*'depth'")
        self.assertIn("calls of 1 thread", recorded)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["calls.json"])
        reply = run_python("-c", "from kpytrace import _startup; _startup.start()", env={"KPYTRACE": "1 deep=3"})
        self.assertRegex(reply.stderr, "^kpytrace: KPYTRACE is set, but the program is not recorded: .*'deep'.*\\n$")

    def test_a_program_that_has_no_standard_error_ends_as_it_would(self):
        for text in ("sys.stderr.close()", "sys.stderr = object()", "os.close(2)"):
            for end in ("os._exit(7)", "sys.exit(7)"):
                for output in (self.output, self.folder / "gone" / "x.json"):
                    with self.subTest(text, end=end, output=output.name):
                        remove = "os.rmdir('gone'); " if output != self.output else ""
                        ends = []
                        for command in ([], ["-m", "kpytrace", "run", "-o", str(output)]):
                            (self.folder / "gone").mkdir(exist_ok=True)
                            self.output.unlink(missing_ok=True)
                            reply = run_python(*command, "-c", f"import os, sys; {remove}{text}; {end}",
                                               cwd=self.folder)
                            ends.append((reply.returncode, reply.stdout, reply.stderr))
                        self.assertEqual(*ends)
                        self.assertEqual(self.output.exists(), output == self.output)

    def test_help(self):
        for words in (["--help"], ["run", "--help"], ["convert", "-h"], ["info", "-h"], ["top", "-h"],
                      ["merge", "-h"], ["diff", "-h"], ["table", "-h"]):
            reply = run_python("-m", "kpytrace", *words)
            self.assertEqual((reply.returncode, reply.stderr), (0, ""))
            self.assertTrue(reply.stdout.startswith("usage: kpytrace"))
        self.assertEqual(run_python("-m", "kpytrace").returncode, 2)
        self.assertIn("kpytrace run x.py", run_python("-m", "kpytrace", "x.py").stderr)
        self.assertRegex(run_python("-m", "kpytrace", "--version").stdout, r"^kpytrace \d")

    def test_every_option_of_a_trace_is_one_of_the_command(self):
        import kpytrace._api.options as options

        text = run_python("-m", "kpytrace", "run", "--help").stdout
        for name in options.OPTIONS:
            no = "no-" if name in ("c_calls", "tasks", "compress") else ""
            self.assertIn(f"--{no}{name.replace('_', '-')}", text)


class Progress(unittest.TestCase):
    def test_a_bar_comes_when_it_takes_long_and_goes(self):
        from kpytrace._cli import progress

        for seconds, shown in ((0.0, False), (0.1, True)):
            times = itertools.count(100.0, seconds)
            with unittest.mock.patch.object(progress.time, "monotonic", lambda: next(times)), \
                    unittest.mock.patch("sys.stderr", io.StringIO()) as stderr:
                bar = progress.Bar("writing", 10)
                for done in range(11):
                    bar(done)
                bar.close()
            text = stderr.getvalue()
            self.assertEqual("writing [" in text, shown)
            if shown:
                self.assertIn("##############################] 100%", text)
                self.assertTrue(text.endswith("\r\x1b[K"), text)

    def test_no_bar_without_a_terminal(self):
        from kpytrace._cli import progress

        self.assertIsNone(progress.bar("x", 1, quiet=True))
        for stderr in (io.StringIO(), None):
            with unittest.mock.patch("sys.stderr", stderr):
                self.assertIsNone(progress.bar("x", 1, quiet=False))

    def test_a_terminal(self):
        """A program that kpytrace runs on a terminal ends with the line there."""
        leader, follower = os.openpty()
        try:
            child = subprocess.Popen([sys.executable, "-m", "kpytrace", "run", "-o", "/dev/null", "-c", "pass"],
                                     stderr=follower)
            self.assertEqual(child.wait(timeout=60), 0)
            self.assertIn(b" calls of 1 thread", os.read(leader, 4096))
        finally:
            os.close(leader)
            os.close(follower)


class Variable(Case):
    """KPYTRACE=… as the .pth file sees it; tests/package has the installed one."""

    def start(self, value, program="len('')", **env):
        return run_python("-c", "from kpytrace import _startup; _startup.start()\n" + program,
                          env={"KPYTRACE": value, **env}, cwd=self.folder)

    def test_values(self):
        for value in ("1", "on", f"{self.path}", f"output={self.path} max-depth=3",
                      autostart.pack(str(self.path), {"exclude": "a b"}, False)):
            reply = self.start(value)
            self.assertEqual(reply.returncode, 0)
            self.assertRegex(reply.stderr, "^kpytrace: .* calls of 1 thread")
        self.assertTrue(self.path.exists())
        self.assertEqual(len(list(self.folder.glob("kpytrace.*.kpt"))), 2)

    def test_no(self):
        for value in ("0", "off", "no", " "):
            self.assertEqual(self.start(value).stderr, "")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_mistake_does_not_end_the_program(self):
        reply = self.start("1 rings=3", "print('goes on')")
        self.assertEqual(reply.stdout, "goes on\n")
        self.assertIn("did you mean 'ring'", reply.stderr)

    def test_a_program_without_standard_error_goes_on(self):
        for program in ("from kpytrace import _startup; _startup.start()",
                        "from kpytrace.torch import _autostart; _autostart._install()"):  # of no torch, or an unknown mode
            for end in ("sys.stderr.close()", "sys.stderr = object()"):
                reply = run_python("-c", f"import sys; {end}\n{program}\nimport os; os._exit(5)",
                                   env={"KPYTRACE": "1 rings=3", "KPYTRACE_TORCH": "none"})
                self.assertEqual((reply.returncode, reply.stderr), (5, ""), (program, reply.stderr))

    def test_children_are_not_traced(self):
        program = "import subprocess, sys; print(subprocess.check_output([sys.executable, '-c', " \
                  "'import os; print(os.environ.get(\"KPYTRACE\"))'], text=True))"
        self.assertEqual(self.start(str(self.path), program).stdout.strip(), "None")


if __name__ == "__main__":
    unittest.main()
