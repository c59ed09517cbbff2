/* asyncio_task_table.h: the tasks that hosts have heard of, each with the number that its host gave it.
 *
 * Tasks are known by their address, with a weak reference as proof that the address is still theirs: no
 * task is kept alive. A tracer has a key of its own, so that none sees another's. The caller holds the GIL,
 * or, where there is none, has a thread state. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_ASYNCIO_TASK_TABLE_H
#define KPTI_PYTHON_TRACER_HOOKS_ASYNCIO_TASK_TABLE_H

#include "python_tracer/interpreter/cpython.h"

/* The number of TASK, which is alive; 0: it has not been seen, or is one without a number. KNOWN: which of the
 * two. Nothing of Python's runs. */
uint32_t kpti_task_table_find(const PyObject *task, uint32_t key, int *known);

/* Keeps the number of TASK, and takes over REF, a weak reference to it that has no callback. */
void kpti_task_table_add(const PyObject *task, PyObject *ref, uint32_t key, uint32_t number);

/* Lets all weak references go. */
void kpti_task_table_release(void);
/* The interpreter has ended: they are gone with it. */
void kpti_task_table_forget(void);

#endif
