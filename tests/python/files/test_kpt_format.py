"""The format of .kpt files, as docs/kpt.md has it: files that earlier versions wrote stay readable, and what is newer is
skipped or refused, by name."""

import collections
import json
import os
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import READERS, Case, read_perfetto, run_python

# Never edited; a change of the format adds files.
GOLDEN = pathlib.Path(__file__).parent / "golden"


def kpytrace_command(*words):
    return run_python("-m", "kpytrace", *map(str, words))


def checksum(total, data):
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at:at + 8], "little")
        total = (total ^ word) * 0x9E3779B97F4A7C15 % 2**64
        if at + 8 <= len(data):
            total ^= total >> 29
    return total


def record(kind, data):
    head = struct.pack("=IIQ", 0x7274706B, kind, len(data))
    return head + struct.pack("=Q", checksum(checksum(0, head), data)) + data + bytes(-len(data) % 8)


def records(data):
    """Yields the kind and the bytes of each record, and checks its sum."""
    at = 64
    while at < len(data):
        guard, kind, size, total = struct.unpack_from("=IIQQ", data, at)
        body = data[at + 24:at + 24 + size]
        assert guard == 0x7274706B and total == checksum(checksum(0, data[at:at + 16]), body)
        yield kind, body
        at += 24 + size + -size % 8


def number(data, at):
    """Returns a number of docs/kpt.md, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def unpack(data):
    """Returns the words of a packed chunk, as docs/kpt.md describes it."""
    count, size, shift, _ = struct.unpack_from("=IIII", data)
    sizes, at = data[16:], 16 + (count + 3) // 4
    uppers, end = [], at + size
    while at < end:
        literals, repeated, at = data[at] >> 4, data[at] & 15, at + 1
        if literals == 15:
            more, at = number(data, at)
            literals += more
        for _ in range(literals):
            upper, at = number(data, at)
            uppers.append(upper)
        if at == end:
            break
        distance, at = number(data, at)
        if repeated == 15:
            more, at = number(data, at)
            repeated += more
        for _ in range(repeated + 4):
            uppers.append(uppers[-distance])
    assert len(uppers) == count
    words, last = [], dict.fromkeys(range(16), 0)
    for i, upper in enumerate(uppers):
        width = (sizes[i // 4] >> 2 * (i % 4) & 3) + 1
        difference, at = int.from_bytes(data[at:at + width], "little"), at + width
        kind = upper % 16 if upper % 16 in (12, 13, 15) else 0
        last[kind] = (last[kind] + (difference if kind else difference << shift)) % 2**32
        words.append(upper << 32 | last[kind])
    assert at == len(data)
    return words


class Golden(Case):
    def command(self, *words):
        reply = kpytrace_command(*words)
        self.assertEqual((reply.returncode, reply.stderr), (0, ""))
        return reply.stdout

    def events(self, name):
        path = self.folder / "out.json"
        self.command("convert", "-q", GOLDEN / name, path)
        return json.loads(path.read_text())["traceEvents"]

    def calls(self, name):
        lines = self.command("top", "-q", "-n", "0", GOLDEN / name).splitlines()[1:]
        return {line.split("  ")[-1]: int(line.split()[0].replace(",", "")) for line in lines}

    def test_calls_notes_tasks_and_threads(self):
        self.assertEqual(self.calls("calls.kpt"), {
            "/program.py(14): main": 1, "/program.py(6): tree": 42, "/program.py(4): leaf": 42,
            "/program.py(11): wait": 2, "<built-in function len>": 41})
        events = self.events("calls.kpt")
        notes = {(e["ph"], e["name"]) for e in events if e.get("cat") == "user_annotation"}
        self.assertLessEqual({("i", "begin"), ("X", "work"), ("C", "queue")}, notes)
        threads = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.assertLessEqual({"MainThread", "worker"}, threads)
        info = self.command("info", "-q", GOLDEN / "calls.kpt")
        self.assertIn("whole", info)
        self.assertIn("command:      program.py\n", info)

    def test_operators(self):
        rows = json.loads(self.command("top", "-q", "--ops", "--json", "--callers", "-n", "0", GOLDEN / "operators.kpt"))
        found = {(row["name"], row["caller"]): (row["kind"], row["calls"]) for row in rows}
        self.assertEqual(found["aten::mul", "/program.py(3): forward"], ("operator", 3))
        self.assertEqual(found["MulBackward0", "backward of /program.py(3): forward"], ("operator", 3))
        self.assertEqual(found["step 2", "/program.py(5): main"], ("annotation", 1))
        arrows = [e for e in self.events("operators.kpt") if e.get("cat") == "fwdbwd"]
        self.assertEqual(len(arrows), 12)

    def test_inputs_of_operators(self):
        found = [e["args"] for e in self.events("inputs.kpt") if e["name"] == "aten::addmm"]
        self.assertEqual(len(found), 3)
        for args in found:
            self.assertEqual(args["Input Dims"], [[3], [3, 3], [3, 3], [], []])
            self.assertEqual(args["Input Strides"], [[1], [3, 1], [3, 1], [], []])
            self.assertEqual(args["Input type"], ["float", "float", "float", "Scalar", "Scalar"])
            self.assertEqual(args["Concrete Inputs"], ["", "", "", "1", "0.5"])

    def test_inputs_of_ranges(self):
        found = [(e["name"], e["args"]) for e in self.events("range_inputs.kpt") if e.get("cat") in ("cpu_op", "user_annotation")]
        self.assertEqual([args["Input Dims"] for name, args in found if name == "forward"], 12 * [[[]]])
        kernels = [args for name, args in found if name == "kernel"]
        self.assertEqual([args["Concrete Inputs"] for args in kernels], [["", str(i)] for i in range(12)])
        self.assertEqual([(args["grid"], args["stream"], args["names"]) for args in kernels],
                         [("grid(1, 2)", i, ["a", "b"]) for i in range(12)])
        self.assertFalse(any("Input Dims" in args for name, args in found if name == "step"))

    @unittest.skipUnless(os.path.exists(READERS), "there are no readers")
    def test_operators_in_perfetto(self):
        path = self.folder / "out.pftrace"
        self.command("convert", "-q", GOLDEN / "operators.kpt", path)
        slices = read_perfetto(path)["slices"]
        self.assertEqual(sorted(name for kind, name, *_ in slices if kind == "user_annotation"),
                         ["step 0", "step 1", "step 2"])
        flows = collections.defaultdict(list)
        for kind, name, numbers, notes, *_ in slices:
            for number in numbers:
                flows[number].append((kind, name, notes["Sequence number"], notes.get("forward at")))
        self.assertEqual(len(flows), 6)
        for (kind, name, sequence, line), (_, node, sequence_of_node, forward) in flows.values():
            self.assertEqual((kind, line, sequence), ("cpu_op", None, sequence_of_node))
            self.assertRegex(node, "Backward0$")
            self.assertEqual(forward, "/program.py(3): forward")

    def test_gpu(self):
        report = json.loads(self.command("top", "-q", "--gpu", "--json", GOLDEN / "gpu.kpt"))
        self.assertEqual([(row["name"], row["count"], row["total_ns"]) for row in report["kernels"]],
                         [("golden_kernel", 5, 5000)])
        self.assertEqual(report["lines"][0]["line"], "/program.py:2 main")

    def test_packed_chunks_are_as_the_document_describes_them(self):
        for name in ("calls", "operators", "inputs", "range_inputs"):
            chunks = []
            for file in (GOLDEN / f"{name}.kpt", GOLDEN / f"packed_{name}.kpt"):
                bodies = [body for kind, body in records(file.read_bytes()) if kind == 1]
                chunks.append([(int.from_bytes(body[:4], "little"), body) for body in bodies
                               if body[4:8] != b"\xff\xff\xff\xff"])
            self.assertEqual(len(chunks[0]), len(chunks[1]))
            for (one, plain), (two, packed) in zip(*chunks):
                self.assertEqual((one | 4, plain[4:48]), (two, packed[4:48]))
                self.assertEqual(list(struct.unpack(f"={len(plain) // 8 - 6}Q", plain[48:])), unpack(packed[48:]))

    def test_every_format_can_be_made_of_them(self):
        for file in sorted(GOLDEN.glob("*.kpt")):
            of_memory, of_calls = ("pickle", "json", "pftrace", "tables.json"), ("pftrace", "html", "speedscope.json", "collapsed",
                                                                                 "kpt")
            suffixes = {"memory": of_memory, "calls_and_memory": of_memory[::3] + of_calls[1:]}.get(file.stem, of_calls)
            for suffix in suffixes:
                self.command("convert", "-q", file, self.folder / f"out.{suffix}")
            for part in ("calls", "memory") if file.stem == "calls_and_memory" else ():
                for suffix in of_memory[1:3]:
                    self.command("convert", "-q", "--part", part, file, self.folder / f"out.{suffix}")

    def test_the_document_describes_them(self):
        kinds, formats = set(), set()
        for file in GOLDEN.glob("*.kpt"):
            data = file.read_bytes()
            self.assertEqual(data[:8], b"kpytrace")
            self.assertEqual(checksum(0, data[:56]), int.from_bytes(data[56:64], "little"))
            found = list(records(data))
            kinds |= {kind for kind, _ in found}
            self.assertEqual(found[-1][0], 4)
            formats |= {int.from_bytes(body[:4], "little") for kind, body in found if kind == 1}
        self.assertEqual(kinds, {1, 2, 3, 4, 5, 6})
        self.assertEqual(formats, {0, 1, 2, 3, 4, 5, 6, 7})


class Newer(Case):
    def setUp(self):
        super().setUp()
        self.kpt = self.folder / "t.kpt"
        self.data = (GOLDEN / "calls.kpt").read_bytes()

    def info(self, data):
        self.kpt.write_bytes(data)
        return kpytrace_command("info", self.kpt)

    def test_records_of_an_unknown_kind_are_skipped_and_named(self):
        known = self.info(self.data).stdout
        reply = self.info(self.data[:64] + record(77, b"from the future") + record(77, b"") + self.data[64:])
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertIn("has 2 records that this kpytrace does not know (kind 77): skipped", reply.stderr)
        for line in known.splitlines():
            if not line.startswith(("file:", "tracing cost:")):
                self.assertIn(line, reply.stdout)

    def test_merge_names_them_too(self):
        self.kpt.write_bytes(self.data[:64] + record(77, b"from the future") + self.data[64:])
        reply = kpytrace_command("merge", self.kpt, "-o", self.path)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertIn("has 1 record that this kpytrace does not know (kind 77): skipped", reply.stderr)

    def test_a_newer_version_is_refused(self):
        head = bytearray(self.data[:56])
        head[8] = 2
        reply = self.info(bytes(head) + struct.pack("=Q", checksum(0, head)) + self.data[64:])
        self.assertEqual((reply.returncode, reply.stdout), (1, ""))
        self.assertIn("newer version than this kpytrace reads", reply.stderr)

    def test_a_newer_format_of_chunks_is_refused(self):
        for newer in (8, 12):  # 12: a packed one
            made = bytearray(self.data[:64])
            for kind, body in records(self.data):
                made += record(kind, struct.pack("=I", newer) + body[4:] if kind == 1 else body)
            reply = self.info(bytes(made))
            self.assertEqual((reply.returncode, reply.stdout), (1, ""))
            self.assertIn("the recording has format 8, but this version of kpytrace reads formats up to 3", reply.stderr)


if __name__ == "__main__":
    unittest.main()
