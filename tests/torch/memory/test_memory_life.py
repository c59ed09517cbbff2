"""kpytrace.torch.memory beside what programs do: fork, other allocators, no memory, the end of the process; and
the snapshots that Kineto is asked for."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

HERE = os.path.dirname(os.path.abspath(__file__))

REQUEST = """
import ctypes, json, os, sys, time, torch, kpytrace.torch, tensors
library, folder = sys.argv[1:]
path = folder + "/memory.pickle"
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
    pass  # Kineto is initialised by the first profiler, or by its daemon

def request(milliseconds):
    config = f"PROFILE_MEMORY=true\\nPROFILE_MEMORY_DURATION_MSECS={milliseconds}\\n"
    ctypes.CDLL(library).kpt_request((config + f"ACTIVITIES_LOG_FILE={path}\\n").encode())

def marker(kept=[]):
    kept.append(torch.ones(123))
    time.sleep(0.01)
"""

FOUND = """
began = time.monotonic()
while not os.path.exists(path) and time.monotonic() - began < 40:
    marker()
found = tensors.Snapshot(path)
print(json.dumps([set(found.allocated(marker)) == {492}, found.devices[tensors.CPU], found.alive() > 0,
                  os.listdir(folder)]))
"""


def compiled(case, source):
    import torch
    from kpytrace.torch import _compile, _environment

    folder = tempfile.TemporaryDirectory()
    case.addClassCleanup(folder.cleanup)
    library = os.path.join(folder.name, "helper.so")
    subprocess.run(_compile.command(torch, _environment.find_compiler(), os.path.join(HERE, source),
                                    library), check=True)
    return library


class Life(unittest.TestCase):
    def value(self, code):
        return support.program("import torch, tensors, kpytrace.torch, json, os, sys, threading\n"
                               "from tensors import Recorded\n" + support.textwrap.dedent(code), forked=True).value

    def test_fork(self):
        """The child frees blocks that its parent recorded, and may start its own recording."""
        self.assertEqual(self.value("""
            with kpytrace.torch.memory() as recording:
                kept = [torch.empty(100, dtype=torch.uint8) for _ in range(50)]
                busy = True
                def work():
                    while busy:
                        torch.empty(3)
                threads = [threading.Thread(target=work) for _ in range(3)]
                for thread in threads:
                    thread.start()
                statuses = []
                for _ in range(5):
                    child = os.fork()
                    if not child:
                        kept.clear()
                        from torch.nn.modules import module
                        if module._global_forward_hooks:
                            os._exit(2)  # its parent's
                        own = Recorded(lambda: torch.empty(77, dtype=torch.uint8))
                        os._exit(0 if own.allocated() == [77] else 1)
                    statuses.append(os.waitpid(child, 0)[1])
                busy = False
                for thread in threads:
                    thread.join()
            found = tensors.Exported(recording)
            print(json.dumps([statuses, found.allocated().count(100), found.alive()]))
            """), [[0] * 5, 50, 5000])

    def test_no_memory_for_anything(self):
        """Every allocation may fail, also ours. Lost entries are counted, and the recording continues."""
        self.assertEqual(self.value("""
            import resource
            recording = kpytrace.torch.memory()
            def most():
                with open("/proc/self/statm") as file:
                    return int(file.read().split()[0]) * resource.getpagesize()
            with recording:
                before = resource.getrlimit(resource.RLIMIT_AS)
                resource.setrlimit(resource.RLIMIT_AS, (most() + (64 << 20), before[1]))
                kept, failed = [], 0
                for size in [1 << 20, 1 << 16, 1 << 12]:
                    try:
                        while len(kept) < 100000:
                            kept.append(torch.empty(size, dtype=torch.uint8))
                    except (RuntimeError, MemoryError):
                        failed += 1
                resource.setrlimit(resource.RLIMIT_AS, before)
                more = torch.ones(10)
            found = tensors.Exported(recording)
            lost = found.snapshot["kpytrace"]["entries_dropped"]
            print(json.dumps([failed > 0, found.allocated()[-1], len(found.allocated()) + lost
                              >= len(kept)]))
            """), [True, 40, True])

    def test_the_end_of_the_process(self):
        """The recording is written at exit, and tensors outlive Python. (A stock torch crashes with threads inside it
        at that time.)"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "memory.pickle")
            self.value(f"""
                recording = kpytrace.torch.memory({path!r}).start()
                kept = [torch.ones(10) for _ in range(100)]
                sys.kept_for_ever = kept
                import atexit
                atexit.register(lambda: kept.append(torch.ones(20)))
                torch.kept_for_ever = torch.ones(30)
                print("0")
                """)
            self.assertTrue(os.path.exists(path))

    def test_started_and_stopped_beside_busy_threads(self):
        self.assertEqual(self.value("""
            busy = True
            def work():
                while busy:
                    kept = [torch.empty(64) for _ in range(10)]
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for _ in range(60):
                recording = kpytrace.torch.memory().start()
                torch.empty(1)
                recording.stop()
                recording.close()
            busy = False
            for thread in threads:
                thread.join()
            print(json.dumps(Recorded(lambda: torch.empty(5)).allocated()))
            """), [20])


class OtherAllocators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = compiled(cls, "allocators.cc")

    def value(self, code):
        return support.program(f"import ctypes, json, torch, tensors, kpytrace.torch\n"
                               f"from tensors import Recorded\n"
                               f"helper = ctypes.CDLL({self.library!r})\n"
                               + support.textwrap.dedent(code), forked=True).value

    def test_torchs_own_is_back(self):
        self.assertEqual(self.value("""
            inside = Recorded(helper.kpt_is_stock).result
            print(json.dumps([inside, helper.kpt_is_stock()]))
            """), [0, 1])

    def test_one_that_was_there_stays(self):
        """Also if it was set with a priority."""
        for priority in (0, 3):
            self.assertEqual(self.value(f"""
                helper.kpt_put(0, {priority})
                recorded = Recorded(lambda: torch.ones(5))
                before = helper.kpt_asked()
                torch.ones(1)
                print(json.dumps([recorded.allocated(), helper.kpt_asked() > before]))
                """), [[20], True])

    def test_one_that_comes_later_stays(self):
        """Ours stays behind it, passes every call on, and records again without a second one."""
        self.assertEqual(self.value("""
            kept = []
            def work():
                kept.append(torch.ones(5))
                helper.kpt_put(0, 0)
                kept.append(torch.ones(6))
            first = Recorded(work)
            kept.append(torch.ones(7))
            kept.pop(1)
            second = Recorded(lambda: torch.ones(8))
            asked = helper.kpt_asked()
            third = Recorded(lambda: [torch.ones(9)])
            print(json.dumps([first.allocated(), second.allocated(), third.allocated(),
                              third.alive(), helper.kpt_asked() - asked]))
            """), [[20, 24], [32], [36], 36, 2])  # one is ours: whether it comes to us

    def test_blocks_with_a_context_are_left_alone(self):
        self.assertEqual(self.value("""
            helper.kpt_put(1, 0)
            try:
                Recorded(lambda: torch.ones(5))
            except kpytrace.torch.TorchHostError as error:
                print(json.dumps([str(error), kpytrace.memory().running]))
            """), ["torch's tensors can't be recorded: torch's CPU allocator has been replaced by one "
                   "whose blocks can't be recorded", False])

    def test_many_recordings_in_front_of_one(self):
        self.assertEqual(self.value("""
            helper.kpt_put(0, 0)
            counts = [len(Recorded(lambda: torch.ones(5)).allocated()) for _ in range(30)]
            print(json.dumps(set(counts) == {1}))
            """), True)


class OnDemand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = compiled(cls, os.path.join(support.HERE, "on_demand.cc"))

    def run_with(self, install, code):
        with tempfile.TemporaryDirectory() as folder:
            reply = support.python("-c", "import kpytrace.torch\n" + install + REQUEST + code,
                                   self.library, folder)
            self.assertEqual(reply.returncode, 0, reply.stdout + reply.stderr)
            return reply, os.listdir(folder)

    def test_a_snapshot(self):
        reply, files = self.run_with("kpytrace.torch.install()\n", "request(500)\n" + FOUND)
        self.assertEqual(support.json.loads(reply.stdout)[:3], [True, "cpu", True])

    def test_the_program_ends_meanwhile(self):
        """Kineto's thread sleeps, and then exports after Python has ended."""
        for milliseconds in (1, 100, 1500):
            self.run_with("kpytrace.torch.install()\n",
                          f"request({milliseconds})\nfor _ in range(20): marker()\n")

    def test_beside_a_recording(self):
        """The earlier recording continues; the snapshot is not written, and torch prints the reason."""
        reply, files = self.run_with("kpytrace.torch.install()\n", """
said = folder + "/said"
os.dup2(os.open(said, os.O_CREAT | os.O_WRONLY), 2)
began = time.monotonic()
with kpytrace.torch.memory() as recording:
    request(100)
    while "another memory tracer is recording" not in open(said).read():
        marker()
        if time.monotonic() - began > 40:
            sys.exit("torch says nothing")
print(set(tensors.Exported(recording).allocated(marker)))
""")
        self.assertEqual(reply.stdout.strip(), "{492}")
        self.assertNotIn("memory.pickle", files)

    def test_uninstalled_or_not_wanted(self):
        """torch's own tracer writes nothing, or its own snapshot."""
        for install in ("kpytrace.torch.install(memory=False)\n",
                        "kpytrace.torch.install(); print(kpytrace.torch.uninstall())\n"):
            reply, _ = self.run_with(install, "request(100)\nfor _ in range(40): marker()\n" + """
import pickle
if os.path.exists(path):
    with open(path, "rb") as file:
        print("kpytrace" in pickle.load(file))
""")
            self.assertNotIn("True", reply.stdout)


if __name__ == "__main__":
    unittest.main()
