"""Four ranks that train together, for `make demo-ranks`; one of them has a slow disk. Each step is a span,
followed by a barrier and a mark, from which `kpytrace merge` aligns the clocks.

    KPYTRACE=ranks.kpt torchrun --nproc_per_node 4 examples/ranks.py
    kpytrace merge ranks.rank*.kpt --align marks -o ranks.json
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import kpytrace

SLOW_RANK = 2


def load(rank, size):
    """Reads a batch from a disk that is slow on one rank."""
    time.sleep(0.02 if rank == SLOW_RANK else 0.002)
    return torch.randn(size, 32), torch.randn(size, 1)


def train(rank, steps):
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i in range(steps):
        with kpytrace.span("step", number=i):
            inputs, wanted = load(rank, 16)
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs), wanted).backward()
            optimizer.step()
        dist.barrier()
        kpytrace.mark("barrier", number=i)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train(int(os.environ["RANK"]), int(sys.argv[1]) if len(sys.argv) > 1 else 10)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
