"""The interpreter ends with a live tracer. Every kind of exit is clean, and the trace is written."""

import json
import sys
import unittest

import support
from support import rounds

START = """
import kpytrace
def work():
    return [abs(i) for i in range(10)]
"""
if sys.version_info < (3, 11):
    # 3.10 frees the interpreter while daemon threads that wait for the GIL still read it. With four spinning
    # threads about 2 of 100 programs crash because of it, also without kpytrace. Here Last waits until the
    # threads have ended.
    START += """
class Last:
    def __del__(self, threads=threading._active, main=os.getpid(), exists=os.path.exists, sleep=time.sleep):
        ids = [t.native_id for t in threads.values() if t.native_id != main]
        while any(exists(f"/proc/self/task/{i}") for i in ids): sleep(0.001)
sys.modules["last"] = Last()
"""


class ExitTest(support.Case):
    def ends(self, text, status=0, written=True, limit=60):
        out = self.program(START + "\n".join(line[12:] for line in text.split("\n")),
                           status=status, limit=limit)
        if written:
            names = {e["name"] for e in json.loads(self.trace.read_text())["traceEvents"]}
            self.assertTrue(any("work" in name for name in names), names)
        return out

    def test_a_trace_that_nobody_stopped(self):
        self.ends("""
            kpytrace.start(os.environ["TRACE"])
            work()
        """)

    def test_an_exception_at_top_level(self):
        self.ends("""
            kpytrace.start(os.environ["TRACE"])
            work()
            raise KeyError("by the program")
        """, status=1)
        self.assertIn("by the program", self.errors)

    def test_sys_exit_inside_the_block(self):
        self.ends("""
            with kpytrace.trace(os.environ["TRACE"]):
                work()
                sys.exit(7)
        """, status=7)

    def test_sys_exit_in_a_thread(self):
        self.ends("""
            def leave():
                work()
                sys.exit(3)
            kpytrace.start(os.environ["TRACE"])
            t = threading.Thread(target=leave)
            t.start(); t.join()
        """)

    def test_os_exit(self):
        self.ends("""
            kpytrace.start(os.environ["TRACE"])
            work()
            os._exit(5)
        """, status=5, written=False)

    def test_daemon_threads_go_on(self):
        for _ in range(rounds(3, 30)):
            self.ends("""
                for _ in range(4): threading.Thread(target=spin, args=(60,), daemon=True).start()
                kpytrace.start(os.environ["TRACE"])
                work()
                spin(0.02)
            """.replace("\n    ", "\n"))

    def test_daemon_threads_and_a_tracer_that_is_never_stopped(self):
        # A host in C has no exit handler, so ours ends the recording before Python ends.
        for i in range(rounds(3, 30)):
            self.ends("""
                import lc
                for _ in range(4): threading.Thread(target=spin, args=(60,), daemon=True).start()
                tracer = lc.Tracer()
                lc.held.lc_register_gc(tracer.address)
                work()
                spin(0.02)
            """.replace("\n    ", "\n"), written=False)

    def test_a_thread_inside_stop(self):
        # Threads without Python stop, deliver and destroy, each a little later than the one before,
        # while the interpreter ends.
        for _ in range(rounds(3, 30)):
            self.ends("""
                import lc
                threading.Thread(target=spin, args=(60,), daemon=True).start()
                tracers = [lc.Tracer() for _ in range(8)]
                spin(0.02)
                for i, t in enumerate(tracers):
                    lc.free.lc_stopper_start(t.address, i)
            """.replace("\n    ", "\n"), written=False)

    @unittest.skipIf(support.FREE_THREADED,
                     "such a Python hangs now and then by itself, untraced, when a daemon thread makes "
                     "types or sets hooks as it ends: one that holds a lock is stopped for good")
    def test_stop_in_a_daemon_thread(self):
        for _ in range(rounds(3, 30)):
            self.ends("""
                def cycle():
                    import lc
                    while True: lc.Tracer().finish(lc.free)
                threading.Thread(target=cycle, daemon=True).start()
                spin(0.1)
            """.replace("\n    ", "\n"), written=False)

    def test_exit_handlers_are_traced_or_not_but_run(self):
        out = self.ends("""
            import atexit
            atexit.register(lambda: print("later", len(work())))
            kpytrace.start(os.environ["TRACE"])
            atexit.register(lambda: print("sooner", len(work())))
            work()
        """)
        self.assertEqual(out.split("\n")[:2], ["sooner 10", "later 10"])

    def test_start_in_an_exit_handler(self):
        out = self.ends("""
            import atexit
            @atexit.register
            def last():
                with kpytrace.trace(os.environ["TRACE"]): work()
                print("fine")
        """)
        self.assertIn("fine", out)

    def test_start_in_an_exit_handler_that_runs_after_ours(self):
        out = self.ends("""
            import atexit, lc
            @atexit.register
            def last():
                global tracer
                tracer = lc.Tracer()
                lc.ticks(10)
                print("fine")
            lc.Tracer().finish()
        """, written=False)
        self.assertIn("fine", out)

    def test_finalizers_of_modules(self):
        # __del__ runs when modules are torn down, with a tracer that was never stopped.
        self.ends("""
            import lc
            class Late:
                def __del__(self, work=work): work()
            late = Late()
            cycle = Late(); cycle.self = cycle
            tracer = lc.Tracer()
            work()
        """, written=False)

    def test_start_when_modules_are_torn_down(self):
        out = self.ends("""
            import lc
            class Late:
                def __del__(self, Tracer=lc.Tracer, print=print, Refused=lc.Refused):
                    try:
                        Tracer()
                        print("made")
                    except Refused as e:
                        print("refused:", e)
            sys.modules["late"] = Late()
            lc.Tracer().finish()
        """, written=False)
        self.assertIn("refused:", out)


if __name__ == "__main__":
    support.main()
