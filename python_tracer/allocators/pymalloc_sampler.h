/* pymalloc_sampler.h: the hooks of a sampled recording where Python's own allocator, pymalloc, has the mem and
 * object domains: of most allocations they subtract the size, and frees do not come to them at all.
 *
 *   pymalloc takes blocks of more than 512 bytes from the raw domain, and tells at a free where a block is
 *   from. So a small block that is sampled is asked for as a larger one: its end is seen in the raw domain,
 *   whose own hooks are always there, and which has few. A block of pymalloc's that is made smaller may stay
 *   in the raw domain, too, and is not counted again there. */
#ifndef KPTI_PYTHON_TRACER_ALLOCATORS_PYMALLOC_SAMPLER_H
#define KPTI_PYTHON_TRACER_ALLOCATORS_PYMALLOC_SAMPLER_H

/* Whether pymalloc has its domains, and nobody stands before it. */
int kpti_sampler_fits(void);
/* The GIL is held. */
void kpti_sampler_install(void);
/* Takes those away that are on top; others hand everything on. The GIL is held. */
void kpti_sampler_remove(void);

#endif
