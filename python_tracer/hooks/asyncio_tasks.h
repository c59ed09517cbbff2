/* asyncio_tasks.h: which task of asyncio a coroutine's resume belongs to.
 *
 * asyncio's step of a task is written in C and tells nobody. But at the moment when the coroutine goes on,
 * asyncio itself knows the task that runs. So a resume whose caller is no coroutine or generator (others
 * are awaited, and belong to the same step) asks asyncio, and begins with a point that has the number
 * which the tracer's host gave to the task.
 *
 * asyncio_task_table.h has the numbers. No Python code runs, also not an overridden get_name. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_ASYNCIO_TASKS_H
#define KPTI_PYTHON_TRACER_HOOKS_ASYNCIO_TASKS_H

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/thread_state.h"

/* A tracer's key in the table: none has had it before. */
uint32_t kpti_tasks_new_key(void);

/* CODE, a coroutine on top of THREAD, the calling one, BEGINS or goes on: each stream's task is the number
 * for its point, 0 for none. Inside a callback, with busy set; Python's allocator may run in it, and the
 * host: what was read of the thread's caches before may have changed. Leaves a pending exception alone. */
void kpti_tasks_look(kpti_thread *thread, PyCodeObject *code, int begins);

/* The same for THREAD's only stream, without the host, of a coroutine that is not awaited: 1 if *TASK is its
 * task, 0: kpti_tasks_look has to find out. No Python runs, nor its allocator. */
int kpti_tasks_look_quick(kpti_thread *thread, uint32_t *task);

/* Lets all weak references go; the GIL is held. */
void kpti_tasks_release(void);
/* The interpreter has ended: they are gone with it. */
void kpti_tasks_forget(void);

#endif
