"""GPU events in merged traces: each process has its own devices, arrows and stacks."""

import collections
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from gpu_case import KERNEL, GpuCase
from rank_files import check_memory_of_merging, make_rank
from support import READERS, Case, read_perfetto, run_python

from kpytrace._files import merge as _merge
from kpytrace._files.kpt_header import File

CUPTI, CUDA = os.environ.get("KPT_STAND_IN_CUPTI", ""), os.environ.get("KPT_STAND_IN_CUDA", "")
# On the stand-ins: of each kernel there is a call, in a function whose name says the process.
PLAYED = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parents[2] / "fixtures" / "cupti")!r})
import kpytrace, played
path, name, count = sys.argv[1:]
launch = played.launcher({CUPTI!r}, {CUDA!r}, "kernel_of_" + name)
exec(f"def launch_in_{{name}}(): launch()")
trace = kpytrace.start(path, gpu="calls")
for _ in range(int(count)):
    eval(f"launch_in_{{name}}()")
assert trace.stop().kernels == int(count)
"""


class Merged(GpuCase):
    def parts(self, count=2):
        paths = [self.folder / f"{number}.kpt" for number in range(count)]
        for path in paths:
            self.record(path)
        return paths

    def merge(self, name, *words):
        said = self.command("merge", *words, "-o", self.folder / name)
        self.assertIn(", 6 GPU kernels in", said)
        return self.folder / name

    def test_each_process_has_devices_of_its_own(self):
        events = self.events(self.merge("all.json", *self.parts()))
        devices = {event["pid"] for event in events["kernel"]}
        self.assertEqual(len(devices), 2)
        labels = {event["pid"]: event["args"]["labels"] for event in events[None]
                  if event["name"] == "process_labels" and event["pid"] in devices}
        self.assertEqual(set(labels.values()), {f"GPU 0 of process {os.getpid()}",
                                                f"GPU 0 of process {os.getpid() + 10_000_000}"})
        for pid in devices:
            streams = {event["tid"]: event["args"]["name"].strip() for event in events[None]
                       if event["pid"] == pid and event["name"] == "thread_name"}
            self.assertEqual(streams, {7: "stream 7", 13: "stream 13 side"})
            self.assertEqual(sorted(event["tid"] for event in events["kernel"] if event["pid"] == pid), [7, 7, 13])

    def test_arrows_stay_in_their_process(self):
        path = self.merge("all.json", *self.parts())
        events = self.events(path)
        calls = {event["args"]["correlation"]: event for event in events["cuda_runtime"] + events["cuda_driver"]}
        self.assertEqual(len(calls), 8, "all have numbers of their own")
        owner = {}
        for event in events["kernel"]:
            call = calls[event["args"]["correlation"]]
            self.assertEqual(owner.setdefault(event["pid"], call["pid"]), call["pid"])
        self.assertEqual(len(set(owner.values())), 2)
        arrows = collections.defaultdict(list)
        for event in events["ac2g"]:
            arrows[event["id"]].append(event)
        self.assertEqual(sorted(arrows), sorted(calls))
        for number, (one, other) in arrows.items():
            self.assertEqual({one["ph"], other["ph"]}, {"s", "f"})
            start = one if one["ph"] == "s" else other
            self.assertEqual(start["pid"], calls[number]["pid"])

    def test_stacks_devices_and_counts(self):
        trace = self.read_trace(self.merge("all.json", *self.parts()))
        self.assertEqual(trace["gpu"], {"events": 26, "events dropped": 6, "kernels lost": 4})
        self.assertEqual([(d["id"], d["process"], d["name"]) for d in trace["deviceProperties"]],
                         [(0, os.getpid(), "Sample GPU"), (0, os.getpid() + 10_000_000, "Sample GPU")])
        names = [frame["name"] for frame in trace["stackFrames"].values()]
        self.assertEqual(len(names), len(set(names)), "frames that are the same are there once")
        for kernel in self.events(self.folder / "all.json")["kernel"]:
            self.assertEqual(trace["stackFrames"][str(kernel["sf"])]["name"], "<string>(2): inner")

    def test_one_alone_is_as_it_was(self):
        """Except for the numbers of its devices."""
        (path,) = self.parts(1)
        self.command("convert", path, self.path)
        self.command("merge", path, "-o", self.folder / "all.json")
        alone, merged = self.events(), self.events(self.folder / "all.json")
        self.assertEqual(alone.keys(), merged.keys())
        for category in alone.keys() - {None}:
            for one, other in zip(alone[category], merged[category]):
                self.assertEqual({**one, "pid": 0}, {**other, "pid": 0})

    def test_clocks(self):
        """GPU times are shifted like those of calls."""
        first, second = self.parts()
        clocks = {str(second): _merge.Clock(offset=1_000_000_000)}
        _merge.merge([File(str(first)), File(str(second))], str(self.folder / "all.json"), clocks)
        _merge.merge([File(str(first)), File(str(second))], str(self.path))
        shifted, plain = self.events(self.folder / "all.json"), self.events()
        for category in ("kernel", "cuda_runtime", "ac2g", "nvtx"):
            by = [round(one["ts"] - other["ts"]) for one, other in zip(shifted[category], plain[category])]
            half = len(by) // 2
            self.assertEqual(by, [0] * half + [1_000_000] * half, category)

    @unittest.skipUnless(os.path.exists(READERS), "there are no readers")
    def test_perfetto(self):
        read = read_perfetto(self.merge("all.pftrace", *self.parts()))
        kernels = [(name, notes["correlation"]) for _, name, _, _, _, notes in read["calls"] if name == KERNEL]
        self.assertEqual(len(kernels), 4)
        self.assertEqual(len({number for _, number in kernels}), 4)
        numbers = {notes["correlation"] for _, name, _, _, _, notes in read["calls"] if name == "cudaLaunchKernel"}
        self.assertLessEqual({number for _, number in kernels}, numbers)


@unittest.skipUnless(CUPTI, "GPU activities were not built")
class Played(Case):
    """Real processes with the stand-ins of CUPTI and of the driver."""

    def play(self, name, count=3):
        path = self.folder / f"{name}.kpt"
        reply = run_python("-c", PLAYED, str(path), name, str(count), cwd=self.folder)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return path

    def test_two_processes(self):
        reply = run_python("-m", "kpytrace", "merge", str(self.play("a")), str(self.play("b")), "-o", str(self.path),
                           cwd=self.folder)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertIn("of 2 processes, 6 GPU kernels", reply.stderr)
        events = self.read_trace()["traceEvents"]
        python = [(e["pid"], e["ts"], e["ts"] + e["dur"], e["name"].rpartition("_")[2]) for e in events
                  if "launch_in_" in e["name"]]
        calls = {e["args"]["correlation"]: e for e in events if e.get("cat") == "cuda_driver"}
        kernels = [e for e in events if e.get("cat") == "kernel"]
        self.assertEqual((len(python), len(calls), len(kernels)), (6, 6, 6))
        for kernel in kernels:
            call = calls[kernel["args"]["correlation"]]
            around = [name for pid, start, end, name in python
                      if pid == call["pid"] and start <= call["ts"] and call["ts"] + call["dur"] <= end]
            self.assertEqual(around, [kernel["name"].rpartition("_")[2]])

    def test_memory_is_that_of_one(self):
        source = self.play("many", 3000)
        paths = [self.folder / f"r{rank}.kpt" for rank in range(64)]
        for rank, path in enumerate(paths):
            make_rank(source, path, rank, len(paths))
        check_memory_of_merging(self, paths, 8)


if __name__ == "__main__":
    unittest.main()
