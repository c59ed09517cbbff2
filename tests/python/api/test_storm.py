"""A signal handler that raises, again and again, at any moment: of a start, a stop, a dump, a flush or a recording of
memory. Afterwards no unregistered trace records, and the next start() works."""

import pathlib
import sys
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case, FREE_THREADED, run_python

# `storm(action)` runs the action until it was interrupted often enough, in steps that the program's own timing varies.
PROGRAM = """
import ctypes, gc, os, random, signal, sys
import kpytrace
from kpytrace._api import memory as _memory
from kpytrace._api import trace as _trace

MAX_RAISES = 4  # of the handler while one action runs
raises_left = 0

class Storm(Exception):
    pass

def handler(number, frame):
    global raises_left
    if raises_left:
        raises_left -= 1
        raise random.choice((Storm, KeyboardInterrupt))

def work(n=20):
    return [len("x" * i) for i in range(n)]

def allocators():
    found = []
    for domain in range(3):
        allocator = (ctypes.c_void_p * 5)()
        ctypes.pythonapi.PyMem_GetAllocator(domain, allocator)
        found.append(tuple(allocator))
    return found

def tools():
    return [sys.monitoring.get_tool(i) for i in range(6)] if sys.version_info >= (3, 12) else []

# How often the handler raised. Each level catches one exception, also one raised while the level below cleans up;
# afterwards the handler raises no more.
def interrupted(action, levels=MAX_RAISES):
    global raises_left
    caught = 0
    try:
        try:
            if levels:
                caught = interrupted(action, levels - 1)
            else:
                action()
        finally:
            raises_left = 0
    except (Storm, KeyboardInterrupt):
        caught += 1
    except RuntimeError as error:  # of one that still runs, which then can be stopped
        assert "running already" in str(error) or "no trace is running" in str(error), error
    return caught

def storm(action, often=300, most=6000):
    global raises_left
    hit = 0
    before = signal.signal(signal.SIGALRM, handler)
    for _ in range(most):
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, SPREAD), random.uniform(2e-5, SPREAD))
        def armed():
            global raises_left
            raises_left = MAX_RAISES
            action()
        hit += interrupted(armed)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if hit >= often:
            break
    signal.signal(signal.SIGALRM, before)
    gc.collect()
    assert hit >= often / 4, hit

def check_traces():
    while _trace._active is not None:
        kpytrace.stop()
    assert not any(tools()), tools()
    t = kpytrace.start("after.json")
    work()
    assert kpytrace.stop().calls >= 20
    with kpytrace.trace("after.kpt") as t: work()
    assert t.summary.calls >= 20
    t.close()
    assert not any(tools()), tools()
    assert _trace._traces.entries == {} == _trace._traces.kept

kpytrace.start(); work(); kpytrace.stop()  # what is imported on the way is, and has no handler in it
SPREAD = 0.002
random.seed(int(sys.argv[1]))
"""


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Storms(Case):
    def program(self, text, seed=1):
        reply = run_python("-X", "faulthandler", "-c", PROGRAM + textwrap.dedent(text), str(seed), cwd=self.folder)
        self.assertEqual(reply.returncode, 0, reply.stderr[-3000:])

    def test_blocks(self):
        """A trace of a block ends with the block, at any interruption."""
        self.program("""
            for output in (None, "t.json", "t.kpt"):
                def block():
                    with kpytrace.trace(output): work(200)
                storm(block)
                assert _trace._active is None
                check_traces()
            """)

    def test_start_and_stop(self):
        self.program("""
            for output in (None, "t.json", "t.kpt"):
                def start_and_stop():
                    if _trace._active is None: kpytrace.start(output)
                    work(200)
                    kpytrace.stop()
                storm(start_and_stop)
                check_traces()
            """)

    def test_dumps(self):
        self.program("""
            def dump():
                if _trace._active is None: kpytrace.start("t.json", ring="10s")
                work(200)
                os.unlink(kpytrace.dump())
            hooks = sys.excepthook
            storm(dump)
            check_traces()
            assert sys.excepthook is hooks
            """)

    def test_flushes(self):
        """One trace, which continues: an interrupted wait for a flush loses no events."""
        self.program("""
            t = kpytrace.start("t.kpt", flush_ns="1ms")
            def flush():
                work(300)
                t.stats()
                t._describe_again()
            storm(flush)
            assert t.running
            assert kpytrace.stop().calls > 300
            check_traces()
            """)

    @unittest.skipIf(FREE_THREADED, "memory is not recorded there")
    def test_memory(self):
        self.program("""
            plain = allocators()
            with kpytrace.memory("first.pickle"): pass
            for output in (None, "m.pickle"):
                def block():
                    with kpytrace.memory(output) as m: [bytes(100) for _ in range(50)]; m.export("m.json")
                storm(block)
                assert _memory._active is None
                assert allocators() == plain

                def start_and_stop():
                    m = _memory._active or kpytrace.memory(output).start()
                    [bytes(100) for _ in range(50)]
                    m.stop()
                storm(start_and_stop)
                for m in _memory._recordings.all(): m.stop()  # the one whose stop() was interrupted
                assert allocators() == plain, (allocators(), plain)
                assert _memory._recordings.entries == {} == _memory._recordings.kept
                m = kpytrace.memory().start()
                kept = bytes(12345)
                m.stop()
                m.export("after.json")
                assert "12378" in open("after.json").read()
                m.close()
            """)


if __name__ == "__main__":
    unittest.main()
