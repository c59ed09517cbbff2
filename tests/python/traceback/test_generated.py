"""kpytrace.traceback.generated maps lines of generated code to their origin."""

import pathlib
import sys
import types
import threading
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, TAG

from kpytrace import traceback as tb

WHY_SKIPPED = f"there is no backend for CPython {TAG} beside the plugin"


def here():
    return tb.gather()


def names(where):
    return [frame["name"] for frame in where.symbolize()]


def code_with(name):
    """Returns a function of this name in the file <made>, which gathers."""
    scope = {"gather": tb.gather}
    exec(compile(f"def {name}():\n    return gather()\n", "<made>", "exec"), scope)
    return scope[name]


@unittest.skipUnless(BACKEND.exists(), WHY_SKIPPED)
class Generated(unittest.TestCase):
    def register(self, function):
        tb.generated(function)
        self.addCleanup(tb.no_longer_generated, function)

    def answer(self, filename, line):
        if filename != "<made>":
            return None
        return [{"name": f"kernel{i}", "filename": f"model.py{line}", "line": 10 * i} for i in (1, 2)]

    def test_they_follow_their_frame(self):
        self.register(self.answer)
        where = code_with("call")()
        frames = where.symbolize()
        self.assertEqual(names(where)[:4],
                         ["call", "kernel1", "kernel2", "test_they_follow_their_frame"])
        self.assertEqual((frames[1]["filename"], frames[2]["line"]), ("model.py2", 20))
        self.assertEqual([frame["kind"] for frame in frames[:4]],
                         ["python", "generated", "generated", "python"])
        self.assertEqual((frames[1]["column"], frames[1]["first_line"]), (None, None))

    def test_a_removed_function_is_not_called(self):
        tb.generated(self.answer)
        tb.no_longer_generated(self.answer)
        # A bound method is made anew each time, so that was another one.
        for function in list(tb._generated):
            tb.no_longer_generated(function)
        self.assertNotIn("kernel1", names(code_with("call")()))

    def test_the_last_function_is_called_first(self):
        self.register(self.answer)
        self.register(lambda filename, line: [] if filename == "<made>" else None)
        self.assertNotIn("kernel1", names(code_with("call")()))

    def test_torch(self):
        module = types.ModuleType("torch._inductor.codecache")
        module.PyCodeCache = types.SimpleNamespace(stack_frames_for_code=self.answer)
        where = code_with("call")()
        with unittest.mock.patch.dict(sys.modules, {module.__name__: module}):
            self.assertEqual(names(where)[1:3], ["kernel1", "kernel2"])
        del module.PyCodeCache
        with unittest.mock.patch.dict(sys.modules, {module.__name__: module}):
            self.assertNotIn("kernel1", names(code_with("call")()))

    def test_failures_cost_that_frame_only(self):
        wrong = (ZeroDivisionError, 3, [None], [{"name": "x"}],
                 [{"name": 3, "filename": "", "line": 1}], [{"name": "", "filename": "", "line": -1}],
                 [{"name": "", "filename": "", "line": "1"}])
        for answer in wrong:
            def fail(filename, line, answer=answer):
                if filename != "<made>":
                    return None
                if answer is ZeroDivisionError:
                    return 1 // 0
                return answer
            seen = []
            tb.generated(fail)
            try:
                with unittest.mock.patch("sys.unraisablehook", seen.append):
                    frames = tb.symbolize([code_with("call")(), here()])
            finally:
                tb.no_longer_generated(fail)
            self.assertEqual(len(seen), 1, answer)
            self.assertEqual([frame["name"] for frame in frames[0][:2]],
                             ["call", "test_failures_cost_that_frame_only"])
            self.assertEqual(frames[1][0]["name"], "here")

    def test_odd_names(self):
        self.register(lambda filename, line:
                      [{"name": "a\ud800", "filename": "b\udcff", "line": 0}]
                      if filename == "<made>" else None)
        frame = code_with("call")().symbolize()[1]
        self.assertEqual((frame["name"], frame["filename"]), ("a\\ud800", "b\\udcff"))

    def test_it_may_gather_and_symbolize(self):
        inner = []

        def ask(filename, line):
            if not inner:
                inner.append(None)
                inner[0] = here().symbolize()[0]["name"]
            return None
        self.register(ask)
        self.assertEqual(names(here())[0], "here")
        self.assertEqual(inner, ["here"])

    def test_skipped_frames_take_theirs_along(self):
        def two():
            return tb.gather(), tb.gather(skip=1)

        def outer():
            return two()
        line = two.__code__.co_firstlineno + 1
        self.register(lambda filename, at: [{"name": "made", "filename": "x", "line": 1}]
                      if at == line else None)
        whole, skipped = outer()
        self.assertEqual(names(whole)[:3], ["two", "made", "outer"])
        self.assertEqual(names(skipped)[:1], ["outer"])

    def test_functions_change_while_others_symbolize(self):
        over = threading.Event()

        def change():
            while not over.is_set():
                function = tb.generated(lambda filename, line: None)
                tb.no_longer_generated(function)
        threads = [threading.Thread(target=change) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(2000):
                self.assertEqual(names(here())[0], "here")
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def test_wrong_function(self):
        self.assertRaises(TypeError, tb.generated, None)


if __name__ == "__main__":
    unittest.main()
