/* asyncio_tasks.h: finds the asyncio task that a coroutine's resume belongs to.
 *
 * asyncio's step of a task is written in C and reports no event. But when the coroutine resumes, asyncio
 * knows the running task. So a resume whose caller is no coroutine or generator reads the task from asyncio
 * (other resumes are awaited and belong to the same step). The resume then begins with a point that has the
 * number which the tracer's host returned for the task.
 *
 * asyncio_task_table.h stores the numbers. No Python code runs, not even an overridden get_name. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_ASYNCIO_TASKS_H
#define KPTI_PYTHON_TRACER_HOOKS_ASYNCIO_TASKS_H

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/thread_state.h"

/* Returns a key for a tracer in the task table. No key is used twice. */
uint32_t kpti_tasks_new_key(void);

/* Sets each stream's task to the number for its point, or to 0 for none. CODE is a coroutine on top of
 * THREAD, the calling thread; BEGINS is set if it begins, not if it resumes. Runs inside a callback with
 * busy set. Python's allocator and the host may run in it, so values read from the thread's caches before
 * may have changed. Leaves a pending exception alone. */
void kpti_tasks_look(kpti_thread *thread, PyCodeObject *code, int begins);

/* The same for THREAD's only stream and a coroutine that is not awaited, without the host. Returns 1 if
 * *TASK is its task, or 0 if the caller must use kpti_tasks_look. Runs neither Python code nor Python's
 * allocator. */
int kpti_tasks_look_quick(kpti_thread *thread, uint32_t *task);

/* Releases all weak references. The caller holds the GIL. */
void kpti_tasks_release(void);
/* Forgets all objects, since the interpreter has ended. */
void kpti_tasks_forget(void);

#endif
