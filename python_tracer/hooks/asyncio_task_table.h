/* asyncio_task_table.h: the tasks that hosts were notified of, each with the number that its host returned.
 *
 * A task is identified by its address. A weak reference proves that the address still belongs to the same
 * task, so the table keeps no task alive. Each tracer has its own key and sees only its own numbers. The
 * caller holds the GIL or, where there is none, has a thread state. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_ASYNCIO_TASK_TABLE_H
#define KPTI_PYTHON_TRACER_HOOKS_ASYNCIO_TASK_TABLE_H

#include "python_tracer/interpreter/cpython.h"

/* Returns the number of TASK, which is alive, or 0. *KNOWN is 1 if the task is in the table (its number may
 * be 0), or 0 if it has not been seen. Runs no Python code. */
uint32_t kpti_task_table_find(const PyObject *task, uint32_t key, int *known);

/* Stores the number of TASK and takes ownership of REF, a weak reference to the task without a callback. */
void kpti_task_table_add(const PyObject *task, PyObject *ref, uint32_t key, uint32_t number);

/* Frees the table and releases all weak references. */
void kpti_task_table_release(void);
/* Frees the table without touching the weak references, since the interpreter has ended. */
void kpti_task_table_forget(void);

#endif
