/* thread_state.h: the fields of a traced thread (traced_thread.h), the pointer by which a thread finds its own,
 * and whether it is inside a callback. */
#ifndef KPTI_PYTHON_TRACER_STATE_THREAD_STATE_H
#define KPTI_PYTHON_TRACER_STATE_THREAD_STATE_H

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/stream_state.h"

enum { KPTI_CODE_CACHE = 512, KPTI_C_CACHE = 256, KPTI_LINE_CACHE = 64, KPTI_CALLER_CACHE = 512 };

typedef struct kpti_code_entry {
    PyCodeObject *code;
    uint32_t word; /* id << KPTI_KIND_BITS */
    uint32_t mask; /* tracers that record it; KPTI_MASK_* */
} kpti_code_entry;

typedef struct kpti_c_entry {
    const PyMethodDef *method;
    PyTypeObject *type; /* of self; of the function itself where it has none */
    uintptr_t names;    /* both names' addresses, added: a reused definition is noticed */
    uint32_t word;
    uint32_t version; /* the type's: no two have the same, also where one is at another's address */
} kpti_c_entry;       /* 32 bytes: found with a shift */

/* A place where a generator goes on, or a call is made. */
typedef struct kpti_line_entry {
    const PyCodeObject *code;
    uint32_t offset; /* of the instruction, in bytes */
    uint32_t line;   /* 0: unknown, or where a generator begins */
} kpti_line_entry;

/* Above the tracers' bits: a watched function; one that the quick way must not record; one that may be a
 * task's, and somebody wants to know of tasks. */
#define KPTI_MASK_WATCHED (UINT32_C(1) << 31)
#define KPTI_MASK_GENERAL (UINT32_C(1) << 30)
#define KPTI_MASK_TASKS   (UINT32_C(1) << 29)

typedef struct kpti_thread {
    _Atomic uint32_t busy; /* inside a callback */
    uint64_t epoch;        /* of the session, when the caches were last put right */
    int entering;          /* an enter is being recorded: its frame is on top already */
    uint32_t suspended;    /* callbacks that are suspended, and will resume */
    uint32_t calls;        /* the tracers that want to know what code calls */
    uint32_t others;       /* of those, the ones that want to know of all callables */
    uint32_t callers;      /* the tracers that want to know the lines that calls are made from */
    uint32_t every;        /* the tracers, if they record every C call there is; else 0 */
    uint64_t
        loop_version; /* of the thread state's dict, where asyncio has its loop; 0: loop is unknown */
    PyObject *loop;   /* the loop that ran at that version, borrowed; NULL: none did */
    kpti_stream *streams; /* of tracers that record, or did until just now */
    kpti_stream *owned;   /* all of this thread's, under the tracing lock */
    uint64_t os_tid;
    struct kpti_thread *next; /* in the session's list, under its lock */
    char name[64];
    int named; /* name has been asked for */
    /* Greenlets, see greenlets.h: of a virtual thread its OS thread, of a real thread its virtual threads. */
    struct kpti_thread *os_thread;
    struct kpti_thread *virtual_threads;
    struct kpti_thread *next_virtual;
    int retired;                       /* of a virtual thread: its greenlet is gone */
    int greenlet_hook_installed;       /* our trace function is there */
    PyObject *previous_trace_function; /* the one that was there before; owned */
    kpti_code_entry codes[KPTI_CODE_CACHE];
    kpti_c_entry functions[KPTI_C_CACHE];
    kpti_line_entry lines[KPTI_LINE_CACHE];
    kpti_line_entry calling[KPTI_CALLER_CACHE];
} kpti_thread;

extern __thread kpti_thread *kpti_thread_self __attribute__((tls_model("initial-exec")));

/* The real thread of a greenlet's virtual thread; else THREAD itself. */
static inline const kpti_thread *kpti_thread_real(const kpti_thread *thread)
{
    return thread && thread->os_thread ? thread->os_thread : thread;
}

/* Python, or the host, is about to run in the middle of a callback: whoever waits for this thread must not
 * wait for that. Meanwhile tracers may stop and go, and callbacks may run inside of this one: streams
 * stay in memory, but may have ended. Returns what step_in wants to have back. */
static inline int kpti_callback_suspend(kpti_thread *thread)
{
    thread->suspended++;
    atomic_store_explicit(&thread->busy, 0, memory_order_release);
    return thread->entering;
}

static inline void kpti_callback_resume(kpti_thread *thread, int entering)
{
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    thread->entering = entering;
    thread->suspended--;
}

#endif
