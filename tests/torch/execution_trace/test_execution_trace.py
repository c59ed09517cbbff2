"""torch's own tests of its execution-trace observer, run with kpytrace's."""

import array
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

import et
import torch
import kpytrace.torch
from kpytrace.torch import ExecutionTraceObserver
from torch.profiler import profile, ProfilerActivity, schedule


def kineto_rf_ids(path):
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    return sorted(event["args"]["Record function id"] for event in events
                  if event.get("cat") in ("cpu_op", "user_annotation"))


def loops(trace):
    return [node for node in trace["nodes"] if node["name"].startswith("## LOOP ")]


ALONE = """
import et, json, os, torch
with et.folder() as folder:
    trace = et.record(os.path.join(folder, "trace.json"), lambda: torch.ones(2))
print(json.dumps([len(et.stack(trace, et.the(trace, "aten::ones"))), "<lambda>"
                  in et.stack(trace, et.the(trace, "aten::ones"))[0][0]]))
"""


class WithKineto(unittest.TestCase):
    def profiled(self, folder, **options):
        """Runs ten loops, two of which are recorded. Returns the profiler and the ids in Kineto's file."""
        handled = []

        def handler(prof):
            handled.append(os.path.join(folder, "kineto.json"))
            prof.export_chrome_trace(handled[-1])

        with profile(activities=[ProfilerActivity.CPU],
                     schedule=schedule(skip_first=3, wait=1, warmup=1, active=2, repeat=1),
                     on_trace_ready=handler, **options) as prof:
            for index in range(10):
                et.loop(index)
                prof.step()
        self.assertEqual(len(handled), 1)
        return prof, kineto_rf_ids(handled[0])

    def check_trace(self, path, kineto):
        trace = et.load(path)
        self.assertTrue(all(node["name"] for node in trace["nodes"]))
        self.assertEqual(len(loops(trace)), 2)
        self.assertEqual(et.rf_ids(trace), kineto)
        self.assertGreater(len(kineto), 50)

    def test_with_kineto(self):
        with et.folder() as folder:
            path = os.path.join(folder, "trace.json")
            observer = ExecutionTraceObserver().register_callback(path)
            prof, kineto = self.profiled(folder, execution_trace_observer=observer)
            self.assertEqual(prof.execution_trace_observer.get_output_file_path(), path)
            self.assertFalse(observer.is_registered)
            self.check_trace(path, kineto)

    def test_second_session(self):
        with et.folder() as folder:
            for turn in range(2):
                path = os.path.join(folder, f"trace{turn}.json")
                observer = ExecutionTraceObserver().register_callback(path)
                _, kineto = self.profiled(folder, execution_trace_observer=observer)
                self.check_trace(path, kineto)

    def env_enabled(self, extras):
        kpytrace.torch.install(execution_trace=True)
        self.addCleanup(kpytrace.torch.uninstall)
        with et.folder() as folder, et.environment(ON="1", EXTRAS=extras):
            prof, kineto = self.profiled(folder)
            observer = prof.execution_trace_observer
        self.assertIs(type(observer), ExecutionTraceObserver)
        self.assertTrue(observer.get_output_file_path().endswith(".et.json"))
        self.check_trace(observer.get_output_file_path(), kineto)
        os.unlink(observer.get_output_file_path())
        return observer

    def test_env_enabled_with_kineto(self):
        folder = self.env_enabled("1").get_resources_dir()
        self.assertEqual(os.listdir(folder), [])
        os.rmdir(folder)

    def test_env_enabled_without_extras(self):
        self.assertIsNone(self.env_enabled("0").get_resources_dir())

    def test_env_disabled(self):
        kpytrace.torch.install(execution_trace=True)
        self.addCleanup(kpytrace.torch.uninstall)
        for value in ({}, {"ON": "0"}, {"ON": "true"}, {"EXTRAS": "1"}):
            with self.subTest(value), et.environment(**value):
                with profile(activities=[ProfilerActivity.CPU]) as prof:
                    et.payload()
                self.assertIsNone(prof.execution_trace_observer)

    def test_env_is_torchs_again(self):
        theirs = torch.profiler.ExecutionTraceObserver
        kpytrace.torch.install(execution_trace=True)
        kpytrace.torch.install()
        for _ in range(2):
            with et.environment(ON="1"):
                observer = theirs.build_execution_trace_obs_from_env()
            self.assertIs(type(observer), theirs)
            observer.unregister_callback()
            os.unlink(observer.get_output_file_path())
            kpytrace.torch.install(execution_trace=True)
            kpytrace.torch.uninstall()


    def test_issue_23_programs_get_ours(self):
        """execution_trace="all" replaces the class that programs get from torch.profiler."""
        theirs = torch.profiler.ExecutionTraceObserver
        self.addCleanup(kpytrace.torch.uninstall)
        kpytrace.torch.install(execution_trace="all")
        for module in (torch.profiler, torch.profiler.profiler):
            self.assertIs(module.ExecutionTraceObserver, ExecutionTraceObserver)
        with et.folder() as folder, et.environment(ON="1"):
            prof, _ = self.profiled(folder)
            self.assertIs(type(prof.execution_trace_observer), ExecutionTraceObserver)
            os.unlink(prof.execution_trace_observer.get_output_file_path())
        kpytrace.torch.install(execution_trace=True)
        self.assertIs(torch.profiler.ExecutionTraceObserver, theirs)
        with self.assertRaisesRegex(ValueError, "execution_trace must be False, True or 'all'"):
            kpytrace.torch.install(execution_trace="some")

    def test_issue_23_by_environment(self):
        """KPYTRACE_TORCH_EXECUTION_TRACE, beside any mode."""
        for value, environments, programs in (("all", True, True), ("1", True, False),
                                              ("0", False, False)):
            found = support.program("""
                import json, kpytrace.torch._autostart, os
                kpytrace.torch._autostart.start()
                import torch
                ours = kpytrace.torch.ExecutionTraceObserver
                os.environ["ENABLE_PYTORCH_EXECUTION_TRACE"] = "1"
                observer = torch.profiler.ExecutionTraceObserver.build_execution_trace_obs_from_env()
                observer.unregister_callback()
                os.unlink(observer.get_output_file_path())
                print(json.dumps([type(observer) is ours, torch.profiler.ExecutionTraceObserver is ours]))
                """, KPYTRACE_TORCH="all", KPYTRACE_TORCH_EXECUTION_TRACE=value).value
            self.assertEqual(found, [environments, programs], value)


class Alone(unittest.TestCase):
    def test_issue_23_running_has_torchs_name(self):
        with et.folder() as folder:
            observer = ExecutionTraceObserver().register_callback(os.path.join(folder, "trace.json"))
            found = []
            for step in (observer.start, observer.stop, observer.start, observer.unregister_callback):
                step()
                found.append(observer._execution_trace_running)
            self.assertEqual(found, [True, False, True, False])

    def test_alone(self):
        with et.folder() as folder:
            trace = et.record(os.path.join(folder, "trace.et.json.gz"),
                              lambda: [et.loop(index) for index in range(5)])
            self.assertEqual(os.listdir(folder), ["trace.et.json.gz"])
        self.assertEqual(len(loops(trace)), 5)
        found = et.named(trace, "## TEST 2 ##")
        self.assertEqual(len(found), 5)
        for node in found:
            values = node["inputs"]["values"]
            self.assertEqual(len(values[3][0]), 6)
            self.assertEqual(values[:3] + values[5:6] + values[7:],
                             [1, False, 2.5, "hello", "inf", "-inf", "nan"])
            self.assertEqual(node["inputs"]["shapes"][3], [[3, 4, 5]] * 2)
            self.assertEqual(node["inputs"]["types"],
                             ["Int", "Bool", "Double", "GenericList[Tensor(float),Tensor(float)]",
                              "Tuple[Tensor(float),Tensor(float)]", "String", "Tensor(float)",
                              "Double", "Double", "Double"])

    def test_start_stop(self):
        with et.folder() as folder:
            path = os.path.join(folder, "trace.json")
            observer = ExecutionTraceObserver().register_callback(path)
            for index in range(10):
                if index in (3, 8):
                    observer.start()
                    observer.start()
                elif index in (5, 9):
                    observer.stop()
                    observer.stop()
                self.assertEqual(observer.is_running(), index in (3, 4, 8))
                et.loop(index)
            observer.unregister_callback()
            trace = et.load(path)
        self.assertEqual([node["name"] for node in loops(trace)],
                         ["## LOOP 3 ##", "## LOOP 4 ##", "## LOOP 8 ##"])

    def test_repeat_in_loop(self):
        count = 0
        with et.folder() as folder:
            for index in range(10):
                if index in (3, 5, 7, 9):
                    trace = et.record(os.path.join(folder, f"{index}.json"),
                                      lambda index=index: et.loop(index))
                    self.assertEqual(et.the(trace, et.ROOT)["id"], 1)
                    count += len(loops(trace))
                else:
                    et.loop(index)
        self.assertEqual(count, 4)

    def test_no_capture(self):
        with et.folder() as folder:
            path = os.path.join(folder, "trace.json")
            observer = ExecutionTraceObserver()
            self.assertIsNone(observer.get_output_file_path())
            observer.start()
            self.assertFalse(observer.is_running())
            self.assertIs(observer.register_callback(path), observer)
            self.assertTrue(observer.is_registered)
            self.assertIs(observer.register_callback(os.path.join(folder, "other.json")), observer)
            self.assertEqual(observer.get_output_file_path(), path)
            self.assertTrue(os.path.exists(path))
            observer.unregister_callback()
            observer.unregister_callback()
            self.assertFalse(observer.is_registered)
            trace = et.load(path)
        self.assertEqual([node["name"] for node in trace["nodes"]], [et.ROOT])

    def test_end_of_the_object_completes_the_file(self):
        with et.folder() as folder:
            path = os.path.join(folder, "trace.json")
            observer = ExecutionTraceObserver().register_callback(path)
            observer.start()
            et.loop(0)
            del observer
            self.assertEqual(len(loops(et.load(path))), 1)

    def test_nested_tensor(self):
        def work():
            parts = [torch.randn(2, 3), torch.randn(4, 3)]
            torch.nested.nested_tensor(parts, layout=torch.jagged).sin().cos()
            torch.nested.nested_tensor(parts, layout=torch.strided).sin()

        with et.folder() as folder:
            trace = et.record(os.path.join(folder, "trace.json"), work)
        jagged = next(node for node in et.named(trace, "aten::cos")
                      if node["inputs"]["values"][0][1:] == [0, 0, 0, 0, ""])
        self.assertEqual(jagged["inputs"]["shapes"], [[]])
        self.assertEqual(jagged["inputs"]["types"], ["Tensor(float)"])

    def test_python_stack(self):
        def inner():
            return torch.ones(2)

        with et.folder() as folder:
            with_stacks = et.record(os.path.join(folder, "with.json"), inner)
            without = et.record(os.path.join(folder, "without.json"), inner, python_stacks=False)
        names = [name for name, _, _ in et.stack(with_stacks, et.the(with_stacks, "aten::ones"))]
        self.assertEqual([name.rpartition(".")[2] for name in names[:3]],
                         ["inner", "record", "test_python_stack"])
        self.assertNotIn("stack", et.own(et.the(without, "aten::ones")))

    def test_python_stack_of_the_first_observer(self):
        self.assertEqual(support.program(ALONE).value, [3, True])


class Elements(unittest.TestCase):
    def gathered(self, **variables):
        """Returns the trace of a gather, the data files by name, and the node."""
        def work():
            torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]]))

        with et.folder() as folder, et.environment(**variables):
            trace = et.record(os.path.join(folder, "trace.json"), work,
                              lambda observer: observer.set_extra_resource_collection(True))
            resources = os.path.join(folder, "trace_resources")
            files = {}
            for name in os.listdir(resources):
                with open(os.path.join(resources, name), "rb") as file:
                    files[name] = list(array.array("q", file.read()))
        return et.the(trace, "aten::gather"), files

    def test_integral_tensor_range(self):
        for value in ("1", "0", ""):
            node, files = self.gathered(SAVE_INTEGRAL_TENSOR_RANGE=value)
            self.assertEqual(json.loads(et.attr(node, "tensor_range")), {"0": [1, 4], "1": [0, 1]})
            self.assertEqual(files, {})

    def test_integral_tensor_data(self):
        node, files = self.gathered(SAVE_INTEGRAL_TENSOR_DATA="aten::gather")
        self.assertEqual(files, {f"nid_{node['id']}_tid_0.dat": [1, 2, 3, 4],
                                 f"nid_{node['id']}_tid_1.dat": [0, 0, 1, 0]})
        self.assertEqual(et.attr(node, "tensor_range"), "")

    def test_neither(self):
        node, files = self.gathered()
        self.assertEqual((et.attr(node, "tensor_range"), files), ("", {}))


if __name__ == "__main__":
    unittest.main()
