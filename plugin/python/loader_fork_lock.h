/* A lock that fork waits for: what is done with the dynamic loader is done under it.
 *
 * glibc's fork leaves the lock of the loader's list as it is, and AddressSanitizer's its own: a child
 * made while another thread walks that list, or loads a library, would hang at its next load. */
#ifndef KPTI_PLUGIN_PYTHON_LOADER_FORK_LOCK_H
#define KPTI_PLUGIN_PYTHON_LOADER_FORK_LOCK_H

/* Between the two, nothing may be called that waits for Python. They do not nest. */
void kpti_fork_wait_begin(void);
void kpti_fork_wait_end(void);

#endif
