"""Processes of torch: the workers of a DataLoader are recorded, and each rank that torchrun starts has a file."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import support

ROOT = pathlib.Path(__file__).resolve().parents[3]
RANKS = 4 if os.environ.get("KPYTRACE_TEST_LONG") else 3  # rank 2 of examples/ranks.py is slow

LOADER = """
    import torch
    from torch.utils.data import DataLoader, Dataset
    class Squares(Dataset):
        def __len__(self):
            return 16
        def __getitem__(self, i):
            return torch.tensor(i * i)
    if __name__ == "__main__":
        for method in ("fork", "spawn"):
            loader = DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context=method)
            assert sum(int(batch.sum()) for batch in loader) == sum(i * i for i in range(16))
    """


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def kpytrace(self, *words):
        reply = subprocess.run([sys.executable, "-W", "ignore", "-m", "kpytrace", *map(str, words)], text=True,
                               env=support.environment(GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1"),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder, timeout=500)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return reply

    def by_process(self, path, function):
        """Returns the number of its calls in each process."""
        events = json.loads(path.read_text())["traceEvents"]
        names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        found = collections.Counter(names[e["pid"]] for e in events
                                    if e["ph"] == "X" and re.search(rf"(loader|ranks)\.py\(\d+\): {function}$", e["name"]))
        return len(names), found

    def test_the_workers_of_a_loader(self):
        (self.folder / "loader.py").write_text(textwrap.dedent(LOADER))
        self.kpytrace("run", "--children", "--no-c-calls", "--exclude", "glob:*/torch/*,importlib", "-o", "out.json",
                      "loader.py")
        processes, found = self.by_process(self.folder / "out.json", "__getitem__")
        self.assertEqual(sum(found.values()), 32, found)
        self.assertEqual((processes, len(found)), (5, 4), found)
        self.assertFalse(any(name.startswith("python") for name in found), found)

    def test_ranks(self):
        """One rank is slow, as the table (docs/ranks.md) and the trace show."""
        self.kpytrace("run", "-q", "-o", "r.kpt", "--include", f"{ROOT}/examples/", "--no-c-calls", "-m",
                      "torch.distributed.run", "--standalone", "--nproc_per_node", str(RANKS), ROOT / "examples" / "ranks.py",
                      "6")
        paths = sorted(self.folder.glob("r*.kpt"))
        self.assertEqual([path.name for path in paths], [f"r.rank{rank}.kpt" for rank in range(RANKS)])
        reply = self.kpytrace("merge", *paths, "--align", "marks", "-o", "all.json")
        self.assertEqual(reply.stdout.count(" ppm "), RANKS, reply.stdout)
        processes, found = self.by_process(self.folder / "all.json", "load")
        self.assertEqual((processes, found), (RANKS, {f"rank {rank}": 6 for rank in range(RANKS)}))
        events = json.loads((self.folder / "all.json").read_text())["traceEvents"]
        spent = collections.Counter()
        for event in events:
            if event["ph"] == "X" and event["name"].endswith(": load"):
                spent[event["pid"]] += event["dur"]
        names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        self.assertEqual(names[spent.most_common(1)[0][0]], "rank 2", spent)
        self.assertEqual(sum(e["ph"] == "i" and e["name"] == "barrier" for e in events), 6 * RANKS)


if __name__ == "__main__":
    unittest.main()
