"""--children with recordings that are kept in memory until a process ends: memory recordings and rings."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from children_case import HANDLER, POOL, ChildrenCase
from snapshots import Snapshot
from support import FREE_THREADED, run_python

from kpytrace._files.memory_tables import Tables

KEEP = """
    import multiprocessing, sys, time
    def keep(n):
        return [bytes(1000) for _ in range(n)]
    def child(ready):
        kept = keep(2000)
        ready.set()
        time.sleep(60 if "stay" in sys.argv else 0)
    if __name__ == "__main__":
        kept = keep(500)
        context = multiprocessing.get_context(sys.argv[1])
        ready = context.Event()
        process = context.Process(target=child, args=(ready,))
        process.start()
        ready.wait()
        if "stay" in sys.argv:
            process.terminate()
        process.join()
        assert process.exitcode == (-15 if "stay" in sys.argv else 0), process.exitcode
    """


@unittest.skipIf(FREE_THREADED, "memory is not recorded on free-threaded Python")
class Memory(ChildrenCase):
    def setUp(self):
        super().setUp()
        self.tables = self.folder / "mem.tables.json"
        self.members = self.folder / "mem.children"

    def run_memory(self, text, *arguments, options=(), path=None):
        """Runs a program with a memory recording only."""
        self.write_program(text)
        reply = run_python("-m", "kpytrace", "run", "--children", "--memory", str(path or self.tables), *options,
                           "prog.py", *arguments, cwd=self.folder)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return reply

    def test_a_name_that_is_refused_costs_no_file(self):
        old = self.folder / "mem.children" / "7.kpt"
        old.parent.mkdir()
        old.write_text("old", encoding="utf-8")
        reply = run_python("-c", "from kpytrace import _startup; _startup.start()", cwd=self.folder,
                           env={"KPYTRACE_MEMORY": "mem children=1"})
        self.assertIn("the path of a memory recording must end in", reply.stderr)
        self.assertTrue(old.exists())

    def kept(self, path):
        """Returns the bytes that functions of the program and their callees allocated, by name."""
        rows = Tables(path).rows("all", "function")
        return {row.name: row.total_bytes for row in rows if row.file.endswith("prog.py")}

    def check_two(self, *arguments):
        reply = self.run_memory(KEEP, *arguments)
        self.assertRegex(reply.stderr, r"memory recording: .*mem\.tables\.json; 1 children have files of their own: ")
        (member,) = self.members.iterdir()
        self.assertRegex(member.name, r"^\d+\.tables\.json$")
        self.assertTrue(500_000 < self.kept(self.tables)["keep"] < 2_000_000, "its own alone")
        self.assertGreater(self.kept(member)["keep"], 2_000_000)

    def test_a_fork(self):
        self.check_two("fork")

    def test_a_program_that_is_started(self):
        self.check_two("spawn")

    def test_a_process_that_is_terminated(self):
        self.check_two("fork", "stay")
        self.check_two("spawn", "stay")

    def test_a_pool_and_calls_beside_it(self):
        self.run_children(POOL, "fork", options=["--memory", str(self.folder / "mem.pickle")])
        found = self.processes()
        self.assertEqual(sum(calls["work"] for calls in found.values()), 51, found)
        members = list(self.members.glob("*.pickle"))
        self.assertEqual({path.stem for path in members} | {str(path.stem) for path in self.files.glob("*.kpt")},
                         {path.stem for path in self.files.glob("*.kpt")}, "a process's files have its number")
        self.assertGreaterEqual(len(members), 2)
        for path in [*members, self.folder / "mem.pickle"]:
            Snapshot(path).check(self)

    def test_files_of_an_earlier_run_are_gone(self):
        for _ in range(2):
            self.run_memory(KEEP, "fork")
        self.assertEqual(len(list(self.members.iterdir())), 1)

    def test_what_is_about_calls_needs_an_output(self):
        reply = run_python("-m", "kpytrace", "run", "--children", "--memory", str(self.tables), "--gc", "-c", "",
                           cwd=self.folder)
        self.assertEqual(reply.returncode, 2, reply.stderr)
        self.assertIn("--gc is about calls", reply.stderr)

    def test_the_variable(self):
        code = "from kpytrace import _startup; _startup.start()\nimport os\n" \
               "if not os.fork(): os._exit(0)\nos.wait()"
        reply = run_python("-c", code, env={"KPYTRACE_MEMORY": f"{self.tables} children=1"})
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertEqual(len(list(self.members.iterdir())), 1)


class Rings(ChildrenCase):
    def test_a_ring_of_each_process(self):
        self.run_children(POOL, "fork", options=["--ring", "10s"])
        found = self.processes()
        self.assertEqual(sum(calls["work"] for calls in found.values()), 51, found)

    def test_each_keeps_the_end(self):
        self.run_children("""
            import os
            def early(): pass
            def late(): pass
            def work():
                early()
                for _ in range(100000): abs(1)
                late()
            if not os.fork():
                work()
                os._exit(0)
            os.wait()
            work()
            """, options=["--ring-bytes", "100kB"])
        for name, calls in self.processes().items():
            self.assertEqual((calls["early"], calls["late"]), (0, 1), name)

    def test_a_process_that_is_terminated(self):
        self.run_children(KEEP, "fork", "stay", options=["--ring", "10s"])
        found = self.processes()
        self.assertEqual(sorted(calls["keep"] for calls in found.values()), [1, 1], found)
        self.assertEqual(sum(calls["child"] for calls in found.values()), 1, found)

    def test_dumps_are_no_processes(self):
        """Dumps are beside the file of their process."""
        self.run_children("""
            import os, signal, time
            def work(): pass
            if not os.fork():
                work()
                os.kill(os.getpid(), signal.SIGUSR2)
                name = f"out.children/{os.getpid()}.1.kpt"
                while not os.path.exists(name): time.sleep(.01)
                os._exit(0)
            os.wait()
            """, options=["--ring", "10s"])
        self.assertEqual(len(self.processes()), 2)
        self.assertEqual(len(list(self.files.glob("*.kpt"))), 3)

    def test_a_program_with_a_handler_of_its_own_keeps_it(self):
        self.run_children(HANDLER, options=["--ring", "10s", *([] if FREE_THREADED else ["--memory", str(self.folder / "m.pickle")])])
        self.assertEqual(len(self.processes()), 2)
        if not FREE_THREADED:
            self.assertEqual(len(list((self.folder / "m.children").iterdir())), 1)


if __name__ == "__main__":
    os.environ.pop("RANK", None)
    unittest.main()
