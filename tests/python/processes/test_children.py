"""--children: every process that a program starts or forks has its own file, and the first process merges them."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from children_case import BLOCKED_AFTER, HANDLER, HANDLER_BEFORE, POOL, ChildrenCase
from support import limit_file_size, run_python


class Children(ChildrenCase):
    def check_pool(self, method, prefix):
        reply = self.run_children(POOL, method)
        self.assertIn("[0, 0, 1, 3", reply.stdout)
        found = self.processes()
        self.assertEqual(found["single"]["work"], 1)
        self.assertEqual(sum(calls["work"] for name, calls in found.items() if name.startswith(prefix)), 50, found)
        # One of the workers may have been told to end before it had begun.
        self.assertRegex(reply.stderr, r"^kpytrace: [\d,]+ calls of [34] processes: .*out\.json\n"
                                        r"kpytrace: see it with: kpytrace view out\.json\n$")
        self.assertGreaterEqual(len(list(self.files.glob("*.kpt"))), len(found))

    def test_a_pool_that_forks(self):
        self.check_pool("fork", "ForkPoolWorker-")

    def test_a_pool_that_spawns(self):
        self.check_pool("spawn", "SpawnPoolWorker-")

    def test_a_pool_of_a_fork_server(self):
        self.check_pool("forkserver", "ForkServerPoolWorker-")

    def test_a_pool_that_loses_a_worker(self):
        self.run_children("""
            import concurrent.futures, os, signal, time
            def work(n):
                if n == 5:
                    time.sleep(1.5)  # longer than until a flush
                    os.kill(os.getpid(), signal.SIGKILL)
                return n
            if __name__ == "__main__":
                with concurrent.futures.ProcessPoolExecutor(2) as pool:
                    try:
                        list(pool.map(work, range(6)))
                    except concurrent.futures.process.BrokenProcessPool:
                        print("broken")
            """)
        found = self.processes()
        self.assertEqual(sum(calls["work"] for calls in found.values()), 6, found)
        self.assertEqual(len(found), 3, found)

    def test_programs_that_start_programs(self):
        self.run_children("""
            import subprocess, sys
            def outer(n):
                if n:
                    subprocess.run([sys.executable, __file__, str(n - 1)], check=True)
                    subprocess.run(["true"], check=True)
            outer(int(sys.argv[1]))
            """, "3")
        events = self.read_trace(self.output)["traceEvents"]
        labels = {e["pid"]: e["args"]["labels"] for e in events if e["name"] == "process_labels"}
        self.assertEqual(len(labels), 4)
        parents = [int(text.rpartition("parent ")[2]) for text in labels.values()]
        self.assertEqual(sum(parent in labels for parent in parents), 3)  # a chain
        self.assertEqual(sum(e["ph"] == "X" and e["name"].endswith(": outer") for e in events), 4)

    def test_a_fork_a_preexec_function_and_os_exit(self):
        self.run_children("""
            import os, subprocess, sys
            def child():
                return os.getpid()
            pid = os.fork()
            if not pid:
                child()
                os._exit(3)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
            subprocess.run(["true"], preexec_fn=lambda: None, check=True)
            """)
        found = self.processes()
        self.assertEqual(found["python prog.py (forked)"]["child"], 1)
        self.assertEqual(len(found), 2, found)

    def test_a_child_whose_stream_fails_ends_as_it_would(self):
        """Also if the error can't be printed."""
        self.run_children(f"""
            import os, sys
            for end in (os._exit, sys.exit):
                pid = os.fork()
                if not pid:
                    sys.stderr.close()
                    {limit_file_size(1000)}
                    for i in range(1000):
                        len("")
                    end(3)
                assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
            """)

    def test_a_child_that_is_terminated(self):
        """The signal kills the child as without us, and its file is complete."""
        self.run_children("""
            import multiprocessing, time
            def work():
                pass
            def child(ready):
                for _ in range(100):
                    work()
                ready.set()
                time.sleep(60)
            if __name__ == "__main__":
                ready = multiprocessing.Event()
                process = multiprocessing.Process(target=child, args=(ready,), name="victim")
                process.start()
                ready.wait()
                process.terminate()
                process.join()
                assert process.exitcode == -15, process.exitcode
            """)
        self.assertEqual(self.processes()["victim"]["work"], 100)

    def test_a_program_with_a_handler_of_its_own_keeps_it(self):
        self.run_children(HANDLER)
        self.assertEqual(len(self.processes()), 2)

    def test_a_program_that_removes_its_handler(self):
        """The program behaves as without us: the signal kills it, and its calls are in the file."""
        self.run_children(HANDLER_BEFORE)
        self.assertEqual([counts["leaf"] for counts in self.processes().values() if counts["leaf"]], [1000])

    def test_a_program_that_blocks_the_signal_after_its_arrival(self):
        self.run_children(BLOCKED_AFTER)

    def test_a_child_that_goes_on(self):
        """The file of a child that still runs is left out, and merged later."""
        reply = self.run_children("""
            import subprocess, sys
            code = "import sys\\ndef late(): pass\\nlate()\\nprint('up', flush=True)\\nsys.stdin.read()"
            child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            child.stdout.readline()
            print(child.pid, flush=True)
            sys.kept = child, child.stdin  # until after the merge
            """)
        self.assertIn("1 still run: kpytrace merge ", reply.stderr)
        self.assertEqual(len(self.processes()), 1)
        path = self.files / f"{int(reply.stdout)}.kpt"
        for _ in range(200):
            if path.read_bytes()[-24:][4:8] == b"\4\0\0\0":
                break
            time.sleep(0.05)
        later = run_python("-m", "kpytrace", "merge", *map(str, self.files.glob("*.kpt")), "-o", str(self.path))
        self.assertEqual(later.returncode, 0, later.stderr)
        self.assertEqual(set(self.processes(self.path)), {"python prog.py", "python -c"})

    def test_a_kpt_output_and_its_children(self):
        reply = self.run_children(POOL, "fork", output=self.folder / "out.kpt")
        self.assertIn("3 children have files of their own: kpytrace merge ", reply.stderr)
        words = reply.stderr.splitlines()[-1].partition("kpytrace merge ")[2].split()
        reply = run_python("-m", "kpytrace", "merge", words[0], *map(str, self.files.glob("*.kpt")), "-o",
                           str(self.output))
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertEqual(len(self.processes()), 4)

    def test_a_ring_that_still_runs_is_reported(self):
        """A ring has no file before its process ends. A killed process leaves none."""
        reply = self.run_children("""
            import os, signal, subprocess, sys
            code = "import sys\\nprint('up', flush=True)\\nsys.stdin.read()"
            made = [subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                    for _ in range(3)]
            for child in made:
                child.stdout.readline()
            made[0].communicate()
            made[1].kill()
            made[1].wait()
            print(made[2].pid, flush=True)
            sys.kept = made  # until after the merge
            """, options=("--ring", "10s"))
        self.assertIn("1 still run: kpytrace merge ", reply.stderr)
        self.assertEqual(len(self.processes()), 2)
        mark = self.files / f"{int(reply.stdout)}.running"
        for _ in range(200):
            if not mark.exists():
                break
            time.sleep(0.05)
        self.assertTrue(mark.with_suffix(".kpt").exists())
        self.assertEqual(len(list(self.files.glob("*.kpt"))), 3)

    def test_the_main_program_is_killed(self):
        (self.folder / "prog.py").write_text(textwrap.dedent("""
            import os, time
            def work(): pass
            if not os.fork():
                work()
                os._exit(0)
            os.wait()
            print("up", flush=True)
            time.sleep(60)
            """))
        child = subprocess.Popen([sys.executable, "-m", "kpytrace", "run", "--children", "-q", "-o", str(self.output),
                                  "prog.py"], cwd=self.folder, stdout=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(1.5)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        reply = run_python("-m", "kpytrace", "merge", *map(str, self.files.glob("*.kpt")), "-o", str(self.output))
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertEqual(self.processes()["python prog.py (forked)"]["work"], 1)

    def test_files_of_an_earlier_run_are_not_merged(self):
        for _ in range(2):
            self.run_children("import os, sys\nif not os.fork(): sys.exit()\nos.wait()")
        self.assertEqual(len(self.processes()), 2)

    def test_options_that_exclude_each_other(self):
        for words, text in ((["-o", "x.collapsed"], "can hold only one process"),
                            (["-o", "x.speedscope.json.gz"], "can hold only one process"),
                            (["-o", "x.html.gz"], "kpytrace report makes a page")):
            reply = run_python("-m", "kpytrace", "run", "--children", *words, "-c", "print(1)", cwd=self.folder)
            self.assertEqual((reply.returncode, reply.stdout), (2, ""), reply.stderr)
            self.assertIn(text, reply.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_variable(self):
        code = "from kpytrace import _startup; _startup.start()\nimport os\n" \
               "if not os.fork(): os._exit(0)\nos.wait(); print(os.environ['KPYTRACE'][:1] == chr(31))"
        reply = run_python("-c", code, env={"KPYTRACE": f"{self.output} children=1"})
        self.assertEqual(reply.stdout, "True\n", reply.stderr)
        self.assertEqual(len(self.processes()), 2)


if __name__ == "__main__":
    os.environ.pop("RANK", None)
    unittest.main()
