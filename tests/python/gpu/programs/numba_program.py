"""A Numba kernel."""

import numpy

if not hasattr(numpy, "row_stack"):
    numpy.row_stack = numpy.vstack  # gone in newer ones; some of Numba's ask for it
from numba import cuda

import expect

LAUNCHES = 30


@cuda.jit
def numba_double(values):
    place = cuda.grid(1)
    if place < values.size:
        values[place] *= 2


values = cuda.to_device(numpy.ones(1024, dtype=numpy.float32))
for _ in range(LAUNCHES):
    numba_double[4, 256](values)  # LAUNCH
cuda.synchronize()
expect.tell(__file__, {"numba_double": LAUNCHES}, {"LAUNCH": LAUNCHES})
