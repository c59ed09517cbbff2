/* function_naming.h: from Python's objects to function ids, at first sight: the cold end of the caches. All of it
 * needs the GIL or a thread state, and leaves a pending exception alone. */
#ifndef KPTI_PYTHON_TRACER_FRAMES_FUNCTION_NAMING_H
#define KPTI_PYTHON_TRACER_FRAMES_FUNCTION_NAMING_H

#include "core/callstacks/function_table.h"
#include "python_tracer/interpreter/cpython.h"

/* Prepares the slot in code objects; 0 and no exception where there is none. Then ids are found by
 * content each time, which is right, but slower. */
int kpti_name_prepare(void);
/* The slot was another interpreter's, which has ended. */
void kpti_name_forget(void);

/* The id of a code object's function. */
uint32_t kpti_name_code(PyCodeObject *code);
/* The same by its content: the slot is not touched, and no GIL needed; slower. */
uint32_t kpti_name_code_anew(PyCodeObject *code);
/* Whether its slots are filled: its death is reported (dead_code.h), and it may be cached till then. */
int kpti_name_is_kept(PyCodeObject *code);

/* A number that only this code object has, as long as it lives: its address may be used again. 0 where
 * it has none, and where none could be given. */
uint32_t kpti_name_mark(PyCodeObject *code);
uint32_t kpti_name_set_mark(PyCodeObject *code);

/* The id of a C function: METHOD, called on an object of TYPE, or a module's if TYPE is NULL. */
uint32_t kpti_name_c(const PyMethodDef *method, PyTypeObject *type);

/* The id of a callable of another kind: a type, a partial, an instance with __call__. */
uint32_t kpti_name_callable(PyObject *callable);

/* The name of the module whose variables GLOBALS are; empty if it has none. */
void kpti_name_module(PyObject *globals, char *out, size_t size);

#endif
