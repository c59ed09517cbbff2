/* session_notes.c: see session_notes.h. */
#include "hosts/standalone/session/session_notes.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "hosts/standalone/session/session_state.h"
#include "hosts/standalone/session/session_triggers.h"

/* Adds NOTE to the log. Returns its number, or 0. */
static uint32_t add_note(kpti_session *s, const kpti_note *note)
{
    uint32_t number = 0;
    kpti_assert(atomic_load(&s->noting) > 0); /* so that close waits for this thread */
    pthread_mutex_lock(&s->notes_lock);
    if (!atomic_load(&s->closing) && !s->stopped) number = kpti_notes_add(&s->notes, note);
    if (s->most_notes && s->notes.count >= 2 * s->most_notes)
        kpti_notes_keep_last(&s->notes, s->most_notes);
    pthread_mutex_unlock(&s->notes_lock);
    return number;
}

static void end_step(kpti_session *s, const kpti_note *end)
{
    const kpti_note *begin;
    int64_t ns = -1;
    pthread_mutex_lock(&s->notes_lock);
    begin = kpti_notes_get(&s->notes, end->partner);
    if (begin) ns = end->ns - begin->ns;
    pthread_mutex_unlock(&s->notes_lock);
    if (ns >= 0) kpti_triggers_span(s, (uint64_t)ns);
}

uint32_t kpti_session_note(kpti_session *s, kpti_note note)
{
    uint32_t number = 0;
    note.ns = kpti_unix_ns();
    note.os_tid = (uint64_t)syscall(SYS_gettid);
    atomic_fetch_add(&s->noting, 1);
    if (s->pid == getpid()) number = add_note(s, &note);
    if (number) (void)s->tracer.ops->mark(s->tracer.self, KPT_MARK_POINT, number);
    if (number && note.what == KPTI_NOTE_END && kpti_is_step_span(note.name)) end_step(s, &note);
    atomic_fetch_sub(&s->noting, 1);
    return number;
}

/* The plugin records the points of a task, with time and thread. Only a recording tracer calls on_task, so a
 * child of a fork never does. */
uint64_t kpti_session_note_task(void *session, kpt_str name, kpt_str coroutine)
{
    const kpti_note note = {.what = KPTI_NOTE_TASK, .name = name, .args = coroutine};
    kpti_session *s = session;
    uint64_t number;
    atomic_fetch_add(&s->noting, 1);
    number = add_note(s, &note);
    atomic_fetch_sub(&s->noting, 1);
    return number;
}
