"""A training step for benchmarks, whose tensors are so small that the time goes to Python and to torch's dispatcher."""
import time

import torch

WIDTH, LAYERS = 48, 24


class Step:
    def __init__(self, device="cpu"):
        nn = torch.nn
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH),
                          nn.Dropout(0.1)) for _ in range(LAYERS)).to(device)
        self.optimizer = torch.optim.Adam(self.layers.parameters(), foreach=False)
        self.data = torch.randn(4, WIDTH, device=device)

    def __call__(self, count):
        """Returns the seconds of a step."""
        began = time.perf_counter()
        for _ in range(count):
            self.optimizer.zero_grad()
            out = self.data
            for layer in self.layers:
                out = out + layer(out)
            out.square().mean().backward()
            self.optimizer.step()
        if self.data.is_cuda:
            torch.cuda.synchronize()
        return (time.perf_counter() - began) / count
