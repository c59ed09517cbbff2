"""One of two processes that train together, on gloo. Run as

    ranks.py FOLDER RANK

with torch's own tracer first and then with kpytrace in each mode; each writes its trace and the
resulting weights to FOLDER."""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import torch
import torch.distributed as dist
import traced
from programs import Net, train
from torch.nn.parallel import DistributedDataParallel

RANKS = 2


def average(_, bucket):
    """Averages gradients. The function that follows the exchange runs on a thread of gloo if the exchange takes
    longer than the call."""
    def received(future):
        return future.value()[0]
    buffer = bucket.buffer().div_(RANKS)
    return dist.all_reduce(buffer, async_op=True).get_future().then(received)


def work(net, optimizer, x):
    for _ in range(3):
        train(net, optimizer, x)
    # torch's annotation of the exchange ends on gloo's thread, a little after we may go on. If the profiler
    # has ended by then torch writes into freed memory, also without a Python tracer.
    time.sleep(0.1)


def main():
    folder, rank = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                            world_size=RANKS)
    for kind in ("stock", "all", "full", "fast"):
        torch.manual_seed(0)
        net = DistributedDataParallel(Net())
        net.register_comm_hook(None, average)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x = torch.full((2, 3), rank + 1.0)
        train(net, optimizer, x)
        train(net, optimizer, x)  # its buckets are as they stay from the second on
        if kind != "stock":
            import kpytrace.torch
            kpytrace.torch.install(kind)
        prof = traced.run(lambda: work(net, optimizer, x))
        prof.export_chrome_trace(f"{folder}/{kind}.{rank}.json")
        with open(f"{folder}/{kind}.{rank}.weights", "w") as file:
            json.dump([weight.tolist() for weight in net.parameters()], file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
