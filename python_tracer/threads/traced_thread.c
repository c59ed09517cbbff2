#include "python_tracer/threads/traced_thread.h"

#include <pthread.h>

#include "core/base/platform.h"
#include "python_tracer/frames/function_naming.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/active_tracers.h"
#include "python_tracer/state/dead_code.h"
#include "python_tracer/threads/greenlets.h"
#include "python_tracer/threads/thread_list.h"

static pthread_key_t at_thread_end;

/* Runs when the thread ends, which may be long after Python was finalized, so it touches no Python object. */
static void thread_ended(void *self)
{
    kpti_thread *thread = self;
    kpti_thread_list_remove(thread);
    kpti_greenlets_thread_ended(thread);
    kpti_thread_self = NULL;
    free(thread);
}

static void make_key(void)
{
    (void)pthread_key_create(&at_thread_end, thread_ended);
}

kpti_thread *kpti_thread_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    kpti_thread *thread = kpti_thread_self;
    if (thread) return thread;
    (void)pthread_once(&once, make_key);
    thread = calloc(1, sizeof *thread);
    if (!thread) return NULL;
    thread->os_tid = kpti_os_tid();
    thread->made_ticks = kpti_ticks();
    if (thread->os_tid == (uint64_t)getpid())
        (void)snprintf(thread->name, sizeof thread->name, "MainThread");
    else
        (void)pthread_getname_np(pthread_self(), thread->name, sizeof thread->name);
    if (pthread_setspecific(at_thread_end, thread) != 0) {
        free(thread);
        return NULL;
    }
    kpti_thread_list_add(thread);
    kpti_thread_self = thread;
    return thread;
}

static void forget_codes(kpti_thread *thread)
{
    memset(thread->codes, 0, sizeof thread->codes);
    memset(thread->lines, 0, sizeof thread->lines);
    if (thread->callers) memset(thread->calling, 0, sizeof thread->calling);
}

void kpti_thread_forget(kpti_thread *thread)
{
    forget_codes(thread);
    memset(thread->functions, 0, sizeof thread->functions);
    thread->loop_version = 0; /* in the child of a fork the loop must be read again */
}

static void forget_lines(kpti_line_entry *entries, uint32_t count, const PyCodeObject *code)
{
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].code == code) entries[i].code = NULL;
}

void kpti_thread_forget_dead(kpti_thread *thread)
{
    const void *dead[KPTI_DEAD_CODES];
    const uint32_t count = kpti_dead_code_since(&thread->epoch, dead);
    if (count > KPTI_DEAD_CODES) {
        forget_codes(thread);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        kpti_code_entry *entry = &thread->codes[kpti_code_slot(dead[i])];
        if (entry->code == dead[i]) entry->code = NULL;
        forget_lines(thread->lines, KPTI_LINE_CACHE, dead[i]);
        if (thread->callers) forget_lines(thread->calling, KPTI_CALLER_CACHE, dead[i]);
    }
}

uint32_t kpti_thread_calling_slow(kpti_line_entry *entry, PyCodeObject *code, uint32_t offset)
{
    const int line = PyCode_Addr2Line(code, (int)offset);
    entry->code = code;
    entry->offset = offset;
    entry->line = line > 0 && (uint32_t)line <= KPTI_MAX_NUMBER ? (uint32_t)line : 0;
    return entry->line;
}

uint32_t kpti_thread_line_slow(kpti_thread *thread, PyCodeObject *code, uint32_t offset)
{
    kpti_line_entry *entry = kpti_line_slot(thread, code, offset);
    int line = PyCode_Addr2Line(code, (int)offset);
    entry->code = code;
    entry->offset = offset;
    entry->line = line > 0 && line != code->co_firstlineno && (uint32_t)line <= KPTI_MAX_NUMBER
                      ? (uint32_t)line
                      : 0;
    return entry->line;
}

kpti_code_entry *kpti_thread_code_slow(kpti_thread *thread, PyCodeObject *code)
{
    kpti_code_entry *entry = &thread->codes[kpti_code_slot(code)];
    kpti_function_view view = {.kind = KPT_KIND_PYTHON};
    char module[256] = "";
    uint32_t id;
    uint32_t mark;
    int kept;
    int entering = kpti_callback_suspend(thread); /* naming runs Python's allocator */
    id = kpti_name_code(code);
    mark = kpti_name_mark(code);
    kept = kpti_name_is_kept(code);
    (void)kpti_function_describe(NULL, id, &view);
    kpti_greenlets_watch(thread);
    if (kpti_tracers_needs_module()) kpti_name_module(PyEval_GetGlobals(), module, sizeof module);
    kpti_callback_resume(thread, entering);
    entry->code = kept ? code : NULL; /* else its death would go unnoticed */
    entry->word = id << KPTI_KIND_BITS;
    entry->mask = kpti_tracers_mask(id, view.file, kpt_str_of(module), mark,
                                    code->co_flags & KPTI_IS_COROUTINE);
    return entry;
}
