"""Reads memory snapshots as strictly as their viewer does."""

import bisect
import collections
import math
import pickle
import pickletools

# What the viewer's own unpickler knows.
OPCODES = frozenset("""
    PROTO FRAME MEMOIZE BINPUT LONG_BINPUT BINGET LONG_BINGET SHORT_BINUNICODE BINUNICODE BININT BININT1
    BININT2 LONG1 BINFLOAT NONE NEWTRUE NEWFALSE MARK EMPTY_DICT EMPTY_LIST EMPTY_TUPLE SETITEM SETITEMS
    APPEND APPENDS TUPLE TUPLE1 TUPLE2 TUPLE3 LIST DICT STOP""".split())


class _NoGlobals(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError(f"{module}.{name} is imported")


class Snapshot:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = _NoGlobals(file).load()
            assert not file.read(), "there is something behind it"
        self.path = path
        self.own = self.data["kpytrace"]
        self.entries = [e for trace in self.data["device_traces"] for e in trace]
        self.by_device = [[b for s in self.data["segments"] if s["device"] == device
                           for b in s["blocks"] if b["state"] == "active_allocated"]
                          for device in range(len(self.data["device_traces"]))]
        self.blocks = sum(self.by_device, [])
        self.bytes = sum(block["size"] for block in self.blocks)

    def opcodes(self):
        """Returns the opcodes in the file. Slow: about a second for a megabyte."""
        with open(self.path, "rb") as file:
            return {opcode.name for opcode, _, _ in pickletools.genops(file)}

    def check(self, case):
        """Checks the properties on which the viewer depends."""
        traces = self.data["device_traces"]
        case.assertEqual(len(traces), len(self.own["devices"]))
        for segment in self.data["segments"]:
            case.assertIn(segment["device"], range(len(traces)))
            at = segment["address"]
            for block in segment["blocks"]:
                case.assertEqual(block["address"], at, "blocks tile")
                case.assertGreater(block["size"], 0)
                at += block["size"]
            case.assertEqual(at, segment["address"] + segment["total_size"])
            active = sum(b["size"] for b in segment["blocks"] if b["state"] == "active_allocated")
            case.assertEqual(active, segment["allocated_size"])
            case.assertEqual(active, segment["active_size"])
        for device, trace in enumerate(traces):
            regions = sorted((s["address"], s["address"] + s["total_size"])
                             for s in self.data["segments"] if s["device"] == device)
            for (_, end), (begin, _) in zip(regions, regions[1:]):
                case.assertLess(end, begin)
            begins = [begin for begin, _ in regions]
            times = [entry["time_us"] for entry in trace]
            case.assertEqual(times, sorted(times))
            for entry in trace:
                case.assertIn(entry["action"], ("alloc", "free_completed"))
                at = bisect.bisect(begins, entry["addr"]) - 1
                case.assertTrue(at >= 0 and entry["addr"] + entry["size"] <= regions[at][1], entry)
        return self

    def by_line(self, filename, raw=True):
        """Returns {line: (bytes, blocks)} of the live blocks, by the innermost frame in the file; raw memory too."""
        found = collections.defaultdict(lambda: (0, 0))
        for block in self.blocks if raw else sum(self.by_device[1:], []):
            for frame in block["frames"]:
                if frame["filename"] == filename:
                    size, count = found[frame["line"]]
                    found[frame["line"]] = size + block["size"], count + 1
                    break
        return dict(found)

    def allocated(self, line, filename):
        """Returns the entries of blocks that were allocated at a line."""
        return [e for e in self.entries if e["action"] == "alloc" and e["frames"]
                and e["frames"][0]["line"] == line and e["frames"][0]["filename"] == filename]

    def weight(self, size):
        """Returns the number of blocks that a sampled block represents."""
        mean = self.own["sample_bytes"]
        return 1 / -math.expm1(-size / mean) if mean else 1
