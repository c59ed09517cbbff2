"""Sub-interpreters: they run beside a trace of the main interpreter, and can't start their own trace."""

import importlib.util

import support

MODULE = next((m for m in ("_interpreters", "_xxsubinterpreters") if importlib.util.find_spec(m)),
              None)

# One function to make them, independent of the name of the module and its restrictions.
PRELUDE = f"""
import lc
import {MODULE} as interpreters
def create(own_gil):
    try:
        return interpreters.create("isolated" if own_gil else "legacy")
    except TypeError:  # 3.12 and before
        return interpreters.create(isolated=own_gil)
def run(other, text):
    "What went wrong, as text; '' if nothing did."
    try:
        error = interpreters.exec(other, text) if hasattr(interpreters, "exec") \\
            else interpreters.run_string(other, text)
    except interpreters.RunFailedError as e:
        error = e
    return str(getattr(error, "formatted", error) or "")
WORK = "def tick(): pass\\nfor i in range(1000): tick(); len('x')\\n"
"""


class SubInterpreterTest(support.Case):
    def setUp(self):
        if not MODULE:
            self.skipTest("this Python has no module for sub-interpreters")
        super().setUp()

    def run_both(self, text):
        for own_gil in (False, True):
            with self.subTest(own_gil=own_gil):
                text_now = "\n".join(line[12:] for line in text.split("\n"))
                self.program(PRELUDE + f"own_gil = {own_gil}\n" + text_now)

    def test_trace_the_main_one_while_another_runs(self):
        self.run_both("""
            other = create(own_gil)
            tracer = lc.Tracer()
            lc.ticks(10)
            assert run(other, WORK) == ""
            t = threading.Thread(target=run, args=(other, WORK))
            t.start()
            spin(0.1)
            t.join()
            lc.ticks(10)
            result = tracer.finish()
            assert result.pairs == 2 and result.least == 10
            assert result.ticks == 20, "the other one is not recorded"
            interpreters.destroy(other)
        """)

    def test_one_is_made_and_ends_while_we_trace(self):
        self.run_both("""
            tracer = lc.Tracer()
            for i in range(5):
                other = create(own_gil)
                assert run(other, WORK) == ""
                interpreters.destroy(other)
                lc.ticks(10)
            result = tracer.finish(lc.free)
            assert result.pairs == 5 and result.least == 10
        """)

    def test_stop_without_the_gil_after_one_was_made(self):
        # From then on PyGILState_Check returns 1 on every thread.
        self.run_both("""
            other = create(own_gil)
            threads = [threading.Thread(target=spin, args=(1,)) for _ in range(2)]
            for t in threads: t.start()
            cycler = lc.Cycler(50, 200)
            for t in threads: t.join()
            cycler.wait()
            spin(0.01)
            interpreters.destroy(other)
        """)

    def test_start_inside_is_refused(self):
        self.run_both("""
            other = create(own_gil)
            error = run(other, "import kpytrace\\nkpytrace.start()\\n")
            print(error)
            assert "interpreter" in error, error
            interpreters.destroy(other)
            tracer = lc.Tracer()
            lc.ticks(10)
            assert tracer.finish().least == 10
        """)


if __name__ == "__main__":
    support.main()
