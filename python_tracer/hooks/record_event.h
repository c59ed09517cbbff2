/* record_event.h: the hot path from a callback to the streams, shared by both kinds of hooks. It is inline,
 * since each nanosecond here is paid twice per call. It leaves a pending exception alone and never raises.
 *
 * There are two paths. The fast path (kpti_fast_*) calls no function and so needs no stack frame. It
 * records a function that is in the caches for one tracer, and nothing else. In all other cases (a function
 * not yet in the caches, a full chunk, a second tracer, a watched or filtered function) it records nothing,
 * and the hook takes the general path (kpti_slow_*), which handles every case.
 *
 * Budget of the fast path over an empty callback: one read of the tick counter, and 4 ns. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_RECORD_EVENT_H
#define KPTI_PYTHON_TRACER_HOOKS_RECORD_EVENT_H

#include "core/base/assert.h"
#include "core/base/platform.h"
#include "python_tracer/chunks/event_stream.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracing_lock.h"
#include "python_tracer/threads/thread_sync.h"
#include "python_tracer/threads/traced_thread.h"

/* KPTI_ALWAYS_INLINE: on the fast path, however often it is used. KPTI_COLD_NOINLINE: kept out of line, so that
 * the fast path needs no stack frame. */
#define KPTI_ALWAYS_INLINE inline __attribute__((always_inline))
#define KPTI_COLD_NOINLINE __attribute__((noinline))

/* Enters the callback. Returns the calling thread, made at its first event, or NULL if there is no memory. */
static inline kpti_thread *kpti_callback_begin(int entering)
{
    kpti_thread *thread = kpti_thread_self;
    if (__builtin_expect(!thread, 0)) {
        thread = kpti_thread_get();
        if (!thread) return NULL;
    }
    kpti_callback_enter(thread, entering);
    return thread;
}

/* Returns whether THREAD has to synchronize with the tracing epoch. */
static inline int kpti_is_behind(const kpti_thread *thread)
{
    return thread->epoch != atomic_load_explicit(&kpti_tracing_epoch, memory_order_relaxed);
}

/* Enters the callback. Returns the calling thread with its streams up to date, or NULL if there is no
 * memory. */
static inline kpti_thread *kpti_slow_begin(int entering)
{
    kpti_thread *thread = kpti_callback_begin(entering);
    if (__builtin_expect(thread && kpti_is_behind(thread), 0)) kpti_sync(thread, entering);
    return thread;
}

static inline void kpti_slow_end(kpti_thread *thread)
{
    kpti_assert(thread == kpti_thread_self);
    kpti_assert(atomic_load_explicit(&thread->busy, memory_order_relaxed));
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&thread->busy, 0, KPTI_CALLBACK_EXIT_ORDER);
}

/* The general path for CODE, whose frame is on top and which is entered or left. Returns the mask of
 * tracers that record it. */
uint32_t kpti_slow_code(PyCodeObject *code, uint32_t kind);
/* The same for CODE that resumes after a yield, at the instruction OFFSET. */
uint32_t kpti_slow_resume(PyCodeObject *code, uint32_t offset);
/* Records that CODE calls CALLABLE, or that the call ends, at the instruction OFFSET. FIRST is the first
 * argument, or NULL if there is none. Returns the mask of tracers that record the calls made by CODE: a C
 * call belongs to its caller, so a tracer that does not record CODE does not record its calls. */
uint32_t kpti_slow_call(PyCodeObject *code, uint32_t offset, PyObject *callable, PyObject *first,
                        uint32_t kind);

/* The C function of a callable: its definition and the type of its self. A callable without a self, or with
 * a module as self, is a function and no method; its type is then PyModule_Type or a subtype. */
typedef struct kpti_c_function {
    const PyMethodDef *method;
    PyTypeObject *type;
} kpti_c_function;

static inline kpti_c_function kpti_builtin(PyObject *callable)
{
    const PyCFunctionObject *builtin = (PyCFunctionObject *)callable;
    PyObject *self = builtin->m_self;
    return (kpti_c_function){builtin->m_ml, self ? Py_TYPE(self) : &PyModule_Type};
}

/* FIRST is the first argument, or NULL if there is none. */
static inline kpti_c_function kpti_descriptor(PyObject *callable, PyObject *first)
{
    return (kpti_c_function){((PyMethodDescrObject *)callable)->d_method,
                             first ? Py_TYPE(first) : PyDescr_TYPE(callable)};
}

static inline int kpti_find_c_function(PyObject *callable, PyObject *first, kpti_c_function *out)
{
    if (Py_TYPE(callable) == &PyMethod_Type) {
        first = PyMethod_GET_SELF(callable);
        callable = PyMethod_GET_FUNCTION(callable);
    }
    if (Py_TYPE(callable) == &PyCFunction_Type || Py_TYPE(callable) == &PyCMethod_Type)
        *out = kpti_builtin(callable);
    else if (Py_TYPE(callable) == &PyMethodDescr_Type)
        *out = kpti_descriptor(callable, first);
    else
        return 0;
    return 1;
}

static inline uintptr_t kpti_c_names(kpti_c_function f)
{
    return (uintptr_t)f.method->ml_name + (uintptr_t)f.type->tp_name;
}

/* Returns the entry of a C function, or NULL if it is not in the cache. */
static inline const kpti_c_entry *kpti_c_cached(const kpti_thread *thread, kpti_c_function f)
{
    const kpti_c_entry *entry = &thread->functions[kpti_c_slot(f.method, f.type)];
    return __builtin_expect(entry->method == f.method && entry->type == f.type &&
                                entry->names == kpti_c_names(f) &&
                                entry->version == f.type->tp_version_tag,
                            1)
               ? entry
               : NULL;
}

/* Names F and adds it to the cache. Returns its word. */
uint32_t kpti_c_word_slow(kpti_thread *thread, kpti_c_function f);
static inline uint32_t kpti_c_word(kpti_thread *thread, kpti_c_function f)
{
    const kpti_c_entry *entry = kpti_c_cached(thread, f);
    return entry ? entry->word : kpti_c_word_slow(thread, f);
}

/* Enters the callback. Returns the calling thread, or NULL for the general path, which sets busy itself. */
static inline kpti_thread *kpti_fast_begin(void)
{
    kpti_thread *thread = kpti_thread_self;
    if (__builtin_expect(!thread, 0)) return NULL;
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(kpti_is_behind(thread), 0)) return NULL;
    return thread;
}

/* Appends an event of KIND, a constant, and leaves the callback, if MASK is exactly the first stream's
 * tracer. LINE is the line where the function resumes, or 0 for its first line. Returns 0 if not recorded. */
static KPTI_ALWAYS_INLINE int kpti_fast_append(kpti_thread *thread, uint32_t word, uint32_t kind,
                                               uint32_t mask, uint32_t line)
{
    kpti_stream *stream = thread->streams;
    uint64_t now;
    if (__builtin_expect(!stream, 0)) return 0;
    if (__builtin_expect((kind == KPTI_EVENT_ENTER ? stream->enter_bit : stream->bit) != mask, 0))
        return 0;
    now = kpti_ticks();
    if (!kpti_stream_append_quick(stream, word | kind, now)) return 0;
    if (line) kpti_stream_append_plain(stream, kpti_event_make(KPTI_EVENT_LINE, line, now));
    kpti_slow_end(thread);
    return 1;
}

/* The offset for kpti_fast_coroutine if the coroutine begins. */
enum { KPTI_NO_OFFSET = -1 };

/* The fast path for CODE, a coroutine whose ENTRY has KPTI_MASK_TASKS. Handles a coroutine that is entered
 * and awaited, or resumes in a known task. Returns 0 if the caller must take the general path. */
int kpti_fast_coroutine(kpti_thread *thread, const kpti_code_entry *entry, PyCodeObject *code,
                        int64_t offset);

/* Records that CODE is entered or left. Returns 0 if the caller must take the general path. The task
 * matters only for an enter. */
static KPTI_ALWAYS_INLINE int kpti_fast_code(PyCodeObject *code, uint32_t kind)
{
    kpti_thread *thread = kpti_fast_begin();
    const kpti_code_entry *entry;
    if (!thread) return 0;
    entry = &thread->codes[kpti_code_slot(code)];
    if (__builtin_expect(entry->code != code, 0)) return 0;
    if (kind == KPTI_EVENT_EXIT)
        return kpti_fast_append(thread, entry->word, kind, entry->mask & ~KPTI_MASK_TASKS, 0);
    if (__builtin_expect(kpti_fast_append(thread, entry->word, kind, entry->mask, 0), 1)) return 1;
    return entry->mask & KPTI_MASK_TASKS &&
           kpti_fast_coroutine(thread, entry, code, KPTI_NO_OFFSET);
}

/* Records that CODE resumes at the instruction OFFSET. Returns 0 if the caller must take the general path. */
static KPTI_ALWAYS_INLINE int kpti_fast_resume(PyCodeObject *code, uint32_t offset)
{
    kpti_thread *thread = kpti_fast_begin();
    const kpti_code_entry *entry;
    if (!thread) return 0;
    entry = &thread->codes[kpti_code_slot(code)];
    if (__builtin_expect(entry->code != code, 0)) return 0;
    if (entry->mask & KPTI_MASK_TASKS) return kpti_fast_coroutine(thread, entry, code, offset);
    return kpti_fast_append(thread, entry->word, KPTI_EVENT_ENTER, entry->mask,
                            kpti_thread_line(thread, code, offset));
}

/* Returns the mask of tracers that record the C calls of CALLER, according to the caches; 0: take the
 * general path. */
static inline uint32_t kpti_fast_mask(const kpti_thread *thread, const PyCodeObject *caller)
{
    const kpti_code_entry *entry;
    if (__builtin_expect(thread->every != 0, 1)) return thread->every;
    entry = &thread->codes[kpti_code_slot(caller)];
    if (!caller || entry->code != caller) return 0;
    return entry->mask & (thread->calls | KPTI_MASK_GENERAL);
}

/* Records a C call by CALLER, or its end. Returns 0 if the caller must take the general path. */
static KPTI_ALWAYS_INLINE int kpti_fast_c(kpti_c_function f, const PyCodeObject *caller,
                                          uint32_t kind)
{
    kpti_thread *thread = kpti_fast_begin();
    const kpti_c_entry *entry;
    if (!thread) return 0;
    entry = kpti_c_cached(thread, f);
    return entry && kpti_fast_append(thread, entry->word, kind, kpti_fast_mask(thread, caller), 0);
}

/* Whether a call that CALLER makes, of a callable that is no C function, needs no action. Stale caches do
 * no harm: if they hold no tracer that records CALLER, the general path checks again. */
static inline int kpti_fast_ignore(const PyCodeObject *caller)
{
    const kpti_thread *thread = kpti_thread_self;
    return __builtin_expect(thread != NULL, 1) && kpti_fast_mask(thread, caller);
}

/* The same for a callable of any other type, such as a class or a bound method. Only a tracer that records all callables
 * records one that is no C function, and a thread that is behind may not know of such a tracer yet. */
static inline int kpti_fast_ignore_other(const PyCodeObject *caller, PyObject *callable)
{
    const kpti_thread *thread = kpti_thread_self;
    kpti_c_function function;
    return thread && !kpti_is_behind(thread) && !thread->others &&
           !kpti_find_c_function(callable, NULL, &function) && kpti_fast_mask(thread, caller);
}

#endif
