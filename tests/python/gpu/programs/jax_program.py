"""A function that XLA compiles into one kernel, which another thread may launch."""

import jax
import jax.numpy as jnp

import expect

LAUNCHES = 30


@jax.jit
def jax_double(values):
    return jnp.sin(values) * 2 + 1


values = jnp.ones((256, 256))
jax_double(values).block_until_ready()
for _ in range(LAUNCHES):
    jax_double(values).block_until_ready()  # LAUNCH
expect.tell(__file__, {"fusion": LAUNCHES + 1})
