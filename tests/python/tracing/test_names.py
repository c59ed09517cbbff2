"""Names: correct for every function, also for a function that no longer exists, with any characters."""

import gc
import sys
import unittest

from host_case import HostCase
from support import Case, VERSION, define


class Names(Case):
    def display(self, name, file="<made>", line=1):
        """Returns the displayed name of a function of this name."""
        code = define("def f(): pass", "f").__code__
        function = type(define)(code.replace(co_name=name, co_filename=file, co_firstlineno=line),
                                {})
        recording = self.record(lambda: function())
        call, = (c for c in recording.of("<lambda>").children if c.kind == "python")
        return call.name

    def test_file_line_and_name(self):  # T1
        self.assertEqual(self.display("inner", "/some/file.py", 8), "/some/file.py(8): inner")
        self.assertEqual(self.display("<module>", "<mystring>", 0), "<mystring>(0): <module>")

    def test_of_any_text(self):
        names = ["größe", "函数", "🐍", 'quo"te', "back\\slash", "new\nline", "tab\t", "\x00nul",
                 "\x01\x1f\x7f", "</script>", "a: b", "(5): c", "%s%n", "'", "", " ", "e\u0301",
                 "\u2028", "\U0010ffff"]
        for name in names:
            self.assertEqual(self.display(name), f"<made>(1): {name}", name)
            self.assertEqual(self.display("f", name), f"{name}(1): f", name)

    def test_that_cannot_be_encoded(self):
        for name in ("\ud800", "a\udcffb", "\udc80\ud83d"):
            shown = name.encode("utf-8", "backslashreplace").decode()
            self.assertEqual(self.display(name), f"<made>(1): {shown}")
            self.assertEqual(self.display("f", name + ".py"), f"{shown}.py(1): f")

    def test_long_ones(self):
        """Long names are cut at the end of a character, and their calls stay distinct."""
        for letter in ("x", "ü", "函", "🐍"):
            for size in (3000, 100_000):
                shown = self.display(letter * size)
                self.assertTrue(shown.startswith(f"<made>(1): {letter * 100}"))
                self.assertTrue((f"<made>(1): {letter * size}").startswith(shown), shown[-5:])
                self.assertGreater(len(shown.encode()), 2900)

    def test_of_functions_that_are_gone(self):
        def work():
            for n in range(50):
                define(f"def gone_{n}():\n  (lambda: None)()", f"gone_{n}", f"<gone {n}>")()
            gc.collect()
        names = [c.name for c in self.record(work).calls if "gone_" in c.name]
        self.assertEqual(names, [f"<gone {n}>(1): gone_{n}" for n in range(50)])

    def test_reused_addresses(self):
        """Thousands of functions, one after the other, at the same few addresses."""
        addresses = set()

        def work():
            for n in range(3000):
                function = define(f"def f_{n}(): return {n}", f"f_{n}", f"<file {n}>")
                addresses.add(id(function.__code__))
                assert function() == n and function() == n
                del function
        recording = self.record(work)
        self.assertIsNone(self.error)
        self.assertLess(len(addresses), 3000, "the test has no point otherwise")
        names = [c.name for c in recording.calls if "): f_" in c.name]
        self.assertEqual(names, [f"<file {n}>(1): f_{n}" for n in range(3000) for _ in "12"])

    def test_reused_addresses_of_types(self):
        """C functions are named by the type of self, which may also no longer exist."""
        def work():
            for n in range(300):
                type(f"Type_{n}", (list,), {})().append(5)
                gc.collect(0)
        recording = self.record(work)
        self.assertEqual([c.label for c in recording.calls if "Type_" in c.label],
                         [f"[Type_{n}.append]" for n in range(300)])

    def test_same_name_in_other_places(self):
        work = define("""
def work():
    def f(): pass
    f()
    def f(): pass
    f()
    class A:
        def f(self): pass
    A().f()
""", "work")
        names = [c.name for c in self.record(work).of(work).children if c.label == "f"]
        self.assertEqual(names, ["<made>(3): f", "<made>(5): f", "<made>(8): f"])

    def test_code_that_is_renamed(self):
        def f():
            pass

        def work():
            f()
            f.__code__ = f.__code__.replace(co_name="renamed")
            f()
            f.__name__ = "nothing to do with it"
            f()
        self.assertEqual(self.record(work).of(work).below(), ["f", "[code.replace]", "renamed", "renamed"])


class Parts(HostCase):
    """The separate parts of a name, which the package does not write."""

    def name_of(self, function, work):
        tracer = self.make()
        work()
        tracer.stop()
        delivery = tracer.deliver()
        name, = (n for n in delivery.names.values() if n.function.text == function)
        return name

    def test_a_method(self):
        class Outer:
            class Inner:
                def method(self):
                    pass
        code = Outer.Inner.method.__code__
        name = self.name_of("method", Outer.Inner().method)
        self.assertEqual(name.file.text, __file__)
        self.assertEqual(name.first_line, code.co_firstlineno)
        self.assertEqual(name.qualname.text, getattr(code, "co_qualname", "method"))
        if VERSION >= (3, 11):
            self.assertTrue(name.qualname.text.endswith("Outer.Inner.method"))
        self.assertEqual(name.display.text, f"{__file__}({code.co_firstlineno}): method")

    def test_a_lambda(self):
        name = self.name_of("<lambda>", lambda: None)
        self.assertEqual(name.function.text, "<lambda>")

    def test_c_functions(self):
        name = self.name_of("gethostname", __import__("socket").gethostname)
        self.assertEqual((name.display.text, name.file.text, name.first_line),
                         ("<built-in function gethostname>", "", 0))
        name = self.name_of("bit_length", lambda: (5).bit_length())
        self.assertEqual(name.display.text, "<built-in method bit_length of int object>")
        self.assertEqual(name.qualname.text, "int.bit_length")

    def test_surrogates(self):
        code = define("def f(): pass", "f").__code__
        f = type(define)(code.replace(co_name="a\udc80"), {})
        before = sys.getrefcount(f)
        self.assertEqual(self.name_of("a\\udc80", f).display.text, "<made>(1): a\\udc80")
        self.assertEqual(sys.getrefcount(f), before)


if __name__ == "__main__":
    unittest.main()
