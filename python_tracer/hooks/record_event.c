#include "python_tracer/hooks/record_event.h"

#include "python_tracer/frames/function_naming.h"
#include "python_tracer/hooks/asyncio_tasks.h"
#include "python_tracer/hooks/caller_location.h"
#include "python_tracer/hooks/watched_calls.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/raw_frame.h"

/* Returns the type for the name of F, or NULL if F is no method. */
static PyTypeObject *type_of_method(kpti_c_function f)
{
    if (PyType_IsSubtype(f.type, &PyModule_Type)) return NULL;
    return f.type;
}

uint32_t kpti_c_word_slow(kpti_thread *thread, kpti_c_function f)
{
    kpti_c_entry *entry = &thread->functions[kpti_c_slot(f.method, f.type)];
    entry->word = kpti_name_c(f.method, type_of_method(f)) << KPTI_KIND_BITS;
    entry->method = f.method;
    entry->type = f.type;
    entry->names = kpti_c_names(f);
    /* Functions of pybind11 have a type that no attribute is looked up on. */
    entry->version = kpti_type_version(f.type);
    /* A heap type without a version can't be distinguished from a later type at its address. */
    if (!entry->version && f.type->tp_flags & Py_TPFLAGS_HEAPTYPE) entry->method = NULL;
    return entry->word;
}

/* Returns the line that the function on top was called from if a tracer records such lines; else 0. */
static uint32_t caller_line(kpti_thread *thread)
{
    kpti_instruction at;
    if (!thread->callers) return 0;
    at = kpti_caller(thread);
    return at.code ? kpti_thread_calling(thread, at.code, (uint32_t)at.offset) : 0;
}

/* Appends the event of CODE to the streams whose tracers record it. LINE is the line where it resumes, or 0
 * for its first line. CALLER is the line that it is called from, or 0 if unknown. */
static void append_code(const kpti_thread *thread, uint32_t word, uint32_t mask, uint32_t line,
                        uint32_t caller)
{
    const uint32_t kind = word & KPTI_EVENT_EXIT;
    const uint64_t begin = kpti_ticks();
    uint64_t now = begin;
    for (kpti_stream *stream = thread->streams; stream; stream = stream->next) {
        uint64_t at;
        if (!(mask & stream->bit) || !kpti_stream_within_depth(stream, kind)) continue;
        /* A stream that began inside this callback has already recorded the call as open. */
        if (kind == KPTI_EVENT_ENTER && stream->begun > begin) continue;
        if (!kpti_stream_append_now(stream, word, &now, &at)) continue;
        if (line) kpti_stream_append_plain(stream, kpti_event_make(KPTI_EVENT_LINE, line, at));
        kpti_stream_append_caller(stream, caller, at);
        if (kind == KPTI_EVENT_ENTER && mask & KPTI_MASK_TASKS && stream->task)
            kpti_stream_append_plain(stream, kpti_event_make(KPTI_EVENT_MARK, stream->task, at));
    }
}

int kpti_fast_coroutine(kpti_thread *thread, const kpti_code_entry *entry, PyCodeObject *code,
                        int64_t offset)
{
    kpti_stream *stream = thread->streams;
    uint32_t line = 0;
    uint32_t task = 0;
    kpti_awaited awaited;
    uint64_t now;
    if (!stream || entry->mask != (stream->enter_bit | KPTI_MASK_TASKS)) return 0;
    if (!kpti_frames_are_known()) return 0;
    if (offset != KPTI_NO_OFFSET) line = kpti_thread_line(thread, code, (uint32_t)offset);
    awaited = kpti_raw_awaited(PyThreadState_Get());
    if (awaited == KPTI_NOT_AWAITED) {
        /* A coroutine that begins usually belongs to a new task. */
        if (!line || !kpti_tasks_look_quick(thread, &task)) return 0;
    } else if (KPTI_EAGER_TASKS && awaited == KPTI_AWAITED_THROUGH_C && !line) {
        /* If the running task is known, it is the task that awaits. */
        uint32_t same;
        if (!kpti_tasks_look_quick(thread, &same)) return 0;
    }
    now = kpti_ticks();
    if (!kpti_stream_append_quick(stream, entry->word | KPTI_EVENT_ENTER, now)) return 0;
    if (line) kpti_stream_append_plain(stream, kpti_event_make(KPTI_EVENT_LINE, line, now));
    if (task) kpti_stream_append_plain(stream, kpti_event_make(KPTI_EVENT_MARK, task, now));
    kpti_slow_end(thread);
    return 1;
}

static uint32_t record_at(PyCodeObject *code, uint32_t kind, int64_t offset)
{
    kpti_thread *thread = kpti_slow_begin(kind == KPTI_EVENT_ENTER);
    const kpti_code_entry *entry;
    uint32_t mask;
    uint32_t word;
    uint32_t line;
    uint32_t caller;
    if (!thread) return KPTI_MASK_GENERAL; /* no memory now; a later event may succeed */
    caller = kind == KPTI_EVENT_ENTER ? caller_line(thread) : 0;
    entry = kpti_thread_code(thread, code);
    mask = entry->mask;
    word = entry->word;
    line = offset == KPTI_NO_OFFSET ? 0 : kpti_thread_line(thread, code, (uint32_t)offset);
    if (mask & KPTI_MASK_TASKS && kind == KPTI_EVENT_ENTER) kpti_tasks_look(thread, code, !line);
    if (mask & KPTI_MASK_WATCHED && kind == KPTI_EVENT_ENTER)
        kpti_watch_enter(thread, code, word, mask, caller);
    else
        append_code(thread, word | kind, mask, line, caller);
    kpti_slow_end(thread);
    return mask & ~(KPTI_MASK_GENERAL | KPTI_MASK_TASKS);
}

uint32_t kpti_slow_code(PyCodeObject *code, uint32_t kind)
{
    return record_at(code, kind, KPTI_NO_OFFSET);
}

uint32_t kpti_slow_resume(PyCodeObject *code, uint32_t offset)
{
    return record_at(code, KPTI_EVENT_ENTER, offset);
}

/* Whether CALLABLE is neither a Python function nor a method of one; those have their own events. */
static int is_other_callable(PyObject *callable)
{
    if (Py_TYPE(callable) == &PyMethod_Type) callable = PyMethod_GET_FUNCTION(callable);
    return Py_TYPE(callable) != &PyFunction_Type;
}

/* Returns the word of CALLABLE, or 0 if no tracer records it. *IS_C is set if it is a C function. */
static uint32_t word_of_call(kpti_thread *thread, PyObject *callable, PyObject *first, int *is_c)
{
    kpti_c_function function;
    *is_c = kpti_find_c_function(callable, first, &function);
    if (*is_c) return kpti_c_word(thread, function);
    if (!thread->others || !is_other_callable(callable)) return 0;
    return kpti_name_callable(callable) << KPTI_KIND_BITS;
}

uint32_t kpti_slow_call(PyCodeObject *code, uint32_t offset, PyObject *callable, PyObject *first,
                        uint32_t kind)
{
    kpti_thread *thread = kpti_slow_begin(0);
    uint32_t wanted;
    uint32_t word;
    uint32_t line = 0;
    int is_c;
    uint64_t now;
    if (!thread) return KPTI_MASK_GENERAL;
    wanted = kpti_thread_code(thread, code)->mask & thread->calls;
    word = wanted ? word_of_call(thread, callable, first, &is_c) : 0;
    if (word && thread->callers && kind == KPTI_EVENT_ENTER)
        line = kpti_thread_calling(thread, code, offset);
    now = kpti_ticks();
    for (kpti_stream *stream = word ? thread->streams : NULL; stream; stream = stream->next) {
        uint64_t at;
        if (!(wanted & (is_c ? stream->c_bit : stream->all_bit))) continue;
        if (stream->max_depth && stream->depth >= stream->max_depth) continue;
        if (kpti_stream_append_now(stream, word | kind, &now, &at))
            kpti_stream_append_caller(stream, line, at);
    }
    kpti_slow_end(thread);
    return wanted;
}
