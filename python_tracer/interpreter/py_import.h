/* py_import.h: imports the Python modules that we use. If a process forks while a thread imports a module
 * for the first time, the child can't import that module: its lock is held by a thread that the child does
 * not have. So os.fork waits until our imports have ended. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_PY_IMPORT_H
#define KPTI_PYTHON_TRACER_INTERPRETER_PY_IMPORT_H

#include "python_tracer/interpreter/cpython.h"

/* Returns a new reference, or NULL with an exception. */
PyObject *kpti_import(const char *name);

/* Runs before a fork. Returns when no other thread imports, or after a second, since an import may wait for
 * the forking thread. */
void kpti_import_wait(void);
/* Runs in the child. */
void kpti_import_forked(void);

#endif
