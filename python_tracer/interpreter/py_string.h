/* py_string.h: Python's strings as UTF-8, read as they lie in memory: no call of Python's, no GIL, nothing
 * allocated with its allocators. Somebody else keeps the string alive. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_PY_STRING_H
#define KPTI_PYTHON_TRACER_INTERPRETER_PY_STRING_H

#include "abi/kpt_base.h"
#include "python_tracer/interpreter/cpython.h"

/* The text; what UTF-8 has no place for, a lone surrogate, is escaped as Python's backslashreplace does.
 * "?" if TEXT is no string, or there is no memory. HOLD receives what is to be freed afterwards. */
kpt_str kpti_py_string_of(PyObject *text, char **hold);
/* How much of FROM fits into ROOM bytes, without a part of a character. */
size_t kpti_py_string_fitting(kpt_str from, size_t room);
/* Copies a string's text, cut to SIZE with its NUL. */
void kpti_py_string_copy(PyObject *text, char *out, size_t size);

#endif
