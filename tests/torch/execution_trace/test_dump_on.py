"""A flight recorder that writes itself on all ranks when one of them has a slow step or an uncaught exception, or
hangs."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest

RANKS, ODD = (4, 2) if os.environ.get("KPYTRACE_TEST_LONG") else (2, 1)
SLOW, RAISES, HANGS = 12, 220, 440  # the steps; between them are more than the 5 s that dumps are apart
CAUSES = (rf"step {SLOW} took", "uncaught ValueError", "nothing has happened")

PROGRAM = """
import os, sys, threading, time, torch, torch.distributed as dist, kpytrace
rank, folder = int(os.environ["RANK"]), sys.argv[1]
torch.set_num_threads(1)
dist.init_process_group("gloo")
net = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

def slow_part():
    time.sleep(0.6)

def stuck():
    time.sleep(600)

def step(number):
    optimizer.zero_grad()
    net(torch.ones(8, 64)).sum().backward()
    if rank == {odd} and number == {slow}:
        slow_part()
    if rank == {odd} and number == {raises}:
        thread = threading.Thread(target=int, args=("no number",))
        thread.start()
        thread.join()
    if rank == {odd} and number == {hangs}:
        stuck()
    for parameter in net.parameters() if number > 6 * {slow} else ():  # before, only one rank is slow
        dist.all_reduce(parameter.grad)
    time.sleep(0.03)
    optimizer.step()

step(0)  # before the ranks are compared
trace = kpytrace.start(os.path.join(folder, f"rank{{rank}}.kpt"), ring="30s", torch=True, dump_on="step>8x,hang=3s",
                       dumps_per_hour=20)
dist.barrier()
for number in range(1, {hangs} + 1):
    step(number)
""".format(odd=ODD, slow=SLOW, raises=RAISES, hangs=HANGS)


# A program that destroys its process group, and makes another one at the same address.
TWICE = """
import socket, sys, time, torch, torch.distributed as dist, kpytrace
address = "tcp://127.0.0.1:" + sys.argv[1]
trace = kpytrace.start(sys.argv[2], ring="5s", dump_on="hang=60s")
for number in range(2):
    dist.init_process_group("gloo", init_method=address, rank=0, world_size=1)
    time.sleep(0.8)  # the channel connects
    store = dist.distributed_c10d._get_default_store()
    print(store.check(["left behind"]))
    store.set("left behind", "1")
    del store
    dist.destroy_process_group()
    with socket.socket() as found:
        print(found.connect_ex(("127.0.0.1", int(sys.argv[1]))) != 0)
trace.stop()
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Runs the ranks until each has a dump for the slow step, one for the exception and one for the hang."""
        import kpytrace.torch._shim

        kpytrace.torch._shim.load()  # four ranks would wait for one compiler
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder, port, processes = pathlib.Path(folder.name), str(free_port()), []
        for rank in range(RANKS):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1",
                               MASTER_PORT=port, GLOO_SOCKET_IFNAME="lo")
            processes.append(subprocess.Popen([sys.executable, "-W", "ignore", "-c", PROGRAM, cls.folder],
                                              env=environment))
            cls.addClassCleanup(processes[-1].wait)
            cls.addClassCleanup(processes[-1].kill)
        cls.reasons = {}  # by file
        for _ in range(600):
            for file in set(cls.folder.glob("rank?.*.kpt")) - set(cls.reasons):
                reason = cls.read_reason(file)
                if reason:
                    cls.reasons[file] = reason
            if all(len(cls.ranks_with(cause)) == RANKS for cause in CAUSES):
                break
            time.sleep(0.3)
        else:
            raise AssertionError(f"dumps: {cls.reasons}, {os.listdir(cls.folder)}, {[p.poll() for p in processes]}")
        time.sleep(6)  # one cause, one dump
        cls.slow, cls.raised, cls.hang = (cls.ranks_with(cause) for cause in CAUSES)

    @staticmethod
    def read_reason(file):
        """Returns why the file was written, or None if it is not complete."""
        reply = subprocess.run([sys.executable, "-m", "kpytrace", "info", "-q", file], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        found = re.search(r"^dump: +(.*)$", reply.stdout, re.M)
        if reply.returncode or not found or f"rank:         {file.name[4]}\n" not in reply.stdout:
            return None
        return found.group(1)

    @classmethod
    def ranks_with(cls, cause):
        """Returns the files of this cause, by rank. A busy machine may have more slow steps than the one that is."""
        return sorted(file for file, reason in cls.reasons.items() if re.search(cause, reason))

    def reason(self, file):
        return self.reasons[file]

    def events(self, file):
        path = file.with_suffix(".json")
        subprocess.run([sys.executable, "-m", "kpytrace", "convert", "-q", file, path], check=True)
        with open(path, encoding="utf-8") as opened:
            return [e for e in json.load(opened)["traceEvents"] if e["ph"] == "X"]

    def test_a_slow_step(self):
        """The other ranks wait for nobody in this step, and are asked by the slow one."""
        for rank, file in enumerate(self.slow):
            asked = "" if rank == ODD else f"rank {ODD}: "
            self.assertRegex(self.reason(file), rf"^{asked}step {SLOW} took \d+\.\d ms, .* times the median")
            slow = [e["dur"] for e in self.events(file) if "slow_part" in e["name"]]
            self.assertEqual(len(slow), rank == ODD)
            self.assertTrue(all(us > 500e3 for us in slow), slow)

    def test_an_exception(self):
        for rank, file in enumerate(self.raised):
            asked = "" if rank == ODD else f"rank {ODD}: "
            self.assertEqual(self.reason(file), f"{asked}an uncaught ValueError")

    def test_a_hang(self):
        for rank, file in enumerate(self.hang):
            self.assertRegex(self.reason(file), r"^(rank [0-3]: )?nothing has happened for \d+\.\d s")
            open_calls = [e["name"] for e in self.events(file) if e["args"].get("ended by stop")]
            inside = "stuck" if rank == ODD else "all_reduce"
            self.assertTrue(any(inside in name for name in open_calls), (rank, open_calls))

    def test_one_cause_has_one_dump(self):
        files = set(self.folder.glob("rank?.*.kpt"))
        self.assertEqual(files, set(self.reasons))
        for cause in CAUSES:
            self.assertEqual([file.name[:5] for file in self.ranks_with(cause)],
                             [f"rank{rank}" for rank in range(RANKS)], cause)


class Groups(unittest.TestCase):
    def test_a_destroyed_group_is_gone(self):
        """Its store, too: the next group at the same address must not see the keys of the first."""
        with tempfile.TemporaryDirectory() as folder:
            reply = subprocess.run([sys.executable, "-W", "ignore", "-c", TWICE, str(free_port()), folder + "/out.kpt"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual((reply.returncode, reply.stdout.split()), (0, ["False", "True"] * 2), reply.stderr)


if __name__ == "__main__":
    unittest.main()
