#include "hosts/standalone/session/session_entry.h"

#include <unistd.h>

#include "core/base/assert.h"

void kpti_session_adopt_in_child(kpti_session *s)
{
    kpti_assert(s->pid != getpid());
    s->pid = getpid();
    (void)pthread_mutex_init(&s->control, NULL);
    (void)pthread_mutex_init(&s->notes_lock, NULL);
    (void)pthread_mutex_init(&s->memory_lock, NULL);
    s->takes_memory = 0;
    s->has_service = 0;
    s->streams = 0;
    if (s->stream_open) kpti_kpt_leave(&s->stream);
    s->stream_open = 0;
    atomic_store(&s->noting, 0);
    s->gpu.stopped = 1; /* CUDA does not work in the child of a fork */
}

kpt_status kpti_session_enter(kpti_session *s, kpti_session_error *error)
{
    if (s->pid != getpid()) {
        kpti_session_adopt_in_child(s);
        atomic_flag_clear(&s->inside);
    }
    if (atomic_flag_test_and_set(&s->inside))
        return kpti_session_fail(error, KPT_E_BUSY, "another call is using this trace");
    if (s->tracer.ops) {
        pthread_mutex_lock(&s->control);
        return KPT_OK;
    }
    atomic_flag_clear(&s->inside);
    return kpti_session_fail(error, KPT_E_HANDLE,
                             "this trace is closed, and its recording was freed");
}

kpt_status kpti_session_leave(kpti_session *s, kpt_status status)
{
    pthread_mutex_unlock(&s->control);
    atomic_flag_clear(&s->inside);
    return status;
}
