"""Uncommon contexts in which programs call us: signal handlers, finalizers, weakref callbacks, audit hooks; with
other hooks, on small stacks, at the recursion limit, and between greenlets."""

import support
from support import rounds


class StrangeTest(support.Case):
    def test_start_and_stop_in_a_signal_handler(self):
        self.program("""
            import lc, signal
            running, counts, depth = [], [], []
            def handler(number, frame):
                if len(depth) > 5: return  # a slow start is interrupted by the next signal, and so on
                depth.append(1)
                if running:
                    counts.append(running.pop().finish().activities)
                else:
                    running.append(lc.Tracer())
                depth.pop()
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.002)
            t = threading.Thread(target=spin, args=(1,)); t.start()
            spin(1)
            t.join()
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert len(counts) > 10 and sum(counts) > 1000, counts
        """)

    def test_the_package_in_a_signal_handler(self):
        self.program("""
            import kpytrace, signal
            kpytrace.start(); kpytrace.stop()  # a handler may interrupt itself in an import
            done = []
            def handler(number, frame):
                try:
                    if kpytrace._api.trace._active: done.append(kpytrace.stop())
                    else: kpytrace.start()
                except RuntimeError as e:  # it has interrupted itself in a start or a stop
                    assert "running" in str(e) or "trace" in str(e), e
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
            spin(1)
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert len(done) > 5, done
        """)

    def test_finalizers_and_weakref_callbacks(self):
        self.program("""
            import lc, gc, weakref
            class Node:
                def __init__(self): self.me = self
                def __del__(self): lc.tick(); [len("x") for i in range(3)]
            class Toggle:
                def __init__(self): self.me = self
                def __del__(self):
                    extra = lc.Tracer(); lc.tick(); extra.finish()
            gc.set_threshold(50)
            tracer = lc.Tracer()
            lc.held.lc_register_gc(tracer.address)
            dead = []
            for i in range(300):
                Node()
                if i %% 20 == 0: Toggle()
                node = Node()
                ref = weakref.ref(node, lambda r: (lc.tick(), dead.append(1)))
                dead.append(ref)
                del node
            gc.collect()
            result = tracer.finish()
            assert result.ticks >= 900, result.ticks
            # A free-threaded Python collects when it thinks fit, whatever the threshold.
            assert result.gc >= %d, result.gc
        """ % (1 if support.FREE_THREADED else 3))

    def test_collections_at_every_allocation_in_callbacks(self):
        # Naming a function and walking a stack allocate; up to 3.11 a collection runs right there.
        self.program("""
            import lc, gc
            gc.set_threshold(1)
            class Loop:
                def __init__(self): self.me = self
                def __del__(self): lc.tick()
            for i in range(%d):
                tracer = lc.Tracer(ring_bytes=1 << 17 if i %% 2 else 0)
                lc.held.lc_register_gc(tracer.address)
                def deep(n):
                    Loop()
                    return deep(n - 1) if n else 0
                for k in range(30): deep(20)
                space = {}
                exec(f"def fresh{i}(): return Loop()", {"Loop": Loop}, space)
                space[f"fresh{i}"]()
                lc.ticks(20)
                gc.collect()
                result = tracer.finish()
                assert result.gc > 0
        """ % rounds(10, 100))

    def test_audit_hooks_that_run_python(self):
        self.program("""
            import lc
            seen = []
            sys.addaudithook(lambda name, args: seen.append(len(name)))
            for i in range(20):
                tracer = lc.Tracer()
                lc.ticks(10)
                assert tracer.finish(lc.free if i % 2 else lc.held).least == 10
        """)

    def test_the_programs_own_profile_and_trace_functions(self):
        # Up to 3.11 the interpreter has one profile function per thread. The program's own replaces
        # ours, and that thread's recording ends. From 3.12 on both continue.
        self.program("""
            import lc
            mine = []
            def profile(frame, event, arg): mine.append(event)
            def trace(frame, event, arg): return trace
            tracer = lc.Tracer()
            lc.ticks(10)
            sys.settrace(trace)
            lc.ticks(10)
            sys.settrace(None)
            sys.setprofile(profile)
            lc.ticks(10)
            sys.setprofile(None)
            lc.ticks(10)
            result = tracer.finish()
            if hasattr(sys, "monitoring"):
                assert result.pairs == 4, result.pairs
            else:
                assert result.pairs == 2, result.pairs
            assert result.least == 10 and len(mine) >= 20, (result.least, len(mine))
            assert sys.getprofile() is None
            again = lc.Tracer()
            lc.ticks(10)
            assert again.finish().pairs == 1
        """)

    def test_a_profile_function_that_was_there_before(self):
        self.program("""
            import lc
            mine = []
            def profile(frame, event, arg): mine.append(event)
            sys.setprofile(profile)
            tracer = lc.Tracer()
            lc.ticks(10)
            result = tracer.finish()
            assert sys.getprofile() is profile
            before = len(mine)
            lc.tick()
            assert len(mine) > before
            sys.setprofile(None)
            assert result.pairs == 1 and result.least == 10
        """)

    def test_a_profiler_beside_us(self):
        self.program("""
            import lc, cProfile
            tracer = lc.Tracer()
            lc.ticks(10)
            profiler = cProfile.Profile()
            profiler.enable(); lc.ticks(10); profiler.disable()
            result = tracer.finish()
            assert profiler.getstats()
            assert result.pairs == (2 if hasattr(sys, "monitoring") else 1), result.pairs
        """)

    def test_recursion_errors(self):
        self.program("""
            import lc
            def down(n): return down(n + 1)
            def depth():
                try: down(0)
                except RecursionError as e:
                    n, tb = 0, e.__traceback__
                    while tb: n, tb = n + 1, tb.tb_next
                    return n
            before = depth()
            tracer = lc.Tracer()
            inside = [depth() for _ in range(20)]
            lc.ticks(10)
            result = tracer.finish()
            assert result.least == 10 and result.activities > 10 * before
            assert min(inside) >= before - 10, (before, inside)
        """)

    def test_start_at_the_recursion_limit(self):
        self.program("""
            import lc
            made = []
            def down(n):
                try: return down(n + 1)
                except RecursionError:
                    if not made: made.append(lc.Tracer())
                    raise
            try: down(0)
            except RecursionError: pass
            lc.ticks(10)
            assert made[0].finish().least == 10
        """)

    def test_small_stacks(self):
        # The smallest stacks that threads may have: our callbacks must fit in addition to Python itself.
        self.program("""
            import lc
            smallest = 32768
            while True:
                try:
                    threading.stack_size(smallest)
                    t = threading.Thread(target=int)
                    t.start(); t.join()
                    break
                except (ValueError, RuntimeError):
                    smallest += 16384
            # What Python needs for itself here, and what a host gives at least.
            threading.stack_size(max(smallest, 192 * 1024))
            def deep(n): return deep(n - 1) if n else sorted([3, 1], key=abs)
            def work():
                for i in range(20): deep(20); lc.ticks(5)
                exec("def fresh(): return 1\\nfresh()", {})
            for ring in (0, 1 << 17):
                tracer = lc.Tracer(ring_bytes=ring)
                lc.held.lc_register_gc(tracer.address)
                threads = [threading.Thread(target=work) for _ in range(10)]
                for t in threads: t.start()
                for t in threads: t.join()
                assert tracer.finish().least == 5
        """)

    def test_exceptions_that_are_pending(self):
        self.program("""
            import lc
            def fails(): raise KeyError("mine")
            def cleans():
                try: fails()
                finally: lc.tick()
            def generator():
                try: yield 1
                except ValueError as e: yield str(e)
            for i in range(50):
                tracer = lc.Tracer(lc.free if i % 2 else lc.held)
                try: cleans()
                except KeyError as e: assert e.args == ("mine",)
                g = generator(); next(g)
                assert g.throw(ValueError("thrown")) == "thrown"
                exec("try:\\n    int('x')\\nexcept ValueError: pass")
                tracer.finish()
        """)

    def test_greenlets(self):
        try:
            import greenlet  # noqa: F401
        except ImportError as e:
            self.skipTest(f"greenlet: {e}")
        self.program("""
            import lc, greenlet
            log = []
            def worker(n):
                for i in range(20):
                    lc.tick(); log.append(n)
                    main.switch(n)
            def nested(n):
                return worker(n) if n % 2 else [worker(n)]
            main = greenlet.getcurrent()
            tracer = lc.Tracer()
            others = [greenlet.greenlet(nested) for _ in range(5)]
            for i in range(20):
                for n, g in enumerate(others): g.switch(n)
            del others, g
            lc.ticks(10)
            result = tracer.finish()
            assert result.least == 10 and result.ticks == 110, (result.least, result.ticks)
        """)


if __name__ == "__main__":
    support.main()
