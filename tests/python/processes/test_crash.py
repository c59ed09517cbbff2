"""Recordings of programs that a signal ends: SIGTERM writes every output, and a crash flushes a stream, so that the
call that crashed is in the file. The program ends as it would have: by the signal, after its own handlers."""

import pathlib
import signal
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from snapshots import Snapshot
from support import BACKEND, FREE_THREADED, Case, run_python

# A flush at intervals comes too late for all of these.
PROGRAM = """
import ctypes, faulthandler, os, signal, sys, threading, time
import kpytrace
def leaf(n):
    return n
def work(n):
    for i in range(n):
        leaf(i)
def wait():
    print("ready", flush=True)
    time.sleep(60)
def fatal(crash):
    work(100)
    crash()
def caught():
    with open("/proc/self/status") as file:
        (mask,) = [int(line.split()[1], 16) for line in file if line.startswith("SigCgt")]
    return hex(mask & 0x7fffffff)  # above are libc's own
"""
CRASHES = {
    "SIGSEGV": "lambda: ctypes.string_at(1)",
    "SIGABRT": "os.abort",
    "SIGFPE": "lambda: signal.raise_signal(signal.SIGFPE)",
    "SIGBUS": "lambda: os.kill(os.getpid(), signal.SIGBUS)",
}


class SignalCase(Case):
    def setUp(self):
        super().setUp()
        self.kpt = self.folder / "trace.kpt"

    def write(self, text):
        program = self.folder / "program.py"
        program.write_text(PROGRAM + textwrap.dedent(text), encoding="utf-8")
        return str(program)

    def run_program(self, text, *options):
        """Runs a program that calls `kpytrace.start(sys.argv[1], …)`, and returns its reply."""
        return run_python(*options, self.write(text), str(self.kpt), cwd=self.folder)

    def names_of(self, path):
        """Returns the names of all calls, without their places."""
        target = self.folder / "converted.json"
        reply = run_python("-m", "kpytrace", "convert", str(path), str(target))
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return [name.rpartition(": ")[2] for name in self.names(target)]

    def assert_whole(self, names, *more):
        self.assertEqual(names.count("leaf"), 100)
        for name in ("work", *more):
            self.assertTrue(name in names, f"{name} is not there")


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Terminated(SignalCase):
    def terminate(self, text, *command):
        """Starts a program that calls wait(), and ends it."""
        with subprocess.Popen([sys.executable, *command, self.write(text), str(self.path)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder) as process:
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.terminate()
            _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGTERM, said)
        return said

    def names_of_json(self, path=None):
        return [name.rpartition(": ")[2] for name in self.names(path)]

    def test_every_output_is_written(self):
        for name in ("out.json", "out.json.gz", "out.pftrace", "out.speedscope.json", "out.collapsed", "out.html"):
            with self.subTest(name):
                self.terminate("work(100)\nwait()", "-m", "kpytrace", "run", "-q", "-o", name)
                self.assertGreater((self.folder / name).stat().st_size, 500)
        self.assert_whole(self.names_of_json(self.folder / "out.json"), "wait")

    def test_the_default_output(self):
        self.terminate("work(100)\nwait()", "-m", "kpytrace", "run", "-q")
        (found,) = self.folder.glob("*.kpt")
        self.assert_whole(self.names_of(found), "wait")

    def test_a_ring(self):
        self.terminate("work(100)\nwait()", "-m", "kpytrace", "run", "-q", "--ring", "60s", "-o", "out.json")
        self.assert_whole(self.names_of_json(self.folder / "out.json"), "wait")

    def test_start_in_a_program(self):
        self.terminate("kpytrace.start(sys.argv[1])\nwork(100)\nwait()")
        self.assert_whole(self.names_of_json(), "wait")

    def test_a_stream(self):
        self.terminate("kpytrace.start('trace.kpt', flush_ns='1000s')\nwork(100)\nwait()")
        self.assert_whole(self.names_of(self.kpt), "wait")

    def test_a_stream_beside_its_output(self):
        self.terminate("kpytrace.start(sys.argv[1], stream=True, flush_ns='1000s')\nwork(100)\nwait()")
        self.assert_whole(self.names_of(str(self.path) + ".kpt"), "wait")

    @unittest.skipIf(FREE_THREADED, "memory is not recorded on free-threaded Python")
    def test_memory(self):
        path = self.folder / "memory.pickle"
        self.terminate("kept = []\ndef keep(): kept.append(bytes(123457))\nm = kpytrace.memory('memory.pickle')\n"
                       "m.start()\nkeep()\nwait()")
        self.assertIn(123457 + 33, [block["size"] for block in Snapshot(path).check(self).blocks])

    def test_a_programs_own_handler(self):
        """Our handler is not installed. The trace is written when the handler ends the program."""
        program = """
            kpytrace.start(sys.argv[1])
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
            work(100)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
            """
        reply = run_python(self.write(program), str(self.path))
        self.assertEqual(reply.returncode, 7, reply.stderr)
        self.assert_whole(self.names_of_json())

    def test_a_handler_that_was_there_before(self):
        program = """
            signal.signal(signal.SIGTERM, lambda *_: print("mine"))
            with kpytrace.trace(sys.argv[1]):
                signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
            """
        reply = run_python(self.write(program), str(self.path))
        self.assertEqual((reply.returncode, reply.stdout), (0, "mine\n" * 2), reply.stderr)

    def test_an_ignored_signal(self):
        program = """
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            with kpytrace.trace(sys.argv[1]):
                os.kill(os.getpid(), signal.SIGTERM)
            """
        reply = run_python(self.write(program), str(self.path))
        self.assertEqual(reply.returncode, 0, reply.stderr)

    def test_a_stopped_trace_is_not_written_again(self):
        """Although the object and its recording still exist."""
        program = """
            before = caught()
            with kpytrace.trace(sys.argv[1]) as t:
                assert caught() != before
                work(100)
            assert caught() == before, (caught(), before)
            os.unlink(sys.argv[1])
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
            """
        reply = run_python(self.write(program), str(self.path))
        self.assertEqual(reply.returncode, -signal.SIGTERM, reply.stderr)
        self.assertFalse(self.path.exists())

    def test_a_fork(self):
        """The signal kills a child at once, and the child does not change its parent's file."""
        program = """
            kpytrace.start(sys.argv[1])
            child = os.fork()
            if not child:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(60)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
            assert not os.path.exists(sys.argv[1])
            work(100)
            wait()
            """
        self.terminate(program)
        self.assert_whole(self.names_of_json(), "wait")


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Crashed(SignalCase):
    START = "kpytrace.start(sys.argv[1], flush_ns='1000s')\n"

    def crash(self, text, status, *options):
        reply = self.run_program(self.START + textwrap.dedent(text), *options)
        self.assertEqual(reply.returncode, -status, reply.stderr)
        return reply

    def test_the_crashing_call_is_in_the_file(self):
        for name, crash in CRASHES.items():
            with self.subTest(name):
                reply = self.crash(f"fatal({crash})", getattr(signal, name))
                self.assertEqual(reply.stderr, "")
                self.assert_whole(self.names_of(self.kpt), "fatal")

    def test_faulthandler_runs_afterwards(self):
        for name, crash in CRASHES.items():
            for how, options in (("", ["-X", "faulthandler"]), ("faulthandler.enable()\n", [])):
                with self.subTest(name, how=how):
                    reply = self.crash(f"{how}fatal({crash})", getattr(signal, name), *options)
                    self.assertEqual(reply.stderr.count("Fatal Python error"), 1, reply.stderr)
                    self.assertIn(" in fatal", reply.stderr)
                    self.assert_whole(self.names_of(self.kpt), "fatal")

    def test_faulthandler_between_two_traces(self):
        """Each handler has the other as its previous handler."""
        text = f"kpytrace.stop()\nfaulthandler.enable()\n{self.START}kpytrace.stop()\n"
        for again in ("", self.START):
            with self.subTest(again):
                reply = self.crash(f"faulthandler.enable()\n{text}{again}fatal({CRASHES['SIGSEGV']})", signal.SIGSEGV)
                self.assertEqual(reply.stderr.count("Fatal Python error"), 1, reply.stderr)
                if again:
                    self.assert_whole(self.names_of(self.kpt), "fatal")

    def test_a_stack_overflow(self):
        for options in ([], ["-X", "faulthandler"]):
            with self.subTest(options=options):
                self.crash("fatal(faulthandler._stack_overflow)", signal.SIGSEGV, *options)
                self.assert_whole(self.names_of(self.kpt), "fatal")

    def test_a_thread(self):
        self.crash(f"""
            thread = threading.Thread(target=fatal, args=({CRASHES['SIGSEGV']},))
            thread.start()
            time.sleep(60)
            """, signal.SIGSEGV)
        self.assert_whole(self.names_of(self.kpt), "fatal")

    def test_many_threads_at_once(self):
        self.crash(f"""
            gate = threading.Barrier(8)
            def one():
                gate.wait()
                work(1000)
                ctypes.string_at(1)
            for _ in range(8): threading.Thread(target=one).start()
            time.sleep(60)
            """, signal.SIGSEGV)
        self.assertIn("one", self.names_of(self.kpt))

    def test_a_child_of_a_fork(self):
        reply = self.run_program(self.START + f"""
child = os.fork()
if not child:
    fatal({CRASHES['SIGSEGV']})
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGSEGV
work(100)
""")
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertNotIn("fatal", self.names_of(self.kpt))

    def test_a_programs_own_handler_stays(self):
        text = self.START.join(("signal.signal(signal.SIGABRT, lambda *_: print('before'))\n",
                                "signal.signal(signal.SIGFPE, lambda *_: print('after'))\n"))
        reply = self.run_program(text + textwrap.dedent("""
            for number in (signal.SIGABRT, signal.SIGFPE): signal.raise_signal(number)
            kpytrace.stop()
            for number in (signal.SIGABRT, signal.SIGFPE): signal.raise_signal(number)
            """))
        self.assertEqual((reply.returncode, reply.stdout), (0, "before\nafter\n" * 2), reply.stderr)

    def test_handlers_are_restored(self):
        program = """
            for enable in (False, True):
                if enable: faulthandler.enable()
                before = caught()
                for _ in range(3):
                    with kpytrace.trace(sys.argv[1]):
                        assert enable or caught() != before
                    assert caught() == before, (caught(), before)
            os.abort()
            """
        reply = self.run_program(program)
        self.assertEqual(reply.returncode, -signal.SIGABRT, reply.stderr)
        self.assertEqual(reply.stderr.count("Fatal Python error"), 1, reply.stderr)

    def test_a_lock_that_the_crash_has_left_held(self):
        """The flush can't complete, and the program ends without it."""
        self.crash(f"""
            work(100)
            handle = kpytrace._api.trace._active._handle
            kpytrace._standalone.write(handle, {str(self.path)!r}, lambda calls: os.abort())
            """, signal.SIGABRT)


if __name__ == "__main__":
    unittest.main()
