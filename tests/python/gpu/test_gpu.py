"""GPU events in each output. The sample plugin has a simulated GPU, with a few kernels at known
times. test_gpu_real.py uses a real GPU."""

import base64
import collections
import contextlib
import gzip
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from gpu_case import KERNEL, GpuCase
from support import READERS, SAMPLE, read_perfetto

import kpytrace
from kpytrace import _standalone

HTA = os.environ.get("KPT_HTA", "")
ROW = collections.namedtuple("ROW", "name count total_ns max_ns")

ANALYSIS = """
import json, sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
kernels = analysis.get_gpu_kernel_breakdown(visualize=False)[1]
idle = analysis.get_idle_time_breakdown(visualize=False, ranks=[0])[0]
launches = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
bandwidth = analysis.get_memory_bw_summary()
print("hta: " + json.dumps({
    "kernels": sorted(kernels["name"]), "streams": sorted({int(s) for s in idle["stream"]}),
    "launches": sorted(int(c) for c in launches["correlation"]),
    "copies": sorted(name for _, name in bandwidth.index)}))
"""


class Page(GpuCase):
    def sections(self):
        """Returns the section of the calls and that of the device."""
        page = self.folder / "report.html"
        self.record(page)
        found = re.findall(rb'data-kind="tracks" data-pack="gzip">([^<]*)</script>', page.read_bytes())
        return [json.loads(gzip.decompress(base64.b64decode(data))) for data in found]

    def test_streams_are_tracks_of_the_report(self):
        _, section = self.sections()
        # The copy and the other kernel overlap from 31 to 34 µs: 27 µs of 42 are busy.
        self.assertEqual(section["process"], "GPU 0 Sample GPU: idle 35.7% of 0.042 ms")
        tracks = {track["name"]: track["spans"] for track in section["tracks"]}
        self.assertEqual(set(tracks), {"stream 7", "stream 13 side"})
        name, start, end, args, flow = tracks["stream 7"][0]
        self.assertEqual((name, start, end, flow), (KERNEL, 0, 10000, 1))
        self.assertEqual((args["grid"], args["block"], args["correlation"]), ([4, 1, 1], [128, 1, 1], 1))
        self.assertEqual(args["launched at"], "<string>(2): inner")  # the sample's stacks are made up
        self.assertEqual([span[1:3] for span in tracks["stream 13 side"]], [[27000, 37000]])

    def test_calls_of_cuda_are_tracks_of_their_threads(self):
        section, device = self.sections()
        (track,) = section["tracks"]
        self.assertNotIn("process", section)
        self.assertEqual((track["group"], track["tid"]), ("CUDA calls", os.getpid()))
        self.assertEqual([(name, *rest) for name, *rest, _, _ in track["spans"]],
                         [("cudaLaunchKernel", 0, 2000), ("cudaLaunchKernel", 4000, 6000),
                          ("cudaMemcpyAsync", 19000, 21000), ("cuLaunchKernel", 23000, 25000)])
        started = [span[4] for track in device["tracks"] for span in track["spans"] if len(span) > 4]
        self.assertEqual(sorted(started), [span[4] for span in track["spans"]])

    def test_none_without_a_gpu(self):
        page = self.folder / "report.html"
        self.record(page, gpu=False)
        self.assertNotIn(b'data-kind="tracks" data-pack', page.read_bytes())


class Asking(GpuCase):
    def test_it_is_there(self):
        summary = self.record()
        self.assertEqual((summary.kernels, summary.gpu_dropped, summary.no_gpu), (3, 5, None))

    def test_gpus_that_were_not_requested(self):
        for options in ({"gpu": False}, {"gpu": False} if os.path.exists("/dev/nvidiactl") else {}):
            summary = kpytrace.start(self.path, **options).stop()
            self.assertEqual((summary.kernels, summary.no_gpu), (0, None))
            self.assertNotIn("kernel", self.events())
            trace = self.read_trace()
            self.assertEqual(trace["deviceProperties"], [])
            self.assertNotIn("stackFrames", trace)

    def test_where_cupti_is_named_there_is_a_gpu(self):
        with unittest.mock.patch.dict(os.environ, {"KPYTRACE_CUPTI": "/somewhere/libcupti.so"}):
            os.environ.pop("KPYTRACE_GPU", None)
            self.assertEqual(kpytrace.start(None).stop().kernels, 3)

    def test_the_environment(self):
        with unittest.mock.patch.dict(os.environ, {"KPYTRACE_GPU": "1"}):
            self.assertEqual(kpytrace.start(None).stop().kernels, 3)

    def test_another_tool_has_it(self):
        """One line on stderr gives the reason, and the trace continues."""
        self.sample_gpu("busy")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            summary = self.record(self.path)
        self.assertEqual(summary.no_gpu, "another tool, the sample's, has CUPTI")
        self.assertEqual(said.getvalue(),
                         "kpytrace: GPUs are not recorded: another tool, the sample's, has CUPTI\n")
        self.assertEqual(summary.calls, 13)
        self.assertEqual(len(self.calls()), 13)

    def test_the_file_names_the_other_tool(self):
        self.sample_gpu("busy")
        for options in ({}, {"ring": "10s"}):  # a stream, and a recording in memory
            with self.subTest(options), contextlib.redirect_stderr(io.StringIO()):
                self.record(self.kpt, **options)
                self.assertIn("gpu:          not recorded: another tool, the sample's, has CUPTI\n",
                              self.command("info", self.kpt))

    def test_another_tool_has_it_and_stderr_is_closed(self):
        self.sample_gpu("busy")
        broken = io.StringIO()
        broken.close()
        with contextlib.redirect_stderr(broken):
            self.assertEqual(self.record(self.path).calls, 13)

    def test_no_trace_has_no_gpu(self):
        for function in (_standalone.gpu, _standalone.gpu_report):
            with self.assertRaisesRegex(TypeError, "this is not a trace"):
                function(object())


class ChromeJson(GpuCase):
    def test_kernels_have_kinetos_fields(self):
        self.record(self.path)
        trace, events = self.read_trace(), self.events()
        self.assertEqual([k["name"] for k in events["kernel"]], [KERNEL, KERNEL, "other_kernel"])
        self.assertEqual([(k["pid"], k["tid"], k["dur"]) for k in events["kernel"]],
                         [(0, 7, 10), (0, 7, 5), (0, 13, 10)])
        self.assertEqual(events["kernel"][0]["args"], {
            "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 1,
            "registers per thread": 32, "shared memory": 1024, "blocks per SM": 2, "warps per SM": 8,
            "grid": [4, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 13,
            "launched at": "<string>(2): inner"})
        [copy], [setting] = events["gpu_memcpy"], events["gpu_memset"]
        self.assertEqual(copy["name"], "Memcpy HtoD (Pageable -> Device)")
        self.assertEqual((copy["args"]["bytes"], copy["args"]["memory bandwidth (GB/s)"]), (4096, 1.024))
        self.assertEqual((setting["name"], setting["args"]["bytes"]), ("Memset (Device)", 256))
        [wait] = events["cuda_sync"]
        self.assertEqual((wait["name"], wait["args"]["cuda_sync_kind"]), ("Stream Sync", "Stream Sync"))
        [device] = trace["deviceProperties"]
        self.assertEqual((device["id"], device["name"], device["numSms"], device["warpSize"],
                          device["computeMajor"], device["totalGlobalMem"]),
                         (0, "Sample GPU", 2, 32, 9, 2**30))
        self.assertEqual(trace["gpu"], {"events": 13, "events dropped": 3, "kernels lost": 2})

    def test_tracks(self):
        self.record(self.path)
        named = {(e["pid"], e["tid"], e["name"]): e["args"] for e in self.events()[None]}
        self.assertEqual(named[0, 0, "process_labels"], {"labels": "GPU 0"})
        self.assertEqual(named[0, 0, "process_sort_index"], {"sort_index": 5000000})
        self.assertEqual(named[0, 7, "thread_name"], {"name": "stream 7 "})
        self.assertEqual(named[0, 13, "thread_name"], {"name": "stream 13 side"})

    def test_calls_and_ranges_are_on_their_thread(self):
        self.record(self.path)
        events = self.events()
        calls = events["cuda_runtime"] + events["cuda_driver"]
        self.assertEqual([c["name"] for c in calls], ["cudaLaunchKernel", "cudaLaunchKernel",
                                                      "cudaMemcpyAsync", "cuLaunchKernel"])
        for event in calls + events["nvtx"] + events["overhead"]:
            self.assertEqual((event["pid"], event["tid"]), (os.getpid(), os.getpid()))
        self.assertEqual([(e["ph"], e["name"]) for e in events["nvtx"]], [("X", "step"), ("i", "here")])

    def test_arrows_from_the_call_to_the_kernel(self):
        self.record(self.path)
        arrows = {(e["ph"], e["id"]): e for e in self.events()["ac2g"]}
        self.assertEqual(sorted(arrows), [(ph, n) for ph in "fs" for n in (1, 2, 3, 4)])
        for kernel in self.events()["kernel"]:
            to = arrows["f", kernel["args"]["correlation"]]
            self.assertEqual([to[k] for k in ("pid", "tid", "ts")],
                             [kernel[k] for k in ("pid", "tid", "ts")])

    def test_stacks(self):
        self.record(self.path)
        frames, number, found = self.read_trace()["stackFrames"], self.events()["kernel"][0]["sf"], []
        while number:
            found.append(frames[str(number)]["name"])
            number = frames[str(number)].get("parent")
        self.assertEqual(found, ["<string>(2): inner", "<string>(4): outer", "<string>(5): <module>"])

    @unittest.skipUnless(os.path.exists(HTA), "there is no Holistic Trace Analysis")
    def test_hta_reads_it(self):
        self.sample_gpu(20)
        self.record(self.path)
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        reply = subprocess.run([HTA, "-W", "ignore", "-c", ANALYSIS, str(self.path)], env=env,
                               capture_output=True, text=True, timeout=250)
        [line] = [line for line in reply.stdout.splitlines() if line.startswith("hta: ")] or [reply.stderr]
        read = json.loads(line[len("hta: "):])
        self.assertEqual(read["kernels"], ["Memcpy HtoD (Pageable -> Device)", "Memset (Device)",
                                           "other_kernel", "small_kernel", KERNEL])
        self.assertEqual(read["streams"], [7, 13])
        self.assertEqual(read["launches"], [1, 2, 3, *range(100, 120)])
        self.assertEqual(read["copies"], ["Memcpy HtoD", "Memset"])


class Perfetto(GpuCase):
    @unittest.skipUnless(os.path.exists(READERS), "there are no readers")
    def test_tracks_slices_and_flows(self):
        path = self.folder / "trace.pftrace"
        self.record(path)
        read = read_perfetto(path)
        slices = {(name, notes.get("correlation")): (tid, end - start, notes)
                  for tid, name, start, end, _, notes in read["calls"]}
        tid, ns, notes = slices[KERNEL, 1]
        self.assertEqual((tid, ns), (0, 10000))
        self.assertEqual({**notes, "python stack": 0}, {
            "device": 0, "context": 1, "stream": 7, "correlation": 1, "registers per thread": 32,
            "shared memory": 1024, "grid": "[4, 1, 1]", "block": "[128, 1, 1]",
            "est. achieved occupancy %": 13, "launched at": "<string>(2): inner", "python stack": 0})
        self.assertEqual(slices["cudaLaunchKernel", 1][:2], (os.getpid(), 2000))
        self.assertEqual(slices["step", None][:2], (os.getpid(), 50000))
        self.assertEqual([mark[:2] for mark in read["marks"]], [[os.getpid(), "here"]])


class Files(GpuCase):
    def test_a_file_holds_all(self):
        t = kpytrace.start(self.path, gpu="calls")
        t.stop()
        t.write(self.kpt)
        self.command("convert", self.kpt, self.folder / "again.kpt")
        self.command("convert", self.folder / "again.kpt", self.folder / "again.json")
        one, two = self.read_trace(), self.read_trace(self.folder / "again.json")
        for trace in one, two:
            del trace["traceName"]
        self.assertEqual(one, two)

    def test_a_dump_while_it_runs(self):
        t = kpytrace.start(None, gpu="calls")
        t.dump(self.path)
        t.dump(self.kpt)
        t.stop()
        self.assertEqual(len(self.events()["kernel"]), 3)
        self.assertIn("3 kernels", self.command("info", self.kpt))

    def test_a_stream_has_it_while_it_runs(self):
        self.sample_gpu(5000)
        t = kpytrace.start(self.kpt, gpu="calls", flush_ns="10ms")
        deadline = time.monotonic() + 60
        while self.read_so_far() < 10013 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(self.read_so_far(), 10013)
        self.assertEqual(_standalone.gpu_report(t._handle)["events"], 10013)
        summary = t.stop()
        self.assertEqual((summary.kernels, summary.gpu_dropped), (5003, 5))
        self.assertEqual(self.report(self.kpt)["events"], 10013)
        t.write(self.path)
        self.assertEqual(len(self.events()["kernel"]), 5003)

    def read_so_far(self):
        return _standalone.gpu_report(_standalone.open(SAMPLE, self.kpt, False)[0])["events"]

    def test_a_flight_recorder_has_the_last_ones(self):
        self.sample_gpu(1000)
        summary = self.record(self.path, ring="1s")
        self.assertEqual(len(self.events()["kernel"]), 1003)
        self.assertEqual(summary.kernels, 1003)

    def test_packed(self):
        """An event takes about 30 bytes."""
        self.sample_gpu(10000)
        t = kpytrace.start(None, gpu="calls")
        t.stop()
        t.write(self.kpt)
        self.assertLess(self.kpt.stat().st_size, 20000 * 32)
        self.assertEqual(self.report(self.kpt)["events"], 20013)

    def report(self, path):
        handle, state, _ = _standalone.open(SAMPLE, path, False)
        self.assertEqual(state, "whole")
        return _standalone.gpu_report(handle)

    def test_cut_off_anywhere(self):
        """A cut-off file is read up to the cut, or refused with a message. It never has more kernels than were
        recorded."""
        t = kpytrace.start(None, gpu="calls")
        t.stop()
        t.write(self.kpt)
        whole, cut = self.kpt.read_bytes(), self.folder / "cut.kpt"
        seen = set()
        for size in range(len(whole)):
            cut.write_bytes(whole[:size])
            try:
                handle, state, _ = _standalone.open(SAMPLE, cut, False)
            except ValueError as error:
                self.assertTrue(str(error))
                continue
            self.assertEqual(state, "cut off")
            seen.add(_standalone.gpu_report(handle)["events"])
        self.assertLessEqual(seen, {0, 13})

    def test_damage_is_refused(self):
        t = kpytrace.start(None, gpu="calls")
        t.stop()
        t.write(self.kpt)
        whole, cut = self.kpt.read_bytes(), self.folder / "cut.kpt"
        place = whole.index(b"Sample GPU")
        cut.write_bytes(whole[:place] + b"s" + whole[place + 1:])
        with self.assertRaisesRegex(ValueError, "damaged"):
            _standalone.open(SAMPLE, cut, False)


class Top(GpuCase):
    def setUp(self):
        super().setUp()
        t = kpytrace.start(None, gpu="calls")
        t.stop()
        t.write(self.kpt)

    def test_by_kernel_and_line(self):
        report = json.loads(self.command("top", "--gpu", "--json", self.kpt))
        rows = [ROW(**row) for row in report["kernels"]]
        self.assertEqual(rows, [ROW(KERNEL, 2, 15000, 10000), ROW("other_kernel", 1, 10000, 10000),
                                ROW("Memcpy HtoD (Pageable -> Device)", 1, 4000, 4000),
                                ROW("Memset (Device)", 1, 1000, 1000)])
        self.assertEqual(report["lines"], [{"line": "<string>:2 inner", "count": 5, "total_ns": 30000,
                                            "max_ns": 10000}])
        [device] = report["devices"]
        self.assertEqual((device["span_ns"], device["busy_ns"], device["idle_ns"]), (42000, 27000, 15000))
        self.assertEqual([gap["ns"] for gap in device["gaps"]], [10000, 4000, 1000])
        self.assertEqual(device["gaps"][0]["before"], "Memcpy HtoD (Pageable -> Device)")

    def test_for_people(self):
        text = self.command("top", "--gpu", self.kpt)
        self.assertIn("GPU 0 Sample GPU: 3 kernels, busy 27.000 µs of 42.000 µs, idle 15.000 µs (35.7%)",
                      text)
        self.assertIn(f"55.6%  {KERNEL}", text)
        self.assertIn("launched by <string>:2 inner", text)
        self.assertIn("… in 3 more rows", self.command("top", "--gpu", "--count=1", self.kpt))

    def test_info(self):
        text = self.command("info", self.kpt)
        self.assertIn("0 Sample GPU, 3 kernels, busy 27.000 µs", text)
        self.assertIn("13, 3 dropped, 2 kernels lost", text)
        self.assertIn("gpu calls:    nearly all", text)

    def test_fewer_calls_is_the_default(self):
        t = kpytrace.start(None, gpu=True)
        t.stop()
        t.write(self.kpt)
        text = self.command("info", self.kpt)
        self.assertIn("11, 3 dropped, 2 kernels lost", text)
        self.assertIn("gpu calls:    those that start work, wait", text)
        t.write(self.path)
        self.assertFalse({"overhead", "cuda_sync"} & self.events().keys())

    def test_an_older_plugin_records_all_calls(self):
        self.sample_gpu("old")
        t = kpytrace.start(None, gpu=True)
        t.stop()
        t.write(self.kpt)
        text = self.command("info", self.kpt)
        self.assertIn("13, 3 dropped, 2 kernels lost", text)
        self.assertIn("gpu calls:    nearly all", text)

    def test_what_is_not_a_choice(self):
        with self.assertRaisesRegex(ValueError, 'gpu must be True, False or "calls"'):
            kpytrace.start(None, gpu="all")

    def test_without_a_gpu(self):
        t = kpytrace.start(None, gpu=False)
        t.stop()
        t.write(self.kpt)
        self.assertEqual(self.command("top", "--gpu", self.kpt), "the recording has no GPU events\n")
        self.assertNotIn("gpu:", self.command("info", self.kpt))


if __name__ == "__main__":
    unittest.main()
