/* loader_fork_lock.h: a lock that fork waits for. The plugin holds it while it uses the dynamic loader.
 *
 * fork in glibc does not reset the lock of the loader's list, and fork in AddressSanitizer does not reset its
 * own lock. Without this lock, a child made while another thread walks that list, or loads a library, would
 * hang at its next load. */
#ifndef KPTI_PLUGIN_PYTHON_LOADER_FORK_LOCK_H
#define KPTI_PLUGIN_PYTHON_LOADER_FORK_LOCK_H

/* Between the two calls the thread must not wait for Python. They do not nest. */
void kpti_fork_wait_begin(void);
void kpti_fork_wait_end(void);

#endif
