/* function_naming.h: finds function ids for Python objects that are not in the caches. All functions need
 * the GIL or a thread state, unless noted otherwise, and leave a pending exception alone. */
#ifndef KPTI_PYTHON_TRACER_FRAMES_FUNCTION_NAMING_H
#define KPTI_PYTHON_TRACER_FRAMES_FUNCTION_NAMING_H

#include "core/callstacks/function_table.h"
#include "python_tracer/interpreter/cpython.h"

/* Reserves the slots in code objects. Returns 0, without an exception, if there are none. Ids are then
 * found by content each time, which is correct, but slower. */
int kpti_name_prepare(void);
/* Forgets the slots, which belonged to an interpreter that has ended. */
void kpti_name_forget(void);

/* Returns the id of a code object's function. */
uint32_t kpti_name_code(PyCodeObject *code);
/* The same by content, without the slot. Needs no GIL, but is slower. */
uint32_t kpti_name_code_anew(PyCodeObject *code);
/* Whether the slots of CODE are filled. Its death is then reported (dead_code.h), and it may be cached
 * until then. */
int kpti_name_is_kept(PyCodeObject *code);

/* Returns a number that only this code object has while it lives; its address may be reused. Returns 0 if
 * it has none, or if none could be set. */
uint32_t kpti_name_mark(PyCodeObject *code);
uint32_t kpti_name_set_mark(PyCodeObject *code);

/* Returns the id of a C function: METHOD, called on an object of TYPE, or of a module if TYPE is NULL. */
uint32_t kpti_name_c(const PyMethodDef *method, PyTypeObject *type);

/* Returns the id of a callable of another kind: a type, a partial, an instance with __call__. */
uint32_t kpti_name_callable(PyObject *callable);

/* Copies the name of the module that owns GLOBALS to OUT; empty if it has none. */
void kpti_name_module(PyObject *globals, char *out, size_t size);

#endif
