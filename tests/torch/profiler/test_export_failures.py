"""An export that torch completes never raises because of kpytrace: metadata that makes Kineto's file invalid JSON
is repaired, and if calls can't be written the file is torch's, with a warning."""

import contextlib
import gzip
import json
import os
import pathlib
import stat
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support
import torch
from torch.profiler import profile
from traced import CPU

import kpytrace.torch
from kpytrace.torch import _export

COMMAND = 'python -c "1"'


def leaf():
    return torch.ones(3)


def traced(*metadata, **more):
    with profile(activities=CPU, with_stack=True) as prof:
        leaf()
        for key, value in metadata:
            prof.add_metadata(key, value)
        for key, value in more.items():
            prof.add_metadata_json(key, value)
    return prof


def content(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return file.read()


def calls(data):
    trace = json.loads(data)
    events = trace if isinstance(trace, list) else trace["traceEvents"]
    return [event["name"] for event in events if event["name"].endswith("): leaf")]


class Failures(unittest.TestCase):
    def setUp(self):
        kpytrace.torch.install("fast")
        self.addCleanup(kpytrace.torch.uninstall)
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def to(self, name):
        return os.path.join(self.folder, name)

    @contextlib.contextmanager
    def one_warning(self, *texts):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            yield
        ours = [str(w.message) for w in found if "kpytrace" in str(w.message)]
        self.assertEqual(len(ours), 1, found)
        for text in texts:
            self.assertIn(text, ours[0])

    def both(self):
        """Returns the exports of Kineto, and of torch's exporter in Python if there is one."""
        newer = hasattr(torch._C._autograd._ProfilerResult, "trace_activities")
        for name in ("t.json", "t.json.gz"):
            for more in ((), (True,)) if newer else ((),):
                with self.subTest(name=name, more=more):
                    yield self.to(name), more


class Metadata(Failures):
    def test_quotes_in_a_value(self):
        for path, more in self.both():
            traced(("cmd", COMMAND), ("fine", "x")).export_chrome_trace(path, *more)
            trace = json.loads(content(path))
            self.assertEqual((trace["cmd"], trace["fine"]), (COMMAND, "x"))
            self.assertEqual(len(calls(content(path))), 1)

    def test_without_stacks(self):
        path = self.to("t.json.gz")
        with profile(activities=CPU) as prof:
            prof.add_metadata("cmd", COMMAND)
        prof.export_chrome_trace(path)
        self.assertIn(b'"traceEvents"', content(path))

    def test_other_values(self):
        values = {"open": "{nope", "nan": "nan", "list": '["a", "b]',
                  "object": json.dumps({"a": 'b"c', "d": [1]}), "half": '{"a": 1'}
        prof = traced(("tab", "a\tb\x01"), ("slash", 'a/b"/"'), ("split", 'a", "b": "c'),
                      ('key"d', "x"), ("unicode", '"ü"'), **values)
        prof.export_chrome_trace(self.to("t.json"))
        data = content(self.to("t.json"))
        trace = json.loads(data)
        self.assertEqual(len(calls(data)), 1)
        found = {key: trace[key] for key in (*values, "tab", "slash", "split", 'key"d', "unicode")}
        self.assertEqual(found, {**values, "object": {"a": 'b"c', "d": [1]}, "tab": "a\tb\x01",
                                 "slash": 'a/b"/"', "split": 'a", "b": "c', 'key"d': "x",
                                 "unicode": '"ü"'})

    def test_what_cannot_be_mended_is_as_torch_wrote_it(self):
        for path in (self.to("t.json"), self.to("t.json.gz")):
            with self.one_warning(path, "no Python calls"):
                traced(**{'a\n{': "{"}).export_chrome_trace(path)
            self.assertIn(b"Record Window End", content(path))
            self.assertNotIn(b"leaf", content(path))


class Files(Failures):
    def test_names_with_quotes(self):
        for name in ('a"b\\c.json', 'a"b\\c.json.gz'):
            traced().export_chrome_trace(self.to(name))
            self.assertEqual(len(calls(content(self.to(name)))), 1)

    def test_names_that_are_too_long_with_more_behind_them(self):
        for suffix, longest in ((".json", 250), (".json.gz", 255)):
            path = self.to("a" * (longest - len(suffix)) + suffix)
            traced().export_chrome_trace(path)
            self.assertEqual(len(calls(content(path))), 1)

    @unittest.skipIf(os.geteuid() == 0, "root may write to every folder")
    def test_a_folder_that_is_read_only(self):
        with open(self.to("t.json.gz"), "w") as file:
            file.write("old" * 10000)
        os.chmod(self.folder, 0o555)
        self.addCleanup(os.chmod, self.folder, 0o755)
        traced().export_chrome_trace(self.to("t.json.gz"))
        self.assertEqual(len(calls(content(self.to("t.json.gz")))), 1)

    def test_a_folder_that_is_not_there(self):
        traced().export_chrome_trace(self.to("none/t.json"))  # Kineto logs it
        with self.assertRaises(FileNotFoundError):
            traced().export_chrome_trace(self.to("none/t.json.gz"))

    def test_an_older_file_that_kineto_does_not_replace(self):
        path = self.to("t.json")
        traced().export_chrome_trace(path)
        before = content(path)
        os.mkdir(path + ".tmp")  # where Kineto writes first
        traced().export_chrome_trace(path)
        self.assertEqual(content(path), before)

    def test_bytes_and_urls(self):
        for path in (self.to("t.json").encode(), "file://" + self.to("t.json")):
            traced().profiler.kineto_results.save(path)
            self.assertEqual(len(calls(content(self.to("t.json")))), 1)
            os.unlink(self.to("t.json"))

    def piped(self, name, export):
        """Returns the bytes that a reader of a pipe receives."""
        path, found = self.to(name), []
        os.mkfifo(path)

        def read():
            with open(path, "rb") as file:
                found.append(file.read())
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        export(path)
        reader.join(60)
        self.assertTrue(stat.S_ISFIFO(os.stat(path).st_mode))
        return found[0]

    def test_pipes(self):
        packed = self.piped("t.json.gz", lambda path: traced().export_chrome_trace(path))
        self.assertEqual(len(calls(gzip.decompress(packed))), 1)
        prof = traced()
        listed = self.piped("list.json", lambda path: prof.events().export_chrome_trace(path))
        self.assertEqual(len(calls(listed)), 1)
        if hasattr(torch._C._autograd._ProfilerResult, "trace_activities"):
            plain = self.piped("t.json", lambda path: traced().export_chrome_trace(path, True))
            self.assertEqual(len(calls(plain)), 1)

    def test_no_space_for_the_calls(self):
        reply = support.program("""
            import gzip, json, os, resource, signal, tempfile, warnings
            from torch.profiler import profile
            from traced import CPU
            def leaf(): pass
            def traced():
                with profile(activities=CPU, with_stack=True) as prof:
                    for _ in range(100_000):
                        leaf()
                return prof
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
            found = {}
            warnings.simplefilter("always")
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as warned:
                for name in ("t.json", "t.json.gz"):
                    path = os.path.join(folder, name)
                    traced().export_chrome_trace(path)
                    with (gzip.open if name.endswith("gz") else open)(path) as file:
                        found[name] = [e["name"] for e in json.load(file)["traceEvents"]]
                files = sorted(os.listdir(folder))
            print(json.dumps([found, files, [str(w.message) for w in warned]]))
            """, "fast")
        found, files, warned = reply.value
        self.assertEqual(files, ["t.json", "t.json.gz"])
        for names in found.values():
            self.assertIn("Record Window End", names)
            self.assertFalse([name for name in names if "leaf" in name])
        warned = [text for text in warned if "Profiler clears events" not in text]  # torch's own, before 2.13
        self.assertEqual([("File too large" in text, "kpytrace" in text) for text in warned],
                         [(True, True)] * 2)


class Exceptions(Failures):
    """torch's part is written for any exception of our part."""

    def failing(self, name, error):
        return unittest.mock.patch(name, side_effect=error)

    def test_files(self):
        for error in (MemoryError(), OSError(28, "No space left on device"), RuntimeError("odd"),
                      TypeError("another version")):
            for path, more in self.both():
                with self.one_warning(path, "no Python calls", str(error) or "MemoryError"), \
                        self.failing("kpytrace.torch._exporter.write_trace", error):
                    traced().export_chrome_trace(path, *more)
                self.assertEqual(calls(content(path)), [])

    def test_lists(self):
        prof = traced()
        events = prof.events()
        with self.one_warning("that torch received"), \
                self.failing("kpytrace.torch._exporter.write_list", MemoryError()):
            events.export_chrome_trace(self.to("t.json"))
        self.assertEqual(calls(content(self.to("t.json"))), [])
        with self.one_warning("that torch received"), self.failing("os.replace", OSError(28, "full")):
            events.export_chrome_trace(self.to("t.json"))
        self.assertEqual(os.listdir(self.folder), ["t.json"])
        self.assertEqual(calls(content(self.to("t.json"))), [])

    def test_objects(self):
        result = traced().profiler.kineto_results
        with self.one_warning("no Python calls"), \
                unittest.mock.patch.object(_export, "hand_over", side_effect=MemoryError()):
            self.assertTrue(result.events())
        if hasattr(result, "trace_activities"):
            with self.one_warning("that torch received"), \
                    unittest.mock.patch("tempfile.tempdir", self.to("none")):
                self.assertTrue(result.trace_activities())


del Failures  # has no tests

if __name__ == "__main__":
    unittest.main()
