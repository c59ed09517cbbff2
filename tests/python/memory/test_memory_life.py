"""Recordings of memory and the process: errors, cycles, forks, the end, and other hooks in the chain."""

import gc
import importlib.util
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from snapshots import Snapshot
from support import BACKEND, FREE_THREADED, MemoryCase, SAMPLE, TAG

import kpytrace

WHY_SKIPPED = f"there is no backend for CPython {TAG} beside the plugin, or none that records memory"
INTERPRETERS = next((m for m in ("_interpreters", "_xxsubinterpreters")
                     if importlib.util.find_spec(m)), None)

# Functions that die when they have run.
DYING = """
kept = globals().get("kept", [])
for i in range(100):
    space = dict(kept=kept)
    exec(f"def NAME_{i}(): kept.append(bytes(SIZE + {i}))", space)
    space[f"NAME_{i}"]()
"""
# The processor's time for some allocations, at best.
TIMED = """
import time
def timed():
    began = time.thread_time()
    for i in range(20_000): [i]
    return time.thread_time() - began
best = min(timed() for _ in range(7))
"""


# A block of N + 1 bytes: bytes(N - 32).


class Errors(MemoryCase):
    def test_what_is_no_name(self):
        for path in ("memory.txt", "memory.pickle.gz", "pickle", "", "memory.JSON"):
            with self.assertRaisesRegex(ValueError, "the path of a memory recording must end in"):
                kpytrace.memory(self.folder / path)
        with self.assertRaises(FileNotFoundError):
            kpytrace.memory(self.folder / "none" / "memory.pickle")
        (self.folder / "folder.pickle").mkdir()
        with self.assertRaises(IsADirectoryError):
            kpytrace.memory(self.folder / "folder.pickle")
        with self.assertRaises(TypeError):
            kpytrace.memory(3)

    def test_what_is_no_number(self):
        for options in ({"sample_bytes": -1}, {"max_entries": -1}, {"max_frames": 2**32},
                        {"sample_bytes": "many"}):
            with self.assertRaisesRegex(ValueError, next(iter(options))):
                kpytrace.memory(**options)
        for options in ({"max_entries": "x"}, {"max_frames": 1.5}, {"sample_bytes": None}):
            with self.assertRaisesRegex((TypeError, ValueError), next(iter(options))):
                kpytrace.memory(**options)
        self.assertEqual(kpytrace.memory(sample_bytes="512kB")._arguments, (512000, 0, 0))

    def test_a_noop_has_a_reason(self):
        self.use_noop()
        with self.assertRaisesRegex(RuntimeError, "can't record memory: .*backend"):
            kpytrace.memory(self.path).start()
        self.assertFalse(self.path.exists())
        self.assertIsNone(kpytrace._api.memory._active)

    def test_what_has_not_begun(self):
        m = kpytrace.memory()
        for call in (m.stop, lambda: m.export(self.path)):
            with self.assertRaisesRegex(RuntimeError, "not been started"):
                call()
        m.close()
        with self.assertRaisesRegex(RuntimeError, "closed"):
            m.start()

    @unittest.skipUnless(SAMPLE.exists(), "the sample plugin is not built")
    def test_another_plugin(self):
        self.use_plugin(str(SAMPLE))
        try:
            kpytrace.memory().start()
        except RuntimeError:
            pass

    def test_the_module_wants_its_own_capsules(self):
        from kpytrace import _standalone as module

        for call in (module.memory_start, module.memory_stop, module.memory_free):
            self.assertRaises(TypeError, call, object())
        self.assertRaises(TypeError, module.memory_export, object(), "a.pickle")
        self.assertRaises(TypeError, module.memory_make, "plugin")


@unittest.skipUnless(FREE_THREADED and BACKEND.exists(), "this Python has a GIL")
class FreeThreaded(MemoryCase):
    def test_it_is_refused(self):
        with self.assertRaisesRegex(RuntimeError, "on free-threaded Python"):
            kpytrace.memory(self.path).start()
        self.assertFalse(self.path.exists())


@unittest.skipUnless(BACKEND.exists() and not FREE_THREADED, WHY_SKIPPED)
class Life(MemoryCase):
    def test_one_at_a_time(self):
        with kpytrace.memory(self.path) as m:
            self.assertTrue(m.running)
            with self.assertRaisesRegex(RuntimeError, "already"):
                kpytrace.memory().start()
            self.assertIs(m.start(), m)
        self.assertFalse(m.running)
        m.stop()
        with kpytrace.memory(self.path):
            pass

    def test_the_tracer_itself_knows_of_another_one(self):
        from kpytrace import _standalone as module

        with kpytrace.memory():
            other, reason = module.memory_make(kpytrace.plugin_path(), 0, 0, 0)
            self.assertIsNone(reason)
            with self.assertRaisesRegex(RuntimeError, "another memory tracer is recording"):
                module.memory_start(other)
        module.memory_start(other)
        module.memory_stop(other)
        module.memory_free(other)
        module.memory_free(other)
        self.assertRaises(RuntimeError, module.memory_start, other)

    def test_cycles_go_on_with_one_recording(self):
        m = kpytrace.memory(self.path)
        kept = []
        for i in range(20):
            with m:
                kept.append(bytes(99968 + i))
            between = bytes(199968 + i)
        sizes = self.kept_sizes()
        for i in range(20):
            self.assertIn(100001 + i, sizes)
            self.assertNotIn(200001 + i, sizes)
        del between

    def test_many_recordings(self):
        for i in range(100):
            with kpytrace.memory(sample_bytes=i % 3 * 1000, max_entries=i % 5 * 100) as m:
                kept = [bytes(1000) for _ in range(100)]
            m.close()
        del kept

    def test_what_was_freed_between_is_seen_when_its_place_is_taken(self):
        m = kpytrace.memory(self.path)
        for _ in range(4):
            with m:
                kept = [bytes(size % 3000) for size in range(5000)]
            del kept
            gc.collect()
        Snapshot(self.path).check(self)

    def test_an_exception_in_the_block(self):
        with self.assertRaises(ZeroDivisionError):
            with kpytrace.memory(self.path):
                1 / 0
        Snapshot(self.path).check(self)

    def test_exit_while_recording(self):
        self.program("""
            import sys, kpytrace
            kpytrace.memory(sys.argv[1]).start()
            kept = bytes(123424)
            """)
        self.assertIn(123457, self.kept_sizes())

    def test_an_exit_that_can_not_write(self):
        reply = self.program("""
            import os, shutil, sys, kpytrace
            folder = sys.argv[1] + ".d"
            os.mkdir(folder)
            kpytrace.memory(folder + "/x.pickle").start()
            shutil.rmtree(folder)
            """)
        self.assertRegex(reply.stderr, r"\Akpytrace: .*x\.pickle could not be written: .*\n\Z")

    def test_exit_by_an_exception_and_with_threads(self):
        self.program("""
            import sys, threading, kpytrace
            kpytrace.memory(sys.argv[1], max_entries=20000).start()
            def work():
                while True: [bytes(100) for _ in range(100)]
            threading.Thread(target=work, daemon=True).start()
            raise SystemExit(3)
            """, status=3)
        self.assertGreater(len(Snapshot(self.path).check(self).entries), 0)

    def test_a_recording_without_a_reference(self):
        self.program("""
            import sys, gc, kpytrace
            kpytrace.memory(None).start()
            gc.collect()
            m = kpytrace._api.memory._active
            m.close()
            del m
            with kpytrace.memory(sys.argv[1]): pass
            """)

    def test_fork(self):
        """The child records nothing, may start its own recording, and does not change its parent's file."""
        self.program("""
            import os, sys, kpytrace
            sys.path.insert(0, %r)
            from snapshots import Snapshot
            with kpytrace.memory(sys.argv[1]) as m:
                before = bytes(111078)
                child = os.fork()
                if child == 0:
                    assert not m.running
                    own = bytes(222188)
                    m.stop()
                    assert not os.path.exists(sys.argv[1])
                    m.export("empty.pickle")
                    assert Snapshot("empty.pickle").entries == []
                    with kpytrace.memory("child.pickle"):
                        mine = bytes(333298)
                    sizes = [b["size"] for b in Snapshot("child.pickle").blocks]
                    assert 333331 in sizes and 222221 not in sizes and 111111 not in sizes
                    m.start()
                    again = bytes(444408)
                    m.export("again.pickle")
                    sizes = [b["size"] for b in Snapshot("again.pickle").blocks]
                    assert 444441 in sizes and 111111 not in sizes
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
                after = bytes(555518)
            sizes = [b["size"] for b in Snapshot(sys.argv[1]).blocks]
            assert 111111 in sizes and 555551 in sizes and 333331 not in sizes
            """ % str(pathlib.Path(__file__).parents[1] / "support"))

    def test_fork_with_threads_and_samples(self):
        self.program("""
            import os, sys, threading, kpytrace
            over = False
            def work():
                while not over: [bytes(100) for _ in range(100)]
            threads = [threading.Thread(target=work) for _ in range(3)]
            for sample in (0, 1000):
                with kpytrace.memory(sys.argv[1], sample_bytes=sample, max_entries=20000):
                    if not sample:
                        for thread in threads: thread.start()
                    for _ in range(5):
                        child = os.fork()
                        if child == 0:
                            with kpytrace.memory("child.pickle", sample_bytes=sample):
                                [bytes(100) for _ in range(1000)]
                            os._exit(0)
                        assert os.waitpid(child, 0)[1] == 0
            over = True
            for thread in threads: thread.join()
            """)

    @unittest.skipUnless(INTERPRETERS, "this Python has no module for sub-interpreters")
    def test_sub_interpreters(self):
        self.program(f"""
            import sys, kpytrace
            import {INTERPRETERS} as interpreters
            def run(text):
                try:
                    other = interpreters.create("legacy")
                except TypeError:  # 3.12 and before
                    other = interpreters.create(isolated=False)
                try:
                    error = (interpreters.exec if hasattr(interpreters, "exec")
                             else interpreters.run_string)(other, text)
                except interpreters.RunFailedError as e:
                    error = e
                interpreters.destroy(other)
                return str(getattr(error, "formatted", error) or "")
            with kpytrace.memory(sys.argv[1]):
                assert not run("kept = [bytes(7000) for _ in range(1000)]")
            error = run("import kpytrace; kpytrace.memory().start()")
            assert "main interpreter" in error or "does not support" in error, error
            with kpytrace.memory("again.pickle"): pass
            """)
        entries = Snapshot(self.path).check(self).entries
        self.assertGreaterEqual(sum(e["size"] == 7033 for e in entries if e["action"] == "alloc"), 1000)

    @unittest.skipUnless(INTERPRETERS and sys.version_info >= (3, 12), "there are no interpreters with their own GIL")
    def test_issue_23_what_is_remembered_of_sub_interpreters(self):
        """Stacks are right in each of several, whose code dies and is made anew at the same addresses; and they cost no
        more than a few times those of the main one: 17 times, when nothing was remembered."""
        self.program(f"""
            import sys, kpytrace
            import {INTERPRETERS} as interpreters
            def create(own_gil):
                try:
                    return interpreters.create("isolated" if own_gil else "legacy")
                except TypeError:  # 3.12
                    return interpreters.create(isolated=own_gil)
            def run(other, text):
                error = interpreters.run_string(other, text)
                assert not error, error
            others = [create(own_gil) for own_gil in (True, False, True)]
            with kpytrace.memory(sys.argv[1]):
                for n in range(6):
                    text = {DYING!r}.replace("NAME", f"f{{n}}").replace("SIZE", str(10_000 * (n + 1)))
                    run(others[n % 3], text)
            with kpytrace.memory(max_entries=1000):
                space = {{}}
                exec({TIMED!r}, space)
                run(others[0], {TIMED!r} + f"\\nassert best < 6 * {{space['best']}}, (best, {{space['best']}})")
            """)
        names = {block["size"]: block["frames"][0]["name"] for block in Snapshot(self.path).check(self).blocks
                 if block["frames"]}
        for n in range(6):
            for i in range(100):
                self.assertEqual(names[10_000 * (n + 1) + i + 33], f"f{n}_{i}")

    def test_collections_and_finalizers_inside(self):
        """Garbage collections never run inside an allocation."""
        class Cycle:
            def __init__(self):
                self.me, self.more = self, [object() for _ in range(10)]

            def __del__(self):
                bytes(1000)
        threshold = gc.get_threshold()
        self.addCleanup(gc.set_threshold, *threshold)
        gc.set_threshold(1)
        with kpytrace.memory(self.path):
            for _ in range(100):
                Cycle()
                {k: [k] for k in range(50)}
        gc.set_threshold(*threshold)
        Snapshot(self.path).check(self)


if __name__ == "__main__":
    unittest.main()
