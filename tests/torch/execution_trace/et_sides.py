"""Compares the traces of torch's observer and kpytrace's of the same run, node by node and field by field."""

import json
import os
import unittest

import et
import torch
from kpytrace.torch import ExecutionTraceObserver


def both(work):
    """Returns the traces of WORK by torch's observer and by kpytrace's."""
    with et.folder() as folder:
        paths = [os.path.join(folder, name) for name in ("torch.json", "kpytrace.json")]
        observers = [kind().register_callback(path) for kind, path in
                     zip((torch.profiler.ExecutionTraceObserver, ExecutionTraceObserver), paths)]
        for observer in observers:
            observer.start()
        try:
            work()
        finally:
            for observer in observers:
                observer.stop()
                observer.unregister_callback()
        with open(paths[0]) as file:
            return json.load(file), et.load(paths[1])


class Tree:
    """A trace's nodes by keys that both sides have."""

    def __init__(self, trace):
        self.nodes = trace["nodes"]
        self.by_id = {node["id"]: node for node in self.nodes}

    def key(self, number):
        """Returns the key of the node NUMBER. Nodes of threads and the root have no rf_id."""
        node = self.by_id.get(number)
        if node is None:
            return None
        return node["name"], et.attr(node, "rf_id"), et.attr(node, "tid")

    def of_thread(self):
        found = {}
        for node in self.nodes:
            found.setdefault(et.attr(node, "tid"), []).append(node)
        return found


class SideBySide(unittest.TestCase):
    """Has no tests of its own."""

    def same(self, work):
        theirs, ours = (Tree(trace) for trace in both(work))
        self.ids = {"tensor": {}, "storage": {}}
        threads = theirs.of_thread()
        self.assertEqual(set(threads), set(ours.of_thread()))
        for tid, mine in ours.of_thread().items():
            # A thread's own node is written as it begins by one, and before its first child by the other.
            pair = [[node for node in nodes if node["name"] not in (et.ROOT, et.THREAD)]
                    for nodes in (threads[tid], mine)]
            self.assertEqual([et.attr(node, "rf_id") for node in pair[0]],
                             [et.attr(node, "rf_id") for node in pair[1]])
            for their_node, our_node in zip(*pair):
                self.same_node(theirs, their_node, ours, our_node)
        return ours

    def same_node(self, theirs, their_node, ours, our_node):
        where = our_node["name"], et.attr(our_node, "rf_id")
        self.assertEqual(their_node["name"], our_node["name"])
        self.assertEqual(theirs.key(their_node["ctrl_deps"]), ours.key(our_node["ctrl_deps"]), where)
        for side in ("inputs", "outputs"):
            for part in ("shapes", "types", "strides"):
                self.assertEqual(their_node[side][part], our_node[side][part], where)
            self.assertEqual(len(their_node[side]["values"]), len(our_node[side]["values"]), where)
            for parts in zip(their_node[side]["values"], our_node[side]["values"],
                             our_node[side]["types"]):
                self.same_value(*parts, where)
        for row in their_node["attrs"]:
            if row["name"] == "fw_parent":
                self.assertEqual(theirs.key(row["value"]), ours.key(et.attr(our_node, "fw_parent")))
            else:
                self.assertIn(row, our_node["attrs"], where)

    def same_value(self, theirs, ours, kind, where):
        if kind.startswith("Tensor("):
            self.assertEqual(theirs[2:], ours[2:], where)
            # torch gives an id again after a tensor's end, kpytrace does not: so one of ours is one of theirs.
            # A storage that is still empty has another id in torch's when it has grown.
            for name, mine, other in zip(("tensor", "storage"), ours, theirs):
                if name == "tensor" or ours[3]:
                    self.assertEqual(self.ids[name].setdefault(mine, other), other, (where, name))
        elif kind.startswith(("GenericList[", "Tuple[")):
            self.assertEqual(len(theirs), len(ours), where)
            for parts in zip(theirs, ours, et._split(kind[kind.index("[") + 1:-1])):
                self.same_value(*parts, where)
        elif kind == "Double" and type(ours) is float:
            self.assertEqual(theirs, float(f"{ours:.6f}"), where)  # torch has six decimals
        else:
            self.assertEqual((type(theirs), theirs), (type(ours), ours), where)
