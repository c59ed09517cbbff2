"""Recordings of a real GPU: each kernel once, with the line that launched it, and its time. Skipped
without a GPU; a program whose package is missing is skipped by its name."""

import collections
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import FREE_THREADED, Case, run_python

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
HTA = os.environ.get("KPT_HTA", "")
if not os.path.exists(HTA):
    HTA = sys.executable if importlib.util.find_spec("hta") else ""

ANALYSIS = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
kernels = analysis.get_gpu_kernel_breakdown(visualize=False)[1]
idle = analysis.get_idle_time_breakdown(visualize=False, ranks=[0])[0]
launches = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
print("hta:", len(kernels), len(idle), len(launches))
"""


# Where CUPTI is, if it has to be said: cases have a clean environment.
CUPTI = {name: os.environ[name] for name in ("KPYTRACE_CUPTI",) if name in os.environ}


# Where frames can't be read without the GIL, a call of CUDA that was made without it, as by ctypes, has no stack.
READS_FRAMES = sys.version_info < (3, 15) and not FREE_THREADED


def has_gpu():
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")


class Recording:
    """A trace as Chrome JSON, with accessors for the tests."""

    def __init__(self, path):
        trace = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        self.frames = trace.get("stackFrames", {})
        self.gpu = trace.get("gpu", {})
        self.by_category = collections.defaultdict(list)
        self.arrows = {"s": set(), "f": set()}
        for event in trace["traceEvents"]:
            if event.get("cat") == "ac2g":
                self.arrows[event["ph"]].add(event["id"])
            else:
                self.by_category[event.get("cat")].append(event)
        self.kernels = self.by_category["kernel"]
        self.calls = {event["args"]["correlation"]: event
                      for kind in ("cuda_driver", "cuda_runtime") for event in self.by_category[kind]}

    def stack(self, event):
        """Returns the stack, innermost first."""
        number, found = event.get("sf"), []
        while number:
            frame = self.frames[str(number)]
            found.append(frame["name"])
            number = frame.get("parent")
        return found

    def launched_at(self, event, program):
        """Returns the program's own lines in the stack."""
        return {int(name[len(str(program)) + 1:].partition(")")[0]) for name in self.stack(event)
                if name.startswith(f"{program}(")}


@unittest.skipUnless(has_gpu(), "there is no GPU")
class Programs(Case):
    def record(self, name, *options):
        program, kpt = PROGRAMS / f"{name}_program.py", self.folder / "trace.kpt"
        reply = run_python("-m", "kpytrace", "run", "--gpu", *options, "-o", kpt, program, timeout=300,
                           env=CUPTI)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        print(f"{name}: {reply.stderr.strip()}", file=sys.stderr)
        self.assertNotIn("GPUs are not recorded", reply.stderr)
        converted = run_python("-m", "kpytrace", "convert", "-q", kpt, self.path, timeout=300)
        self.assertEqual(converted.returncode, 0, converted.stderr)
        return program, Recording(self.path), json.loads(reply.stdout.splitlines()[-1])

    def check(self, package, *options):
        if package != "driver" and not importlib.util.find_spec(package):
            print(f"{package} is not there: skipped", file=sys.stderr)
            self.skipTest(f"there is no {package}")
        program, seen, expected = self.record(package, *options)
        self.assertEqual((seen.gpu["events dropped"], seen.gpu["kernels lost"]), (0, 0))
        for name, count in expected["kernels"].items():
            events = [event for event in seen.kernels if name in event["name"]]
            self.assertEqual(len(events), count,
                             (name, collections.Counter(e["name"][:200] for e in seen.kernels)))
        by_line = collections.Counter(line for event in seen.kernels
                                      for line in seen.launched_at(event, program))
        if package == "driver" and not READS_FRAMES:
            expected["launched"], expected["timed"] = [(line, 0) for line, _ in expected["launched"]], []
        for line, count in expected["launched"]:
            self.assertEqual(by_line[line], count, (line, by_line))
        for line, ms in expected["timed"]:
            total = sum(event["dur"] for event in seen.kernels
                        if line in seen.launched_at(event, program)) / 1000
            print(f"{package}: {by_line[line]} kernels, {total:.3f} ms; by CUDA's events {ms:.3f} ms",
                  file=sys.stderr)
            self.assertAlmostEqual(total / ms, 1, delta=0.05)
        self.check_arrows(seen)
        self.check_hta()
        return seen

    def check_arrows(self, seen):
        """Checks the arrow from each launch to its kernel, which does not begin before the launch."""
        alone = [event for event in seen.kernels if event["args"]["correlation"] not in seen.calls]
        self.assertEqual(alone, [], "kernels without a call")
        for event in seen.kernels:
            number = event["args"]["correlation"]
            self.assertIn(number, seen.arrows["s"])
            self.assertIn(number, seen.arrows["f"])
            self.assertGreaterEqual(event["ts"], seen.calls[number]["ts"])

    def check_nested(self, seen):
        """Checks that calls of CUDA lie within the Python call around them."""
        calls = [e for kind in ("cuda_driver", "cuda_runtime") for e in seen.by_category[kind]
                 if e.get("sf")]
        spans = collections.defaultdict(list)
        for event in seen.by_category["python_function"]:
            spans[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        outside = [e for e in calls if not any(start <= e["ts"] and e["ts"] + e["dur"] <= end + 0.001
                                               for start, end in spans[e["tid"]])]
        self.assertEqual(outside, [], f"of {len(calls)} calls")

    def check_hta(self):
        if not HTA:
            print("HTA is not there: its reading is not tested", file=sys.stderr)
            return
        reply = subprocess.run([HTA, "-W", "ignore", "-c", ANALYSIS, str(self.path)],
                               capture_output=True, text=True, timeout=300)
        self.assertIn("hta:", reply.stdout, reply.stderr)

    def test_the_driver_alone(self):
        self.check_nested(self.check("driver"))

    def test_torch(self):
        self.check("torch")

    def test_triton(self):
        self.check("triton")

    def test_cupy(self):
        self.check("cupy")

    def test_numba(self):
        self.check("numba")

    def test_jax(self):
        self.check("jax")

    def test_without_calls_in_c(self):
        self.check("driver", "--no-c-calls")

    def test_top(self):
        self.record("driver")
        reply = run_python("-m", "kpytrace", "top", "--gpu", "--json", self.folder / "trace.kpt",
                           timeout=300)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        report = json.loads(reply.stdout)
        self.assertEqual(sum(row["count"] for row in report["kernels"]
                             if row["name"] == "spin_kernel"), 60)
        [device] = report["devices"]
        self.assertLess(device["busy_ns"], device["span_ns"])
        print(run_python("-m", "kpytrace", "top", "--gpu", self.folder / "trace.kpt").stdout,
              file=sys.stderr)


class NoGpu(Case):
    def test_a_line_gives_the_reason_and_the_trace_continues(self):
        if has_gpu():
            self.skipTest("there is a GPU")
        reply = run_python("-m", "kpytrace", "run", "--gpu", "-o", self.path, "-c", "print(1)")
        self.assertEqual((reply.returncode, reply.stdout), (0, "1\n"))
        self.assertEqual(reply.stderr.count("GPUs are not recorded: "), 1, reply.stderr)
        self.assertEqual(len(reply.stderr.splitlines()), 3)  # the others: what was recorded, and the next command
        self.assertTrue(self.calls())

    def test_no_message_if_gpus_were_not_requested(self):
        if has_gpu():
            self.skipTest("there is a GPU")
        for options in ((), ("--no-gpu",), ("--gpu", "--quiet")):
            reply = run_python("-m", "kpytrace", "run", *options, "-o", self.path, "-c", "print(1)")
            self.assertNotIn("GPU", reply.stderr)


if __name__ == "__main__":
    unittest.main()
