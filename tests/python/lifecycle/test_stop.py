"""Stop without the GIL, from threads without a Python thread state, and under load."""

import support
from support import rounds


class StopTest(support.Case):
    def test_stop_while_another_thread_holds_the_gil(self):
        # A C call keeps the GIL until stop, get_events and destroy have returned. If one of them waited for the
        # GIL, it would wait forever.
        self.program("""
            import ctypes, lc
            tracer = lc.Tracer()
            lc.ticks(1000)
            stopper = ctypes.c_void_p(lc.held.lc_stopper_start(tracer.address, 200))
            result = lc.Result()
            assert lc.held.lc_stopper_wait(stopper, ctypes.byref(result)) >= 0
            assert result.check().pairs == 1 and result.least == 1000, result.least
        """)

    def test_stop_while_threads_are_in_callbacks(self):
        # With the GIL and without it, in turn. stop waits for running callbacks.
        self.program("""
            import lc
            threads = [threading.Thread(target=spin, args=(60,), daemon=True) for _ in range(4)]
            for t in threads: t.start()
            for i in range(%d):
                tracer = lc.Tracer(lc.held if i %% 4 < 2 else lc.free)
                lc.ticks(50)
                result = tracer.finish(lc.held if i %% 2 else lc.free)
                assert result.pairs == 1 and result.least == 50, (i, result.pairs, result.least)
            sys.stdout.flush()
            os._exit(0)
        """ % rounds(100, 1000), limit=120)

    def test_control_from_a_thread_without_python(self):
        # The thread stops the tracer while the others run, and does not depend on their end.
        self.program("""
            import lc
            ending = False
            def run():
                while not ending: spin(0.01)
            threads = [threading.Thread(target=run) for _ in range(3)]
            for t in threads: t.start()
            try:
                lc.Cycler(%d).wait()
            finally:
                ending = True
            for t in threads: t.join()
        """ % rounds(50, 1000), limit=160)

    def test_two_host_threads_and_two_python_threads(self):
        # Four tracers at once, started and stopped from four threads.
        self.program("""
            import lc
            failures = []
            def cycle():
                try:
                    for i in range(%d):
                        tracer = lc.Tracer()
                        lc.ticks(20)
                        result = tracer.finish(lc.free if i %% 2 else lc.held)
                        assert result.least == 20 and result.dropped == 0, result.least
                except BaseException as e:
                    failures.append(repr(e))
                    raise
            cyclers = [lc.Cycler(%d, 100), lc.Cycler(%d, 1000)]
            threads = [threading.Thread(target=cycle) for _ in range(2)]
            for t in threads: t.start()
            for t in threads: t.join()
            for c in cyclers: c.wait()
            assert not failures, failures
        """ % ((rounds(50, 500),) * 3), limit=180)

    def test_hooks_are_gone_after_a_stop_without_the_gil(self):
        # The next callback removes the hooks. A new tracer may use another tool at once.
        self.program("""
            import lc
            tracer = lc.Tracer()
            spin(0.01)
            tracer.stop(lc.free)
            spin(0.01)
            if hasattr(sys, "monitoring"):
                assert sys.monitoring.get_tool(3) is None, sys.monitoring.get_tool(3)
            else:
                assert sys.getprofile() is None
            assert tracer.deliver().activities > 10
            tracer.destroy()
        """)

    def test_another_tool_after_a_stop_without_the_gil(self):
        self.program("""
            import kpytrace, lc
            tracer = lc.Tracer()
            tracer.stop(lc.free)
            trace = kpytrace.start(tool_id=4)
            assert trace.running
            kpytrace.stop()
            tracer.destroy()
        """)

    def test_a_refused_start_beside_a_running_trace(self):
        # Threads have already attached to the refused tracer when it is refused.
        if not support.MONITORING:
            self.skipTest("there are no tools to be refused before 3.12")
        self.program("""
            import kpytrace, lc
            threads = [threading.Thread(target=spin, args=(1,)) for _ in range(3)]
            for t in threads: t.start()
            running = lc.Tracer()
            for i in range(50):
                try:
                    kpytrace.start(tool_id=5)
                except RuntimeError as e:
                    assert "tool" in str(e), e
                else:
                    raise AssertionError("not refused")
            lc.ticks(10)
            assert running.finish().least == 10
            for t in threads: t.join()
        """)

    def test_snapshots_while_all_record(self):
        # A snapshot delivers the whole recording, so many are taken of several recordings, and not of one.
        self.program("""
            import lc
            for _ in range(%d):
                ring, everything = lc.Tracer(ring_bytes=1 << 18), lc.Tracer()
                threads = [threading.Thread(target=spin, args=(0.4,)) for _ in range(3)]
                for t in threads: t.start()
                for i in range(20):
                    lc.ticks(100)
                    assert everything.snapshot().pairs == i + 1
                    ring.snapshot()
                for t in threads: t.join()
                assert everything.finish().least == 100
                ring.finish()
        """ % rounds(1, 5), limit=rounds(60, 300))


if __name__ == "__main__":
    support.main()
