/* pymalloc_sampler.h: the hooks of a sampled recording if pymalloc, Python's own allocator, serves the mem
 * and object domains. For most allocations they only subtract the size, and frees do not reach them at all.
 *
 * pymalloc takes blocks of more than 512 bytes from the raw domain, and at a free it knows where a block is
 * from. So a small block that is sampled is allocated as a larger one. Its end is then seen in the raw
 * domain, whose own hooks are always installed and which has few blocks. A block of pymalloc that is made
 * smaller may also stay in the raw domain, and is not counted again there. */
#ifndef KPTI_PYTHON_TRACER_ALLOCATORS_PYMALLOC_SAMPLER_H
#define KPTI_PYTHON_TRACER_ALLOCATORS_PYMALLOC_SAMPLER_H

/* Whether pymalloc serves its domains, and no other hook is in front of it. */
int kpti_sampler_fits(void);
/* The caller holds the GIL. */
void kpti_sampler_install(void);
/* Removes the hooks that are on top; the others stay and pass every call on. The caller holds the GIL. */
void kpti_sampler_remove(void);

#endif
