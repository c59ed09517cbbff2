"""fork while tracing: in the child the tracer is stopped and empty, and the child may start its own trace. The
parent continues."""

import os
import unittest

import support
from support import rounds

# Runs in a child: checks the active recordings there, and makes a new trace.
CHILD = """
import kpytrace
def child_work():
    return sum(abs(i) for i in range(50))
def in_child(own):
    "Ends the process: 0 if all is well."
    code = 1
    try:
        assert kpytrace._api.trace._active is None
        child_work()
        trace = kpytrace.start(own)
        child_work()
        summary = kpytrace.stop()
        assert summary.noop is None, summary.noop
        assert 50 <= summary.calls < 400, summary
        if own: os.unlink(own)
        code = 0
    except BaseException:
        import traceback
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
def wait(pid):
    done, status = os.waitpid(pid, 0)
    assert status == 0, hex(status)
def parent_work():
    return child_work()
"""


class ForkTest(support.Case):
    def test_fork(self):
        self.program(CHILD + """
            trace = kpytrace.start(os.environ["TRACE"])
            parent_work()
            for i in range(%d):
                pid = os.fork()
                if pid == 0: in_child(os.environ["TRACE"] + ".child.json")
                wait(pid)
                parent_work()
            assert trace.running
            summary = kpytrace.stop()
            assert summary.path and summary.calls >= %d, summary
        """.replace("\n            ", "\n") % (rounds(10, 100), 50 * rounds(10, 100)), limit=120)
        self.assertIn("parent_work", self.trace.read_text())
        self.assertNotIn("in_child", self.trace.read_text())

    def test_fork_from_a_thread_while_others_call(self):
        self.program(CHILD + """
            import lc
            for _ in range(3): threading.Thread(target=spin, args=(100,), daemon=True).start()
            kpytrace.start()
            failures = []
            def forker():
                try:
                    for i in range(%d):
                        pid = os.fork()
                        if pid == 0: in_child(None)
                        wait(pid)
                except BaseException as e:
                    failures.append(repr(e))
            thread = threading.Thread(target=forker)
            thread.start(); thread.join()
            summary = kpytrace.stop()
            assert not failures, failures
            assert summary.calls > 100, summary
            os._exit(0)
        """.replace("\n            ", "\n") % rounds(20, 200), limit=180)

    @unittest.skipIf("libasan" in os.environ.get("LD_PRELOAD", ""),
                     "AddressSanitizer's allocator hangs by itself after a fork among threads")
    def test_fork_while_others_start_and_stop(self):
        # Two threads without Python make and destroy tracers at the same time.
        self.program(CHILD + """
            import lc
            cyclers = [lc.Cycler(%d, 100), lc.Cycler(%d, 300)]
            for i in range(%d):
                pid = os.fork()
                if pid == 0: in_child(None)
                wait(pid)
                spin(0.002)
            for c in cyclers: c.wait()
        """.replace("\n            ", "\n") % (rounds(100, 1000), rounds(100, 1000),
                                               rounds(20, 200)), limit=240)

    def test_fork_while_another_imports_for_us(self):
        # The first tracer of the process imports atexit, which takes a while here. The child imports it, too.
        self.program("""
            import lc, signal
            from importlib.machinery import BuiltinImporter, ModuleSpec
            class Slow(BuiltinImporter):
                @classmethod
                def find_spec(cls, name, path=None, target=None):
                    return ModuleSpec(name, cls) if name == "atexit" else None
                @classmethod
                def create_module(cls, spec):
                    began.set()
                    time.sleep(0.2)
                    return BuiltinImporter.create_module(spec)
            began = threading.Event()
            sys.modules.pop("atexit", None)
            sys.meta_path.insert(0, Slow)
            cycler = lc.Cycler(1)
            assert began.wait(50)
            pid = os.fork()
            if pid == 0:
                signal.alarm(20)
                import atexit
                os._exit(0)
            status = os.waitpid(pid, 0)[1]
            assert status == 0, hex(status)
            cycler.wait()
        """)

    @unittest.skipUnless(support.MONITORING, "hooks are not seen")
    @unittest.skipIf("libasan" in os.environ.get("LD_PRELOAD", ""), "as above")
    def test_nobody_records_in_the_child(self):
        # A tracer without a handle, which another thread was making or destroying, does not record either.
        self.program("""
            import lc
            cyclers = [lc.Cycler(1_000_000, 50), lc.Cycler(1_000_000, 50)]
            left = 0
            for i in range(%d):
                pid = os.fork()
                if pid == 0:
                    lc.ticks(200)
                    os._exit(sum(sys.monitoring.get_tool(i) is not None for i in range(6)))
                left += os.waitpid(pid, 0)[1] != 0
                lc.ticks(500)
            assert not left, left
            os._exit(0)
        """ % rounds(400, 3000), limit=240)

    def test_the_childs_copy_of_a_running_tracer(self):
        # By the ABI, the tracer is stopped and empty in the child, the first stop is legal, and restart and
        # destroy work.
        self.program("""
            import lc
            tracer = lc.Tracer()
            lc.ticks(100)
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    assert lc.held.lc_state(tracer.address) == 2
                    lc.ticks(5)
                    assert tracer.deliver().activities == 0
                    tracer.stop()
                    assert lc.held.lc_stop(tracer.address) != 0
                    assert lc.held.lc_restart(tracer.address) == 0
                    lc.ticks(30)
                    result = tracer.finish()
                    assert result.pairs == 1 and result.least == 30, (result.pairs, result.least)
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(pid, 0)[1] == 0
            lc.ticks(100)
            result = tracer.finish()
            assert result.pairs == 2 and result.least == result.most == 100, result.pairs
        """)

    def multiprocessing(self, method):
        out = self.program("""
            import kpytrace, multiprocessing
            def work(n):
                return sum(abs(-i) for i in range(n))
            def main():
                kpytrace.start(os.environ["TRACE"])
                context = multiprocessing.get_context("%s")
                with context.Pool(2) as pool:
                    assert pool.map(work, [100] * 8) == [4950] * 8
                work(10)
                summary = kpytrace.stop()
                assert summary.calls > 20, summary
                print("fine")
            if __name__ == "__main__":
                main()
        """ % method, limit=120)
        self.assertIn("fine", out)

    def test_multiprocessing_fork(self):
        self.multiprocessing("fork")

    def test_multiprocessing_spawn(self):
        self.multiprocessing("spawn")

    def test_the_child_exits_by_the_ordinary_way(self):
        # The child's exit handlers run, and must not write the parent's file.
        self.program("""
            import kpytrace
            kpytrace.start(os.environ["TRACE"])
            pid = os.fork()
            if pid == 0: sys.exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            assert not os.path.exists(os.environ["TRACE"])
            spin(0.01)
        """)
        self.assertIn("spin", self.trace.read_text())


if __name__ == "__main__":
    support.main()
