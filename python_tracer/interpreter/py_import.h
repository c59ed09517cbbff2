/* py_import.h: Python's modules that we use. What a thread imports for the first time can't be imported in the child of a
 * fork by another one: its lock is held there, by nobody. So os.fork waits until we have imported. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_PY_IMPORT_H
#define KPTI_PYTHON_TRACER_INTERPRETER_PY_IMPORT_H

#include "python_tracer/interpreter/cpython.h"

/* A new reference; NULL with an exception. */
PyObject *kpti_import(const char *name);

/* Before a fork: returns when no other thread imports, or after a second: an import may wait for the forking thread. */
void kpti_import_wait(void);
/* In the child. */
void kpti_import_forked(void);

#endif
