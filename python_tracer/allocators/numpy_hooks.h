/* numpy_hooks.h: our place in front of numpy's allocator of arrays' data. It has one of its own, a table of
 * functions that arrays point to (since 1.22): ours take their place there, so that arrays of every thread
 * come to them, also those that were made before and those that are freed later.
 *
 *   each function is exchanged by itself; ours hand on to who was there before, whether anybody records or
 *   not, so that any mixture of old and new ones is right */
#ifndef KPTI_PYTHON_TRACER_ALLOCATORS_NUMPY_HOOKS_H
#define KPTI_PYTHON_TRACER_ALLOCATORS_NUMPY_HOOKS_H

/* Puts them there, where numpy is imported and they are not. The GIL is held. */
void kpti_numpy_hooks_install(void);
/* Takes those away that are still on top; others hand everything on. Any thread. */
void kpti_numpy_hooks_remove(void);

#endif
