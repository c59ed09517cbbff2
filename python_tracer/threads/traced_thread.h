/* traced_thread.h: a traced thread: its streams, its caches of function ids, and whether it is inside a
 * callback. It is made at the thread's first event and freed when the thread ends. A thread finds it
 * through one thread-local pointer in the initial-exec model; with more thread-local data a late load of
 * the library fails.
 *
 * The caches are in front of the function table. An entry holds the id of a code object or C function, and
 * the tracers that record it. Entries hold addresses of objects that may die. Whenever a code object dies
 * or the set of tracers changes, the tracing epoch changes. A thread that sees an epoch other than its own
 * first removes dead code objects from its caches, or empties them. So a reused address is never misnamed.
 * The entry of a C function has the fields needed to check it. */
#ifndef KPTI_PYTHON_TRACER_THREADS_TRACED_THREAD_H
#define KPTI_PYTHON_TRACER_THREADS_TRACED_THREAD_H

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/thread_state.h"

/* Returns the calling thread's kpti_thread, making it if needed, or NULL if there is no memory. The caller
 * holds the GIL or a thread state. A pending exception is left alone. */
kpti_thread *kpti_thread_get(void);

static inline size_t kpti_code_slot(const PyCodeObject *code)
{
    uintptr_t address = (uintptr_t)code;
    return (address >> 5 ^ address >> 13) & (KPTI_CODE_CACHE - 1);
}

static inline size_t kpti_c_slot(const PyMethodDef *method, const PyTypeObject *type)
{
    return ((uintptr_t)method >> 5 ^ (uintptr_t)type >> 8) & (KPTI_C_CACHE - 1);
}

/* Returns the cache entry of CODE, whose frame is the current one. Fills the entry from the table if
 * needed. */
kpti_code_entry *kpti_thread_code_slow(kpti_thread *thread, PyCodeObject *code);
static inline kpti_code_entry *kpti_thread_code(kpti_thread *thread, PyCodeObject *code)
{
    kpti_code_entry *entry = &thread->codes[kpti_code_slot(code)];
    return __builtin_expect(entry->code == code, 1) ? entry : kpti_thread_code_slow(thread, code);
}

/* Returns the line of CODE's instruction at OFFSET, or 0 if it is unknown or the code's first line. */
uint32_t kpti_thread_line_slow(kpti_thread *thread, PyCodeObject *code, uint32_t offset);
static inline kpti_line_entry *kpti_line_slot(kpti_thread *thread, const PyCodeObject *code,
                                              uint32_t offset)
{
    uintptr_t address = (uintptr_t)code;
    return &thread->lines[(address >> 5 ^ address >> 13 ^ offset >> 1) & (KPTI_LINE_CACHE - 1)];
}
static inline uint32_t kpti_thread_line(kpti_thread *thread, PyCodeObject *code, uint32_t offset)
{
    const kpti_line_entry *entry = kpti_line_slot(thread, code, offset);
    return __builtin_expect(entry->code == code && entry->offset == offset, 1)
               ? entry->line
               : kpti_thread_line_slow(thread, code, offset);
}

/* Returns the line of CODE's instruction at OFFSET, which makes a call, or 0 if it is unknown. */
uint32_t kpti_thread_calling_slow(kpti_line_entry *entry, PyCodeObject *code, uint32_t offset);
static inline uint32_t kpti_thread_calling(kpti_thread *thread, PyCodeObject *code, uint32_t offset)
{
    uintptr_t address = (uintptr_t)code;
    kpti_line_entry *entry =
        &thread->calling[(address >> 5 ^ address >> 13 ^ offset >> 1) & (KPTI_CALLER_CACHE - 1)];
    return __builtin_expect(entry->code == code && entry->offset == offset, 1)
               ? entry->line
               : kpti_thread_calling_slow(entry, code, offset);
}

/* Empties the caches. */
void kpti_thread_forget(kpti_thread *thread);
/* Removes the code objects that have died from the caches. */
void kpti_thread_forget_dead(kpti_thread *thread);

#endif
