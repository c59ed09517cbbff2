"""A Triton kernel, which is launched through the driver."""

import torch
import triton
import triton.language as tl

import expect

LAUNCHES = 30


@triton.jit
def triton_double(source, target, size, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < size
    tl.store(target + place, tl.load(source + place, mask=mask) * 2, mask=mask)


source = torch.ones(4096, device="cuda")
target = torch.empty_like(source)
for _ in range(LAUNCHES):
    triton_double[(4,)](source, target, 4096, BLOCK=1024)  # LAUNCH
torch.cuda.synchronize()
assert target.sum().item() == 8192
expect.tell(__file__, {"triton_double": LAUNCHES}, {"LAUNCH": LAUNCHES})
