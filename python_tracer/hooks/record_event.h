/* record_event.h: the hot path that both kinds of hooks share: from a callback to the streams. Inline, since
 * each nanosecond here is paid twice a call. Leaves a pending exception alone and never raises.
 *
 * There are two ways. The quick one (kpti_quick_*) calls no function and so needs no stack frame: it
 * records what one tracer, and nothing else, wants to know of a function that is in the caches. Where
 * anything is otherwise (a first sight, a full chunk, a second tracer, a watched or filtered function)
 * it has recorded nothing, and the hook goes the general way (kpti_record_*), which can do all.
 *
 * Budget of the quick way, over an empty callback: the tick counter's read, and 4 ns. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_RECORD_EVENT_H
#define KPTI_PYTHON_TRACER_HOOKS_RECORD_EVENT_H

#include "core/base/platform.h"
#include "python_tracer/chunks/event_stream.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracing_lock.h"
#include "python_tracer/threads/thread_sync.h"
#include "python_tracer/threads/traced_thread.h"

/* What must not become a call, however often it is used; what must, lest it cost the others a stack
 * frame. */
#define KPTI_ALWAYS_INLINE inline __attribute__((always_inline))
#define KPTI_SELDOM        __attribute__((noinline))

/* The calling thread, inside its callback, with its streams up to date; NULL: nothing to record. */
static inline kpti_thread *kpti_record_begin(int entering)
{
    kpti_thread *thread = kpti_thread_self;
    if (__builtin_expect(!thread, 0)) {
        thread = kpti_thread_get();
        if (!thread) return NULL;
    }
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    thread->entering = entering;
    if (__builtin_expect(
            thread->epoch != atomic_load_explicit(&kpti_tracing_epoch, memory_order_relaxed), 0))
        kpti_sync(thread, entering);
    return thread;
}

static inline void kpti_record_end(kpti_thread *thread)
{
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&thread->busy, 0, KPTI_LEAVING);
}

/* The general way: CODE, whose frame is on top, is entered or left. Returns who records it. */
uint32_t kpti_record_code(PyCodeObject *code, uint32_t kind);
/* The same for CODE that goes on behind a yield, at the instruction OFFSET. */
uint32_t kpti_record_resume(PyCodeObject *code, uint32_t offset);
/* CALLABLE is called by CODE, at the instruction OFFSET, with the first argument FIRST, NULL if there is
 * none, or left again. Returns who records what CODE calls: a C call is its caller's, so not those that do
 * not record CODE. */
uint32_t kpti_record_call(PyCodeObject *code, uint32_t offset, PyObject *callable, PyObject *first,
                          uint32_t kind);

/* The C function behind a callable: its definition and the type of its self. Without a self, or with a
 * module for one, it is a function and no method; the type is PyModule_Type's or one below it then. */
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

/* FIRST: the first argument, NULL if there is none. */
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

/* The entry of a C function, if it is in the cache, else NULL. */
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

/* Names F and puts it into the cache: its word. */
uint32_t kpti_c_word_slow(kpti_thread *thread, kpti_c_function f);
static inline uint32_t kpti_c_word(kpti_thread *thread, kpti_c_function f)
{
    const kpti_c_entry *entry = kpti_c_cached(thread, f);
    return entry ? entry->word : kpti_c_word_slow(thread, f);
}

/* The calling thread, inside its callback; NULL: go the general way, which sets busy itself. */
static inline kpti_thread *kpti_quick_begin(void)
{
    kpti_thread *thread = kpti_thread_self;
    if (__builtin_expect(!thread, 0)) return NULL;
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(
            thread->epoch != atomic_load_explicit(&kpti_tracing_epoch, memory_order_relaxed), 0))
        return NULL;
    return thread;
}

/* Appends an event of KIND, a constant, if MASK is the first stream's tracer and nobody else, and leaves the
 * callback. LINE: where it goes on; 0: at its first. */
static KPTI_ALWAYS_INLINE int kpti_quick_append(kpti_thread *thread, uint32_t word, uint32_t kind,
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
    kpti_record_end(thread);
    return 1;
}

/* Where a coroutine begins, as kpti_quick_coroutine's offset. */
enum { KPTI_NO_OFFSET = -1 };

/* The quick way of CODE, a coroutine whose ENTRY says that somebody wants to know its task: it is entered, and
 * awaited, or goes on in a task that is known. 0: go the general way. */
int kpti_quick_coroutine(kpti_thread *thread, const kpti_code_entry *entry, PyCodeObject *code,
                         int64_t offset);

/* Records that CODE is entered or left; 0: go the general way. Tasks are of interest where it is entered. */
static KPTI_ALWAYS_INLINE int kpti_quick_code(PyCodeObject *code, uint32_t kind)
{
    kpti_thread *thread = kpti_quick_begin();
    const kpti_code_entry *entry;
    if (!thread) return 0;
    entry = &thread->codes[kpti_code_slot(code)];
    if (__builtin_expect(entry->code != code, 0)) return 0;
    if (kind == KPTI_EVENT_EXIT)
        return kpti_quick_append(thread, entry->word, kind, entry->mask & ~KPTI_MASK_TASKS, 0);
    if (__builtin_expect(kpti_quick_append(thread, entry->word, kind, entry->mask, 0), 1)) return 1;
    return entry->mask & KPTI_MASK_TASKS &&
           kpti_quick_coroutine(thread, entry, code, KPTI_NO_OFFSET);
}

/* Records that CODE goes on at the instruction OFFSET; 0: go the general way. */
static KPTI_ALWAYS_INLINE int kpti_quick_resume(PyCodeObject *code, uint32_t offset)
{
    kpti_thread *thread = kpti_quick_begin();
    const kpti_code_entry *entry;
    if (!thread) return 0;
    entry = &thread->codes[kpti_code_slot(code)];
    if (__builtin_expect(entry->code != code, 0)) return 0;
    if (entry->mask & KPTI_MASK_TASKS) return kpti_quick_coroutine(thread, entry, code, offset);
    return kpti_quick_append(thread, entry->word, KPTI_EVENT_ENTER, entry->mask,
                             kpti_thread_line(thread, code, offset));
}

/* What records the C calls of CALLER, as far as the caches know; 0: go the general way. */
static inline uint32_t kpti_quick_mask(const kpti_thread *thread, const PyCodeObject *caller)
{
    const kpti_code_entry *entry;
    if (__builtin_expect(thread->every != 0, 1)) return thread->every;
    entry = &thread->codes[kpti_code_slot(caller)];
    if (!caller || entry->code != caller) return 0;
    return entry->mask & (thread->calls | KPTI_MASK_GENERAL);
}

/* The same for a C function that CALLER calls. */
static KPTI_ALWAYS_INLINE int kpti_quick_c(kpti_c_function f, const PyCodeObject *caller,
                                           uint32_t kind)
{
    kpti_thread *thread = kpti_quick_begin();
    const kpti_c_entry *entry;
    if (!thread) return 0;
    entry = kpti_c_cached(thread, f);
    return entry &&
           kpti_quick_append(thread, entry->word, kind, kpti_quick_mask(thread, caller), 0);
}

/* Whether nothing is to be done about a call that CALLER makes, which is none of a C function. Old caches
 * do no harm here: where they say that nobody records CALLER, the general way asks again. */
static inline int kpti_quick_ignore(const PyCodeObject *caller)
{
    const kpti_thread *thread = kpti_thread_self;
    return __builtin_expect(thread != NULL, 1) && kpti_quick_mask(thread, caller);
}

#endif
