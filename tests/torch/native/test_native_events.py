"""Events and tables of native profiles: equal to what torch's own code makes of the same recording, and to what stock has
for the same program."""

import collections
import copy
import gc
import os
import pathlib
import pickle
import re
import sys
import tempfile
import threading
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
for folder in ("tests/torch/support", "tests/fixtures/cupti", "tests/torch/native"):
    sys.path.insert(0, str(ROOT / folder))
import played
import support
import torch
from torch._C._profiler import _RecordFunctionFast
from torch.autograd.profiler_util import FunctionEventAvg
from torch.profiler import ProfilerActivity, profile, record_function, schedule

import kpytrace.torch
from native_lists import FIELDS, Comparison, difference, field, torchs_own, unmade

if os.environ.get("KPT_STAND_IN_CUPTI"):
    launch = played.launcher(os.environ["KPT_STAND_IN_CUPTI"], os.environ["KPT_STAND_IN_CUDA"], "played_kernel", 7)
VERBOSE = torch._C._profiler._ExperimentalConfig(verbose=True)
FULL = dict(with_stack=True, record_shapes=True, with_flops=True, experimental_config=VERBOSE)
ALL_THREADS = dict(FULL, experimental_config=torch._C._profiler._ExperimentalConfig(
    verbose=True, profile_all_threads=True))
MODEL = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(),
                            torch.nn.Linear(48, 4))
OPTIMIZER = torch.optim.SGD(MODEL.parameters(), lr=0.1)


class Reentrant(torch.autograd.Function):
    """Its backward runs a backward of its own, which is a thread's of autograd if it is deep."""
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        with torch.enable_grad():
            x = torch.ones(2, requires_grad=True)
            (x * x).sum().backward()
        return gradient * 2


def repeated(count):
    return torch.ones(2) + 1 if count == 0 else repeated(count - 1)


def fails():
    with record_function("fails"):
        torch.ones(2).view(3)


def in_thread(loss):
    with record_function("in a thread"):
        loss.backward()


def ranges():
    x = torch.ones(2, 3)
    keywords = {"whole": 2.0, "text": 'a "text"', "none": None, "list": [[1, 2], [3]], "texts": ["a", ""], "no": False,
                "number": -2**40, "complex": 1 - 2j, "name": ""}
    with record_function("with an argument", "the argument"):
        x.neg()
    with _RecordFunctionFast("aten::mm", [x, torch.ones(3, 2), [x, x], 1, [0.5], "text", None], keywords):
        x.neg()
    with _RecordFunctionFast("called an annotation", [x], {"scope": "user_scope"}):
        pass


def work():
    ranges()
    with record_function("forward"):
        out = MODEL(torch.ones(1, 2, 4, 4)).sum()
    torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5)) * 2
    torch.stack([torch.ones(2), torch.ones(2)]).mm(torch.ones(2, 3))
    torch.baddbmm(torch.ones(2, 3, 5), torch.ones(2, 3, 4), torch.ones(2, 4, 5))
    out.backward()
    repeated(3)
    Reentrant.apply(torch.ones(2, requires_grad=True)).sum().backward()
    try:
        fails()
    except RuntimeError:
        pass
    thread = threading.Thread(target=in_thread, args=(MODEL(torch.ones(1, 2, 4, 4)).sum(),))
    thread.start()
    thread.join()
    OPTIMIZER.step()
    OPTIMIZER.zero_grad()


def run(**options):
    with profile(activities=[ProfilerActivity.CPU], **options) as prof:
        work()
        prof.step()
        work()
    return prof


def plain_name(name):
    return re.sub(r" at 0x[0-9a-f]+", "", name)


def plain_stack(stack):
    """Up to work()."""
    names = list(map(plain_name, stack))
    ends = [i for i, name in enumerate(names) if name.endswith(": work")]
    return names[:ends[0] + 1] if ends else []


class Case(Comparison):
    @classmethod
    def setUpClass(cls):
        run(**FULL)  # the first inputs that torch reads make it look for classes of TorchScript
        cls.stock = run(**FULL)
        kpytrace.torch.install(mode="native")

    @classmethod
    def tearDownClass(cls):
        kpytrace.torch.uninstall()


class SameRecording(Case):
    def test_everything(self):
        prof = run(**ALL_THREADS)
        theirs = self.assert_as_torch(prof)
        self.assertTrue(any(event.stack for event in theirs if event.name == "aten::addmm"))
        threads = {event.thread for event in theirs if event.name == "AddmmBackward0"}
        self.assertEqual(len(threads), 3) # the main one, and one in each step
        self.assertTrue(any(event.flops for event in theirs if event.name == "aten::conv2d"))

    def test_without_stacks_or_shapes(self):
        for options in ({}, {"with_stack": True}, {"record_shapes": True}, {"with_flops": True}):
            prof = run(**options)
            self.assert_as_torch(prof)
            self.assertFalse(any(event.stack for event in prof.events()))
            self.assertEqual(any(event.input_shapes for event in prof.events()),
                             "record_shapes" in options or "with_flops" in options)
            self.assertEqual(any(event.is_python_function for event in prof.events()), "with_stack" in options)

    def test_table_of_top_level_events(self):
        prof = run(**FULL)
        theirs = torchs_own(prof)
        self.assertEqual(prof.key_averages().table(top_level_events_only=True),
                         theirs.key_averages().table(top_level_events_only=True))

    def test_stacks_in_a_file(self):
        prof = run(**FULL)
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = os.path.join(folder, "ours"), os.path.join(folder, "theirs")
            prof.export_stacks(ours, "self_cpu_time_total")
            torchs_own(prof).export_stacks(theirs, "self_cpu_time_total")
            self.assertEqual(pathlib.Path(ours).read_text(), pathlib.Path(theirs).read_text())
            self.assertIn("work", pathlib.Path(ours).read_text())

    def test_an_average_is_copied_and_pickled(self):
        one = run(**FULL).key_averages()[1]
        for other in (copy.copy(one), pickle.loads(pickle.dumps(one))):
            self.assertIsInstance(other, FunctionEventAvg)
            self.assertEqual(difference(one, other), {})

    def test_the_first_event_of_an_average_is_one_of_the_list(self):
        prof = run(**FULL)
        average = next(one for one in prof.key_averages() if one.key == "aten::addmm")
        self.assertTrue(any(average.cpu_parent is event for event in prof.events()))

    def test_empty(self):
        prof = profile(activities=[ProfilerActivity.CPU])
        prof.start()
        prof.stop()
        self.assertEqual(prof.profiler.kineto_results.events(), [])
        self.assertEqual((prof.events(), prof.key_averages(), prof.key_averages().table()), ([], [], ""))
        self.assertEqual(unmade(prof).profiler.self_cpu_time_total, 0)
        self.assertEqual(difference(unmade(prof).profiler.total_average(), torchs_own(prof).total_average()), {})

    def test_a_list_that_was_changed_is_used(self):
        prof = run()
        prof.events().clear()
        self.assertEqual(prof.key_averages(), [])

    def test_recordings_of_several_cycles(self):
        for accumulates in (False, True):
            counts = []
            with profile(activities=[ProfilerActivity.CPU], acc_events=accumulates,
                         schedule=schedule(wait=1, warmup=1, active=1, repeat=2),
                         on_trace_ready=lambda prof: counts.append(len(prof.events()))) as prof:
                for _ in range(6):
                    torch.ones(2) + 1
                    prof.step()
            added = {one.key: one.count for one in prof.key_averages()}["aten::add"]
            self.assertEqual(added, 2 if accumulates else 1)
            self.assertEqual(counts[1], counts[0] * (1 + accumulates))

    def test_time_limit(self):
        """torch's own code keeps it, and returns a part."""
        with profile(activities=[ProfilerActivity.CPU], post_processing_timeout_s=0.0) as prof:
            work()
        with self.assertLogs("torch.autograd.profiler", "WARNING"):
            self.assertEqual(prof.events(), [])
        with profile(activities=[ProfilerActivity.CPU], post_processing_timeout_s=60) as prof:
            work()
        self.assertGreater(len(prof.events()), 10)

    @unittest.skipIf(support.torch_version() < (2, 13), "this torch has no trace_only")
    def test_trace_only(self):
        config = torch._C._profiler._ExperimentalConfig(trace_only=True)
        with profile(activities=[ProfilerActivity.CPU], experimental_config=config) as prof:
            work()
        for make in (prof.events, prof.key_averages):
            with self.assertRaisesRegex(RuntimeError, "trace_only"):
                make()

    def test_autograds_own_profile(self):
        with torch.autograd.profiler.profile(use_kineto=True, record_shapes=True) as prof:
            work()
        self.assertIn("aten::addmm", [event.name for event in prof.function_events])
        self.assertIn("aten::addmm", prof.table(sort_by="cpu_time_total", row_limit=1000))
        self.assertIn("aten::addmm", str(prof))

    def test_memory_is_added_up(self):
        """The reports of allocations: those in no event have an event of their own."""
        def allocate():
            work()
            self.kept = torch.nn.Parameter(torch.ones(64))  # detach() is the last operator
        with torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
            torch.UntypedStorage(4096)  # in no operator
            allocate()
        self.assert_as_torch(prof)
        events = prof.profiler.kineto_results.events()
        reports = [event.nbytes() for event in events if event.name() == "[memory]"]
        self.assertGreater(len(reports), 10)
        self.assertEqual([event.cpu_memory_usage for event in prof.events() if event.name == "[memory]"][:2],
                         [4096, -4096])
        total = sum(event.cpu_memory_usage for event in prof.events() if event.cpu_parent is None)
        self.assertEqual(total, sum(reports))

    def test_memory_is_that_of_stock(self):
        def usage(prof):
            return {one.key: (one.cpu_memory_usage, one.self_cpu_memory_usage, one.device_memory_usage)
                    for one in prof.key_averages() if one.key != "[memory]"}
        def profile():
            work()
            gc.collect()  # so that nothing of an earlier test is freed in an operator of this one
            with torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
                work()
            return prof
        kpytrace.torch.uninstall()
        try:
            stock = profile()
        finally:
            kpytrace.torch.install("native")
        own = profile()
        self.assertEqual(type(own.profiler.kineto_results).__name__, "NativeResult")
        self.assertEqual(usage(own), usage(stock))
        self.assertTrue(any(any(one) for one in usage(own).values()))


class AsStock(Case):
    def events(self, prof, wanted):
        return [event for event in prof.profiler.kineto_results.events() if wanted(event)]

    def test_operators(self):
        """Every field of each operator and annotation in the order of their begin, of the main thread."""
        def wanted(event):
            return not event.is_python_function()
        found = []
        for prof in (self.stock, run(**FULL)):
            events = self.events(prof, wanted)
            first_number = min(event.correlation_id() for event in events)
            first_sequence = min(event.sequence_nr() for event in events if event.sequence_nr() >= 0)
            main = events[0].start_thread_id()
            threads = {main: "main"}
            rows = []
            for event in events:
                row = {name: field(event, name) for name in FIELDS}
                for name in ("start_thread_id", "end_thread_id", "fwd_thread_id"):
                    if row[name]:
                        row[name] = threads.setdefault(row[name], len(threads))
                for name in ("correlation_id", "external_id"):
                    row[name] -= first_number
                row["sequence_nr"] = event.sequence_nr() - first_sequence if event.sequence_nr() >= 0 else -1
                if row["start_thread_id"] != "main":
                    row["device_resource_id"] = None
                row["stack"] = plain_stack(row["stack"])
                row["flow_id"] = row["flow_id"] > 0
                rows.append(row)
            found.append(rows)
        self.assertEqual([row["name"] for row in found[1]], [row["name"] for row in found[0]])
        for theirs, ours in zip(*found):
            self.assertEqual(ours, theirs, theirs["name"])

    def test_flows(self):
        """The same pairs of forward operators and nodes of autograd have one number."""
        pairs = []
        for prof in (self.stock, run(**FULL)):
            by_number = collections.defaultdict(list)
            for event in prof.profiler.kineto_results.events():
                if event.flow_id():
                    by_number[event.flow_id()].append((not event.flow_start(), event.name(), event.flow_type()))
            pairs.append([sorted(pair) for _, pair in sorted(by_number.items())])
        self.assertEqual(pairs[1], pairs[0])

    def test_calls(self):
        """Every call in work()."""
        def wanted(event):
            return event.is_python_function()
        found = []
        for prof in (self.stock, run(**FULL)):
            events = self.events(prof, wanted)
            main = events[0].start_thread_id()
            names = {event.python_id(): event.name() for event in events}
            rows = [(plain_name(event.name()), plain_name(names.get(event.python_parent_id(), "")),
                     event.python_module_id(), plain_stack(event.stack()), event.activity_type(),
                     event.device_index(), event.device_resource_id(), event.scope(), event.sequence_nr())
                    for event in events if event.start_thread_id() == main]
            found.append([row for row in rows if row[3]])
        for theirs, ours in zip(*found):
            self.assertEqual(ours, theirs)
        self.assertEqual(len(found[0]), len(found[1]))
        self.assertGreater(len(found[0]), 100)

    def test_methods(self):
        theirs = self.stock.profiler.kineto_results.events()[0]
        ours = run().profiler.kineto_results.events()[0]
        missing = {name for name in dir(theirs) if not name.startswith("_")} - set(dir(ours))
        self.assertEqual(missing, set())
        self.assertEqual(ours.end_ns() - ours.start_ns(), ours.duration_ns())
        with self.assertRaises(TypeError):
            type(ours)()


@unittest.skipUnless(os.environ.get("KPT_STAND_IN_CUPTI"), "GPU activities were not built")
class Gpu(Case):
    """A stand-in of CUPTI plays the kernels."""

    def test_kernels(self):
        def step():
            with record_function("launches"):
                library.call(torch.ones(2))
            launch()
        library = Launching()
        supported = {ProfilerActivity.CPU, ProfilerActivity.CUDA}
        profiler = torch.autograd.profiler
        with mock.patch.object(torch.cuda, "is_available", lambda: True), \
                mock.patch.object(torch.cuda, "synchronize", lambda: None), \
                mock.patch.object(profiler, "_supported_activities", lambda: supported), \
                profile(activities=list(supported), **FULL) as prof:
            step()
            step()
        self.assertEqual(prof.profiler.use_device, "cuda")
        theirs = self.assert_as_torch(prof)
        kernels = [event for event in prof.profiler.kineto_results.events() if event.activity_type() == "kernel"]
        self.assertEqual([event.name() for event in kernels], ["played_kernel"] * 6)
        operators = {event.correlation_id(): event.name() for event in prof.profiler.kineto_results.events()
                     if event.activity_type() == "cpu_op"}
        self.assertEqual([operators.get(event.linked_correlation_id()) for event in kernels],
                         2 * ["played_list::launch", "played_list::launch", None])
        for event in kernels:
            self.assertEqual((str(event.device_type()), event.device_resource_id()), ("DeviceType.CUDA", 7))
        spans = [event for event in theirs if event.is_user_annotation and "CUDA" in str(event.device_type)]
        self.assertEqual([event.name for event in spans], ["launches"] * 2)
        launching = next(one for one in unmade(prof).key_averages() if one.key == "played_list::launch")
        self.assertGreater(launching.self_device_time_total, 0)
        self.assertIn("Self CUDA", unmade(prof).key_averages().table(sort_by="self_cuda_time_total"))


class Launching:
    """An operator that launches two kernels."""

    def __init__(self):
        self.library = torch.library.Library("played_list", "DEF")
        self.library.define("launch(Tensor x) -> Tensor")
        self.library.impl("launch", self.run, "CPU")
        self.call = torch.ops.played_list.launch

    @staticmethod
    def run(x):
        launch()
        launch()
        return x + 1


if __name__ == "__main__":
    unittest.main()
