/* py_string.h: converts Python strings to UTF-8 by reading their memory. It calls no Python function, needs
 * no GIL, and allocates nothing with Python's allocators. The caller keeps the string alive. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_PY_STRING_H
#define KPTI_PYTHON_TRACER_INTERPRETER_PY_STRING_H

#include "abi/kpt_base.h"
#include "python_tracer/interpreter/cpython.h"

/* Returns the text. A lone surrogate, which UTF-8 can't encode, is escaped as by Python's backslashreplace.
 * Returns "?" if TEXT is no string, or there is no memory. *HOLD receives the memory that the caller must
 * free. */
kpt_str kpti_py_string_of(PyObject *text, char **hold);
/* Returns how many bytes of FROM fit into CAPACITY bytes without cutting a character. */
size_t kpti_py_string_fitting(kpt_str from, size_t capacity);
/* Copies a string's text, truncated to SIZE bytes including the NUL. */
void kpti_py_string_copy(PyObject *text, char *out, size_t size);

#endif
