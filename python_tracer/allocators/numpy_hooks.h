/* numpy_hooks.h: our hooks in front of numpy's allocator of array data. numpy has its own allocator (since
 * 1.22), a table of functions that arrays point to. Our functions replace those in the table, so that they
 * are called for the arrays of every thread, also for arrays that were made before or are freed later.
 *
 * Each function is exchanged by itself. Our functions call the previous ones, whether a tracer records or
 * not, so any mixture of old and new functions is valid. */
#ifndef KPTI_PYTHON_TRACER_ALLOCATORS_NUMPY_HOOKS_H
#define KPTI_PYTHON_TRACER_ALLOCATORS_NUMPY_HOOKS_H

/* Installs the hooks if numpy is imported and they are not installed. The caller holds the GIL. */
void kpti_numpy_hooks_install(void);
/* Removes the hooks if all of them are still on top; otherwise they stay and pass every call on. Any
 * thread. */
void kpti_numpy_hooks_remove(void);

#endif
