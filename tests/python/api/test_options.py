"""Options: names, values, environment variables, patterns, and error messages."""

import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import Case, SAMPLE

import kpytrace
from kpytrace import _standalone
from kpytrace._api import options as _options

ROOT = pathlib.Path(__file__).resolve().parents[3]


class OptionsCase(Case):
    def setUp(self):
        super().setUp()
        os.environ.pop("KPYTRACE_GPU", None)


class Values(OptionsCase):
    def resolve(self, **given):
        values = _options.resolve(given)
        filters = values.pop("filters")
        return values if not filters else {**values, "filters": filters}

    def test_nothing_given_is_nothing_set(self):
        self.assertEqual(self.resolve(), {})
        self.assertEqual(self.resolve(max_depth=None, include=None), {})

    def test_switches(self):
        for value, meant in ((True, True), (False, False), ("1", True), ("off", False),
                             ("Yes", True)):
            self.assertEqual(self.resolve(c_calls=value), {"c_calls": meant})
        for value in (1, 0, "maybe", []):
            with self.assertRaisesRegex(ValueError, "c_calls must be True or False"):
                self.resolve(c_calls=value)

    def test_numbers(self):
        self.assertEqual(self.resolve(max_depth=20, max_events="1_000"),
                         {"max_depth": 20, "max_events": 1000})
        self.assertEqual(self.resolve(max_events=2**64 - 1), {"max_events": 2**64 - 1})
        for name, value in (("max_depth", -1), ("max_depth", 2**32), ("max_events", 2**64),
                            ("tool_id", 6), ("overhead_permille", 1001)):
            with self.assertRaisesRegex(ValueError, f"{name} must be between 0 and .*{value}"):
                self.resolve(**{name: value})
        for value in (True, 1.5, "a lot", "", b"1"):
            with self.assertRaisesRegex(TypeError, "max_depth must be a whole number"):
                self.resolve(max_depth=value)

    def test_quantities(self):
        rows = [("ring_ns", "10s", 10 * 10**9), ("ring_ns", "1.5 ms", 1500000),
                ("ring_ns", "7", 7), ("ring_ns", 7, 7), ("ring_ns", "2min", 120 * 10**9),
                ("min_duration_ns", "10us", 10000), ("min_duration_ns", "10µs", 10000),
                ("max_bytes", "64MB", 64 * 10**6), ("max_bytes", "64mib", 64 * 2**20),
                ("ring_bytes", "1GiB", 2**30), ("ring_bytes", "512 kB", 512000),
                ("max_bytes", "18446744073709551615", 2**64 - 1)]
        for name, value, meant in rows:
            self.assertEqual(self.resolve(**{name: value}), {name: meant}, value)
        for value in ("soon", "10 parsecs", "s", "-1s", "1e400s", "nan"):
            with self.assertRaisesRegex(ValueError, "ring_ns must"):
                self.resolve(ring_ns=value)

    def test_rings(self):
        self.assertEqual(self.resolve(ring="10s"), {"ring_ns": 10**10})
        self.assertEqual(self.resolve(ring="64MB"), {"ring_bytes": 64 * 10**6})
        for value in (10, "10", "", "ten", "10 parsecs"):
            with self.assertRaisesRegex(ValueError, "ring must"):
                self.resolve(ring=value)

    def test_words(self):
        self.assertEqual(self.resolve(on_full="RING"), {"on_full": "ring"})
        with self.assertRaisesRegex(ValueError, "on_full must be 'stop' or 'ring', not 'drop'"):
            self.resolve(on_full="drop")

    def test_patterns(self):
        here = os.getcwd()
        rows = [("json", ("module", "json")), ("json.decoder", ("module", "json.decoder")),
                ("src/", ("file", f"{here}/src/")), ("./a.py", ("file", f"{here}/a.py")),
                ("a.py", ("file", f"{here}/a.py")), ("/usr/lib", ("file", "/usr/lib")),
                ("~/x", ("file", os.path.expanduser("~/x"))), ("<frozen", ("file", "<frozen")),
                ("*/site-packages/*", ("glob", "*/site-packages/*")),
                ("test_*.py", ("glob", "*/test_*.py")), ("src/*.py", ("glob", f"{here}/src/*.py")),
                ("module:a/b", ("module", "a/b")), ("file:plain", ("file", f"{here}/plain")),
                ("größe", ("module", "größe"))]
        for text, (kind, pattern) in rows:
            self.assertEqual(self.resolve(include=text)["filters"],
                             (("include", kind, pattern.encode()),), text)
        for value in ("module:", ["a", ""], ["a\0b"]):
            with self.assertRaisesRegex(ValueError, "exclude has an empty pattern"):
                self.resolve(exclude=value)
        for value in (5, [5], b"json"):
            with self.assertRaisesRegex(TypeError, "exclude must be a string"):
                self.resolve(exclude=value)

    def test_an_exclude_comes_last_and_wins(self):
        filters = self.resolve(exclude=["json", "re"], include="app, lib")["filters"]
        self.assertEqual([(action, pattern) for action, _, pattern in filters],
                         [("include", b"app"), ("include", b"lib"),
                          ("exclude", b"json"), ("exclude", b"re")])

    def test_an_unknown_name_gets_a_hint(self):
        with self.assertRaisesRegex(TypeError, "unknown option 'max_dept'; did you mean "
                                               "'max_depth'?"):
            kpytrace.trace(max_dept=3)
        with self.assertRaisesRegex(TypeError, "unknown option 'zzz'; the options are c_calls, "):
            kpytrace.start(zzz=3)


class Environment(OptionsCase):
    def test_variables_are_defaults(self):
        os.environ.update(KPYTRACE_MAX_DEPTH="20", KPYTRACE_EXCLUDE="json, */lib/*",
                          KPYTRACE_C_CALLS="0", KPYTRACE_RING_NS="10s", KPYTRACE_GC="")
        self.assertEqual(_options.resolve({"max_depth": 5}), {
            "max_depth": 5, "c_calls": False, "ring_ns": 10**10,
            "filters": (("exclude", "module", b"json"), ("exclude", "glob", b"*/lib/*"))})

    def test_a_bad_variable_is_named(self):
        os.environ["KPYTRACE_MAX_DEPTH"] = "deep"
        with self.assertRaisesRegex(TypeError, "KPYTRACE_MAX_DEPTH must be .*, not 'deep'"):
            kpytrace.trace()

    def test_the_output_too(self):
        self.use_plugin(SAMPLE)
        os.environ["KPYTRACE_OUTPUT"] = str(self.path)
        with kpytrace.trace(gpu=False):
            pass
        self.assertEqual(len(self.calls()), 13)


class TheCSide(Case):
    def test_it_knows_every_option(self):
        values = {name: True if option.read is _options._switch else 1
                  for name, option in _options.OPTIONS.items()
                  if name not in ("include", "exclude", "on_full", "stream", "torch", "memory", "dump_on")}
        values.update(on_full="ring", filters=(("exclude", "module", b"x"),), info=b"a=b\n",
                      dump=os.fsencode(self.path), dump_signal=0, **_options._dump_on("step>3x,hang=60s"))
        handle, noop, no_gpu, recorded_gpu = _standalone.start(SAMPLE, values)
        self.assertIsNone(noop)
        self.assertIsNone(no_gpu)
        self.assertEqual(recorded_gpu, 1)
        _standalone.close(handle)

    def test_it_refuses_what_it_does_not_know(self):
        rows = [({"zzz": 1}, TypeError, "unknown option 'zzz'"), ({1: 1}, TypeError, "unknown"),
                ({"max_depth": 2**32}, OverflowError, "max_depth is too large"),
                ({"max_events": -1}, OverflowError, ""), ({"max_events": "1"}, TypeError, ""),
                ({"on_full": "x"}, ValueError, "on_full can't be 'x'"),
                ({"filters": []}, TypeError, "filters must be a tuple"),
                ({"filters": (1,)}, TypeError, "a filter must be a tuple"),
                ({"filters": (("in", "file", b"x"),)}, ValueError, "action can't be 'in'"),
                ({"filters": (("include", "dir", b"x"),)}, ValueError, "kind can't be 'dir'"),
                ({"filters": (("include", "file", "x"),)}, TypeError, ""),
                ({"filters": (("include", "file"),)}, TypeError, ""),
                ({"stream": "x"}, TypeError, ""), ({"dump": b"a\0b"}, ValueError, "null byte"),
                ({"flush_ns": -1}, OverflowError, ""),
                ({"tool_id": 6}, ValueError, "")]
        for options, error, text in rows:
            with self.assertRaisesRegex(error, text, msg=options):
                _standalone.start(SAMPLE, options)
        with self.assertRaises(TypeError):
            _standalone.start(SAMPLE, [])
        for function in (_standalone.stop, _standalone.stats, _standalone.close):
            with self.assertRaisesRegex(TypeError, "this is not a trace"):
                function(object())

    def test_the_plugins_refusal_keeps_its_words(self):
        with self.assertRaisesRegex(ValueError, "tool_id 6 is not between 0 and 5"):
            _standalone.start(kpytrace.plugin_path(), {"tool_id": 6})
        with self.assertRaisesRegex(ValueError, "can't be loaded"):
            _standalone.start(self.folder / "none.so", {})


class Documentation(unittest.TestCase):
    def test_every_option_is_in_the_docs_and_in_the_help(self):
        table = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| `(\w+)` \| `(KPYTRACE_\w+)` \|", table, re.M)
        self.assertEqual(rows, [("output", "KPYTRACE_OUTPUT"),
                                *((o.name, o.variable) for o in _options.OPTIONS.values())])
        for name in _options.OPTIONS:
            self.assertRegex(kpytrace.start.__doc__, rf"\b{name}=")


if __name__ == "__main__":
    unittest.main()
