"""The ways to export a native profile, and what can go wrong."""

import glob
import gzip
import json
import os
import pathlib
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support
import torch
from torch.profiler import profile, record_function, tensorboard_trace_handler
from traced import CPU

import kpytrace.torch

data = torch.ones(2, 3)


def work():
    with record_function("span"):
        for _ in range(50):
            data.add(1).sum()


def traced(**options):
    with profile(activities=CPU, with_stack=True, **options) as prof:
        work()
    return prof


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    trace.pop("traceName")
    return trace


class Exports(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        kpytrace.torch.install("native")
        cls.prof = traced(record_shapes=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.prof.export_chrome_trace(self.path("first.json"))
        self.first = read(self.path("first.json"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_again_and_in_all_forms(self):
        self.assertGreater(len(self.first["traceEvents"]), 200)
        for name, options in (("first.json", {}), ("other.json", {}), ("packed.json.gz", {}),
                              ("python.json", {"use_python_export": True}),
                              ("python.json.gz", {"use_python_export": True})):
            self.prof.export_chrome_trace(self.path(name), **options)
            self.assertEqual(read(self.path(name)), self.first, name)
        for path in (self.path("saved.json"), "file://" + self.path("url.json"), self.path("saved.json.gz")):
            self.prof.profiler.kineto_results.save(path)
            self.assertEqual(read(path.removeprefix("file://")), self.first)
        self.prof.profiler.export_chrome_trace(self.path("autograd.json"))
        self.assertEqual(read(self.path("autograd.json")), self.first)
        self.assertFalse([name for name in os.listdir(self.folder) if "tmp" in name])

    def test_our_own_encoder(self):
        """Not by way of a file that is compressed afterwards, as torch does."""
        self.prof.export_chrome_trace(self.path("a.json.gz"))
        with open(self.path("a.json.gz"), "rb") as file:
            head = file.read(10)
        self.assertEqual((head[3], head[8:]), (0, b"\0\3"), "no name in the head; the flags and the system of our encoder")

    def test_handler(self):
        for is_packed in (False, True):
            folder = self.path(f"handler_{is_packed}")
            traced(on_trace_ready=tensorboard_trace_handler(folder, "w", use_gzip=is_packed))
            [path] = glob.glob(folder + "/*")
            self.assertEqual(path.endswith(".pt.trace.json.gz"), is_packed)
            self.assertGreater(len(read(path)["traceEvents"]), 200)

    def test_activities(self):
        found = self.prof.profiler.kineto_results.trace_activities()
        events = [e for e in self.first["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"]
        self.assertEqual([(a.name(), a.type()) for a in found], [(e["name"], e["cat"]) for e in events])
        base_ns = self.first["baseTimeNanoseconds"]
        for activity, event in zip(found, events):
            self.assertEqual(activity.timestamp(), base_ns + round(event["ts"] * 1000))
            self.assertEqual(activity.duration(), round(event["dur"] * 1000))
            self.assertEqual(activity.correlation_id(), event["args"].get("External id", 0))
            own = json.loads("{" + activity.metadata_json() + "}")
            self.assertEqual(own, {key: value for key, value in event["args"].items() if key != "External id"})

    def test_pipe(self):
        path = self.path("pipe")
        os.mkfifo(path)
        found = []

        def reading():
            with open(path, encoding="utf-8") as file:
                found.append(json.load(file))
        reader = threading.Thread(target=reading)
        reader.start()
        self.prof.export_chrome_trace(path)
        reader.join()
        self.assertEqual(found[0]["traceEvents"], self.first["traceEvents"])

    def test_standard_output(self):
        reply = support.python("-c", """
import torch, kpytrace.torch
kpytrace.torch.install("native")
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
    torch.ones(2).add(1)
prof.export_chrome_trace("/dev/stdout")
""")
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertIn("aten::add", [event["name"] for event in json.loads(reply.stdout)["traceEvents"]])

    def test_no_space(self):
        """A clear error, and the recording is still there."""
        with self.assertRaises(OSError) as caught:
            self.prof.export_chrome_trace("/dev/full")
        self.assertIn("No space left on device", str(caught.exception))
        self.assertIn("/dev/full", str(caught.exception))
        self.prof.export_chrome_trace(self.path("after.json"))
        self.assertEqual(read(self.path("after.json")), self.first)

    def test_no_folder(self):
        for name in ("none/trace.json", "none/trace.json.gz"):
            with self.assertRaises(OSError):
                self.prof.export_chrome_trace(self.path(name))
        self.assertFalse(os.path.exists(self.path("none")))

    def test_a_failure_leaves_the_previous_file(self):
        with self.assertRaises(TypeError):
            from kpytrace.torch import _exporter

            _exporter.write_native(None, None, self.path("first.json"), b"", 0, 0, False, False)
        self.assertEqual(read(self.path("first.json")), self.first)

    def test_many_exports_at_once(self):
        errors = []

        def export(i):
            try:
                self.prof.export_chrome_trace(self.path(f"{i}.json"))
            except Exception as error:
                errors.append(error)
        threads = [threading.Thread(target=export, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        for i in range(4):
            self.assertEqual(read(self.path(f"{i}.json")), self.first)

    def test_torch_as_before(self):
        """After uninstall() a native result still has its file, and torch's own results go to torch."""
        prof = traced()
        kpytrace.torch.uninstall()
        try:
            prof.export_chrome_trace(self.path("later.json.gz"))
            self.assertGreater(len(read(self.path("later.json.gz"))["traceEvents"]), 200)
        finally:
            kpytrace.torch.install("native")


if __name__ == "__main__":
    unittest.main()
