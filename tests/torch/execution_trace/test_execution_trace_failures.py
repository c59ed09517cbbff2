"""Programs for which torch's observer crashes, loses nodes or writes wrong bytes, and kpytrace's does not. The numbers
are those of docs/execution_trace.md."""

import array
import json
import os
import pathlib
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

import et
import torch
from kpytrace.torch import ExecutionTraceObserver
from torch.profiler import record_function

UNSEEN_FORWARD = """
import et, json, os, sys, threading, torch
from kpytrace.torch import ExecutionTraceObserver
done = []
def forward():
    done.append((torch.randn(3, requires_grad=True) * 2).sum())
with et.folder() as folder:
    path = os.path.join(folder, "trace.json")
    observer = ExecutionTraceObserver().register_callback(path)
    thread = threading.Thread(target=forward)
    thread.start()
    thread.join()
    observer.start()
    done[0].backward()
    observer.stop()
    observer.unregister_callback()
    trace = et.load(path)
nodes = [node for node in trace["nodes"] if et.attr(node, "scope") == 1]
print(json.dumps([len(nodes) > 0, [et.attr(node, "fw_parent") for node in nodes]]))
"""

KILLED = """
import os, signal, sys, torch
from kpytrace.torch import ExecutionTraceObserver
observer = ExecutionTraceObserver().register_callback(sys.argv[1])
observer.start()
for _ in range(100):
    torch.ones(2).sin()
os.kill(os.getpid(), signal.SIGKILL)
"""

FORKED = """
import et, json, os, torch
from kpytrace.torch import ExecutionTraceObserver
with et.folder() as folder:
    path = os.path.join(folder, "trace.json")
    observer = ExecutionTraceObserver().register_callback(path)
    observer.start()
    torch.ones(2)
    child = os.fork()
    if child == 0:
        for _ in range(100):
            torch.ones(2).sin()
        observer.stop()
        observer.unregister_callback()
        os._exit(7)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    torch.ones(3)
    observer.unregister_callback()
    trace = et.load(path)
print(json.dumps([status, len(et.named(trace, "aten::ones")), len(et.named(trace, "aten::sin"))]))
"""

# The thread that follows a file is none of the program's, which has one.
FORKED_BEFORE_START = """
import os, sys, warnings
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
import torch
warnings.simplefilter("always")
from kpytrace.torch import ExecutionTraceObserver
was_alone = len(os.listdir("/proc/self/task")) == 1
observer = ExecutionTraceObserver().register_callback(sys.argv[1])
child = os.fork()
if child == 0:
    os._exit(7)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
observer.unregister_callback()
print(was_alone, status)
"""

# As a daemon does; what it opens then gets the numbers of what it closed.
DAEMON = """
import et, json, os, sys, torch
from kpytrace.torch import ExecutionTraceObserver
with et.folder() as folder:
    path = os.path.join(folder, "trace.json")
    observer = ExecutionTraceObserver().register_callback(path)
    observer.start()
    torch.ones(2).sin()
    if len(sys.argv) > 1:
        os.unlink(path + ".journal")
    os.closerange(3, 256)
    files = [open(os.path.join(folder, f"own{i}"), "w+") for i in range(20)]
    for file in files:
        file.write("mine")
        file.flush()
    x = torch.ones(2)
    for _ in range(20_000):
        x.cos()
    observer.stop()
    error = ""
    try:
        observer.unregister_callback()
    except OSError as caught:
        error = str(caught)
    mine = True
    for file in files:
        file.seek(0)
        mine &= file.read() == "mine"
        file.close()
    trace = et.load(path)
    left = sorted(name for name in os.listdir(folder) if not name.startswith("own"))
count = len(et.named(trace, "aten::cos"))
print(json.dumps([mine, len(et.named(trace, "aten::sin")), count, trace["kpytrace"]["dropped_ops"], error, left]))
"""

AT_EXIT = """
import sys, torch
from kpytrace.torch import ExecutionTraceObserver
observer = ExecutionTraceObserver().register_callback(sys.argv[1])
observer.start()
torch.ones(2)
"""


class Failures(et.WithFolder):
    def test_1_forward_thread_unseen(self):
        some, parents = support.program(UNSEEN_FORWARD, forked=True).value
        self.assertTrue(some)
        self.assertEqual(set(parents), {0})

    def test_descriptors_closed_by_the_program(self):
        mine, before, after, dropped, error, left = support.program(DAEMON, forked=True).value
        self.assertEqual((mine, before, after, dropped, error, left), (True, 1, 20_000, 0, "", ["trace.json"]))

    def test_descriptors_closed_and_the_journal_removed(self):
        mine, before, after, dropped, error, left = support.program(DAEMON.replace("len(sys.argv) > 1", "True"), forked=True).value
        self.assertEqual((mine, before, left), (True, 1, ["trace.json"]))
        self.assertEqual(after + dropped, 20_000)
        self.assertGreater(dropped, 0)
        self.assertIn("the program closed the descriptor of its journal", error)

    def test_2_operator_that_raises(self):
        def work():
            with self.assertRaises(RuntimeError):
                torch.ones(2) + torch.ones(3)
            with record_function("after"):
                torch.ones(4)

        trace = et.record(self.path, work)
        raised = et.the(trace, "aten::add")
        self.assertTrue(et.attr(raised, "error"))
        self.assertEqual(raised["outputs"]["values"], [])
        after = et.the(trace, "after")
        self.assertEqual(after["ctrl_deps"], et.the(trace, et.THREAD)["id"])
        self.assertFalse(et.has_attr(after, "error"))

    def test_2_raises_in_python_below_operators(self):
        @torch.library.custom_op("kpytrace_test::bad", mutates_args=())
        def bad(x: torch.Tensor) -> torch.Tensor:
            torch.sin(x)
            raise KeyError("no")

        def work():
            with self.assertRaises(KeyError):
                torch.ops.kpytrace_test.bad(torch.ones(2))  # from 2.15 on BAD itself goes by no dispatcher
            torch.cos(torch.ones(1))

        trace = et.record(self.path, work)
        self.assertTrue(et.attr(et.the(trace, "kpytrace_test::bad"), "error"))
        self.assertEqual(et.the(trace, "aten::cos")["ctrl_deps"], et.the(trace, et.THREAD)["id"])

    def test_3_stop_inside_an_annotation(self):
        observer = ExecutionTraceObserver().register_callback(self.path)
        observer.start()
        with record_function("open"):
            torch.ones(1)
            observer.stop()
            torch.ones(2)
            observer.start()
            torch.ones(3)
        torch.ones(4)
        observer.unregister_callback()
        trace = et.load(self.path)
        self.assertEqual(sorted(node["inputs"]["values"][0][0]
                                for node in et.named(trace, "aten::ones")), [1, 3, 4])
        self.assertEqual(len(et.named(trace, "open")), 1)

    def test_4_any_name(self):
        names = ['"quoted"', "two\nlines", "back\\slash", "tab\t", "\x01", "ünïcödé 😀", "{}[],:", "%s"]

        def work():
            for name in names:
                with record_function(name), et.annotation(name, name):
                    pass

        trace = et.record(self.path, work)
        self.assertEqual({node["name"] for node in et.operators(trace)}, set(names))
        for name in names:
            self.assertIn([name], [node["inputs"]["values"] for node in et.named(trace, name)])

    def test_5_path_that_fails(self):
        for path in (os.path.join(self.folder, "none", "x.json"), self.folder, ""):
            observer = ExecutionTraceObserver()
            with self.subTest(path), self.assertRaises(OSError):
                observer.register_callback(path)
            self.assertFalse(observer.is_registered)
            observer.start()
            self.assertFalse(observer.is_running())
        self.assertIs(observer.register_callback(self.path), observer)
        self.assertTrue(observer.is_registered)
        observer.unregister_callback()
        et.load(self.path)

    def test_5_several_observers(self):
        observers = [ExecutionTraceObserver().register_callback(f"{self.path}{index}.json")
                     for index in range(4)]
        for count, observer in enumerate(observers):
            observer.start()
            torch.ones(count + 1)
        for count, observer in enumerate(observers):
            observer.stop()
            torch.ones(count + 11)
            observer.unregister_callback()
        for index in range(4):
            trace = et.load(f"{self.path}{index}.json")
            self.assertEqual([node["inputs"]["values"][0][0] for node in et.named(trace, "aten::ones")],
                             [*range(index + 1, 5), *range(11, 11 + index)])

    def test_5_too_many_observers(self):
        observers = [ExecutionTraceObserver().register_callback(f"{self.path}{index}.json")
                     for index in range(9)]
        for observer in observers[:8]:
            observer.start()
        with self.assertRaisesRegex(OSError, "too many"):
            observers[8].start()
        observers[0].stop()
        observers[8].start()
        for observer in observers:
            observer.unregister_callback()

    def test_6_range_of_a_meta_tensor(self):
        def work():
            torch.neg(torch.ones(3, dtype=torch.int64, device="meta"))
            torch.neg(torch.empty(0, dtype=torch.int64))
            torch.neg(torch.tensor([5, -3]))

        with et.environment(SAVE_INTEGRAL_TENSOR_RANGE="1"):
            trace = et.record(self.path, work)
        self.assertEqual([et.attr(node, "tensor_range") for node in et.named(trace, "aten::neg")],
                         ["", "", '{"0":[-3,5]}'])

    def test_6_tensors_that_refuse(self):
        """Each node is in the trace, and later nodes have their parents."""
        parts = [torch.randn(2, 3), torch.randn(4, 3)]
        odd = [torch.eye(2).to_sparse_csr(), torch.nested.nested_tensor(parts, layout=torch.strided)]

        def work():
            for tensor in odd:
                with et.annotation("odd", tensor, 1):
                    torch.ones(2)

        nodes = et.named(et.record(self.path, work), "odd")
        self.assertEqual([node["inputs"]["types"] for node in nodes], [["Tensor(float)", "Int"]] * 2)

    def test_7_data_of_views(self):
        base = torch.arange(24).reshape(4, 6)
        views = [base[2:, 1::2], base.t(), base[1, 2:3].expand(3), base.flip(0), base[::2].to(torch.int8),
                 base.to(torch.uint8)[:, 5]]
        with et.environment(SAVE_INTEGRAL_TENSOR_DATA="aten::neg", SAVE_INTEGRAL_TENSOR_RANGE="1"):
            trace = et.record(self.path, lambda: [torch.neg(view) for view in views])
        nodes = et.named(trace, "aten::neg")
        for node, view in zip(nodes, views, strict=True):
            path = os.path.join(self.folder, "trace_resources", f"nid_{node['id']}_tid_0.dat")
            with open(path, "rb") as file:
                found = array.array({1: "b", 8: "q"}[view.element_size()], file.read())
            self.assertEqual(list(found), view.flatten().tolist())
            self.assertEqual(json.loads(et.attr(node, "tensor_range")),
                             {"0": [int(view.min()), int(view.max())]})

    def test_8_compressed_with_data(self):
        path = self.path + ".gz"
        with et.environment(SAVE_INTEGRAL_TENSOR_DATA="aten::neg"):
            trace = et.record(path, lambda: torch.neg(torch.arange(3)),
                              lambda observer: observer.set_extra_resource_collection(True))
        folder = ExecutionTraceObserver.get_resources_dir_for_et_path(path)
        self.assertEqual(os.listdir(folder), [f"nid_{et.the(trace, 'aten::neg')['id']}_tid_0.dat"])

    def test_9_numbers_read_back(self):
        numbers = [1e-9, 1 / 3, -2.5e-300, 1.7976931348623157e308, 0.1 + 0.2, 1e22, 5e-324]
        trace = et.record(self.path, lambda: [et.annotation("n", value).__enter__() for value in numbers])
        self.assertEqual(sorted(node["inputs"]["values"][0] for node in et.named(trace, "n")),
                         sorted(numbers))

    def test_11_killed(self):
        reply = support.attempt(KILLED.replace("sys.argv[1]", repr(self.path)), forked=True)
        self.assertEqual(reply.returncode, -9, reply.stderr)
        et.check({**json.load(open(self.path)), "finish_ts": 1 << 60})
        recovered = os.path.join(self.folder, "recovered.json")
        ExecutionTraceObserver.recover(self.path + ".journal", recovered)
        self.assertEqual(len(et.named(et.load(recovered), "aten::sin")), 100)

    def test_13_what_is_added(self):
        began = time.time_ns()
        trace = et.record(self.path, lambda: torch.ones(2).sin())
        node = et.the(trace, "aten::sin")
        added = et.own(node)
        self.assertEqual(added["os_tid"], threading.get_native_id())
        self.assertTrue(began <= added["start_ns"] <= time.time_ns())
        self.assertGreater(added["dur_ns"], 0)
        self.assertIn("stack", added)

    def test_13_stacks_of_code_that_dies(self):
        """torch has released the GIL when its operators are recorded, so the death of code is not reported then."""
        def work():
            for index in range(300):
                space = {"torch": torch}
                exec(f"def made_{index:03}():\n    torch.ones({index})", space)
                space.pop(f"made_{index:03}")()

        trace = et.record(self.path, work)
        self.assertEqual([et.stack(trace, node)[0][0] for node in et.named(trace, "aten::ones")],
                         [f"made_{index:03}" for index in range(300)])

    def test_14_threads_while_it_starts_and_stops(self):
        """No thread with the GIL waits for a lock of ours; parents are in the file."""
        ended = threading.Event()

        def work():
            while not ended.is_set():
                with record_function("outer"):
                    (torch.randn(4, requires_grad=True) * 2).sum().backward()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for turn in range(5):
            observer = ExecutionTraceObserver().register_callback(self.path)
            for _ in range(10):
                observer.start()
                time.sleep(0.002)
                observer.stop()
            observer.unregister_callback()
            et.load(self.path)
        ended.set()
        for thread in threads:
            thread.join()

    def test_fork(self):
        self.assertEqual(support.program(FORKED, forked=True).value, [7, 2, 0])

    def test_a_fork_before_the_start_warns_of_nothing(self):
        reply = support.python("-c", FORKED_BEFORE_START, self.path)
        self.assertEqual(reply.stdout.split(), ["True", "7"], reply.stderr)
        self.assertNotIn("may lead to deadlocks", reply.stderr)

    def test_left_running_at_exit(self):
        reply = support.python("-c", AT_EXIT, self.path)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertEqual(len(et.named(et.load(self.path), "aten::ones")), 1)


if __name__ == "__main__":
    unittest.main()
