"""Adds, products and a backward pass, which runs on a thread of torch."""

import torch

import expect

ADDS, STEPS, PRODUCTS = 50, 10, 20

small = torch.ones(1000, device="cuda")
large = torch.ones(4096, 4096, device="cuda")
weights = torch.ones(1000, device="cuda", requires_grad=True)
torch.cuda.synchronize()


def adds():
    for _ in range(ADDS):
        torch.add(small, small)  # ADD


def steps():
    for _ in range(STEPS):
        out = torch.sigmoid(weights)  # SIGMOID
        out.sum().backward()


def products():
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.mm(large, large)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(PRODUCTS):
        torch.mm(large, large)  # PRODUCT
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


adds()
steps()
ms = products()
# A gradient is set once, then added to.
expect.tell(__file__, {"CUDAFunctor_add": ADDS + STEPS - 1, "sigmoid_backward": STEPS},
            {"ADD": ADDS, "SIGMOID": STEPS}, {"PRODUCT": ms})
