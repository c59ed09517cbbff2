"""Makes files of ranks that did not run: copies of one recording, with changed headers, infos and checksums."""

import os
import pathlib
import struct
import sys

from support import run_python

HEAD, RECORD = struct.Struct("=8sIIQq3QQ"), struct.Struct("=IIQQ")
_SIZE = """
import sys
from kpytrace._cli.commands import main
assert main(["merge", "-q", "-o", sys.argv[1], *sys.argv[2:]]) == 0
print(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])  # of this program, not of its parent
"""
FACTOR, MAX = 0x9e3779b97f4a7c15, 2**64 - 1


def checksum(data, total=0):
    """Computes kpti_kpt_sum of short data."""
    for i in range(0, len(data) - 7, 8):
        total = (total ^ int.from_bytes(data[i:i + 8], "little")) * FACTOR & MAX
        total ^= total >> 29
    rest = data[len(data) & ~7:]
    if rest:
        word = bytearray(len(rest).to_bytes(8, "little"))
        word[:len(rest)] = rest
        total = (total ^ int.from_bytes(word, "little")) * FACTOR & MAX
    return total


def make_rank(source, target, rank, world_size, pid=None, host="host"):
    """Makes a copy whose info has the rank `rank`."""
    data = pathlib.Path(source).read_bytes()
    fields = list(HEAD.unpack(data[:HEAD.size]))
    fields[3] = pid or 1000 + rank
    head = HEAD.pack(*fields)
    head = head[:-8] + checksum(head[:-8]).to_bytes(8, "little")
    made, at = [head], HEAD.size
    while at + RECORD.size <= len(data):
        guard, kind, size, _ = RECORD.unpack(data[at:at + RECORD.size])
        end = at + RECORD.size + size + (-size & 7)
        if kind == 2:
            made.append(info_record(guard, data[at + RECORD.size:at + RECORD.size + size], rank, world_size, host))
        else:
            made.append(data[at:end])
        at = end
    pathlib.Path(target).write_bytes(b"".join(made))


def info_record(guard, text, rank, world_size, host):
    keys = ("rank", "local_rank", "world_size", "host")
    lines = [line for line in text.decode().splitlines() if line.partition("=")[0] not in keys]
    lines += [f"rank={rank}", f"local_rank={rank % 8}", f"world_size={world_size}", f"host={host}{rank // 8}"]
    body = ("\n".join(lines) + "\n").encode()
    head = struct.pack("=IIQ", guard, 2, len(body))
    total = checksum(body, checksum(head))
    return head + total.to_bytes(8, "little") + body + bytes(-len(body) & 7)


def memory_of_merging(paths, output):
    """Returns the peak memory of `kpytrace merge`, in kB."""
    reply = run_python("-c", _SIZE, str(output), *map(str, paths), cwd=pathlib.Path(output).parent)
    assert reply.returncode == 0, reply.stderr
    return int(reply.stdout)


def check_memory_of_merging(case, paths, few):
    """Checks that merging all files needs no more memory than merging FEW of them, except for their paths."""
    size = {}
    for suffix in (".json", ".pftrace"):
        for count in (few, len(paths)):
            size[suffix, count] = memory_of_merging(paths[:count], case.folder / f"x{suffix}")
        if "LD_PRELOAD" not in os.environ:
            case.assertLess(size[suffix, len(paths)], size[suffix, few] + 3000, size)
    print(size, file=sys.stderr)
