/* thread_state.h: the fields of a traced thread (traced_thread.h), the pointer from a thread to its own
 * fields, and the flag that it is inside a callback. */
#ifndef KPTI_PYTHON_TRACER_STATE_THREAD_STATE_H
#define KPTI_PYTHON_TRACER_STATE_THREAD_STATE_H

#include "core/base/assert.h"
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
    PyTypeObject *type; /* of self; of the function itself if it has no self */
    uintptr_t names;    /* sum of both names' addresses; detects a reused definition */
    uint32_t word;
    uint32_t version; /* the type's; unique, also if a new type has the address of an old one */
} kpti_c_entry;       /* 32 bytes: indexed with a shift */

/* The line of an instruction where a generator resumes or a call is made. */
typedef struct kpti_line_entry {
    const PyCodeObject *code;
    uint32_t offset; /* of the instruction, in bytes */
    uint32_t line;   /* 0: unknown, or the start of a generator */
} kpti_line_entry;

/* Bits above the tracers' bits: a watched function; a function that the fast path must not record; a
 * function that may run as a task while a tracer records tasks. */
#define KPTI_MASK_WATCHED (UINT32_C(1) << 31)
#define KPTI_MASK_GENERAL (UINT32_C(1) << 30)
#define KPTI_MASK_TASKS   (UINT32_C(1) << 29)

typedef struct kpti_thread {
    _Atomic uint32_t busy; /* inside a callback */
    uint64_t epoch;        /* the tracing epoch for which the caches are valid */
    int entering;          /* an enter is being recorded; its frame is already on top */
    uint32_t suspended;    /* number of callbacks that are suspended and will resume */
    uint32_t calls;        /* mask of tracers that record calls made by code */
    uint32_t others;       /* those of them that record all callables */
    uint32_t callers;      /* mask of tracers that record the lines that calls are made from */
    uint32_t every;        /* mask of all tracers if they record every C call; else 0 */
    uint64_t loop_version; /* of the thread state's dict (asyncio's loop); 0: loop is unknown */
    PyObject *loop;        /* the loop that ran at that version, borrowed; NULL: none ran */
    kpti_stream *streams;  /* of tracers that record, or recorded until just now */
    kpti_stream *owned;    /* all streams of this thread, under the tracing lock */
    uint64_t os_tid;
    uint64_t made_ticks;      /* when it was made; 0: unknown */
    struct kpti_thread *next; /* in the thread list, under the tracing lock */
    char name[64];
    int named; /* the name has been read */
    /* Greenlets, see greenlets.h. A virtual thread has an OS thread; an OS thread has virtual threads. */
    struct kpti_thread *os_thread;
    struct kpti_thread *virtual_threads;
    struct kpti_thread *next_virtual;
    int retired;                       /* virtual thread only: its greenlet is gone */
    int greenlet_hook_installed;       /* our trace function is installed */
    PyObject *previous_trace_function; /* the trace function before ours; owned */
    kpti_code_entry codes[KPTI_CODE_CACHE];
    kpti_c_entry functions[KPTI_C_CACHE];
    kpti_line_entry lines[KPTI_LINE_CACHE];
    kpti_line_entry calling[KPTI_CALLER_CACHE];
} kpti_thread;

extern __thread kpti_thread *kpti_thread_self __attribute__((tls_model("initial-exec")));

/* Returns the OS thread of a greenlet's virtual thread; otherwise THREAD itself. */
static inline const kpti_thread *kpti_thread_real(const kpti_thread *thread)
{
    return thread && thread->os_thread ? thread->os_thread : thread;
}

/* Enters a callback of the calling thread. ENTERING: an enter is about to be recorded. */
static inline void kpti_callback_enter(kpti_thread *thread, int entering)
{
    kpti_assert(thread == kpti_thread_self);
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    thread->entering = entering;
}

/* Suspends a callback because Python or the host is about to run in the middle of it. A thread that waits
 * for this thread must not wait for that. Meanwhile tracers may stop and be destroyed, and callbacks may
 * run inside this one. Streams stay in memory, but may have ended. Returns the argument for
 * kpti_callback_resume. */
static inline int kpti_callback_suspend(kpti_thread *thread)
{
    kpti_assert(thread == kpti_thread_self);
    kpti_assert(atomic_load_explicit(&thread->busy, memory_order_relaxed));
    thread->suspended++;
    atomic_store_explicit(&thread->busy, 0, memory_order_release);
    return thread->entering;
}

static inline void kpti_callback_resume(kpti_thread *thread, int entering)
{
    kpti_assert(thread == kpti_thread_self && thread->suspended);
    kpti_assert(!atomic_load_explicit(&thread->busy, memory_order_relaxed)); /* callbacks nest */
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    thread->entering = entering;
    thread->suspended--;
}

#endif
