#include "hosts/standalone/session/session_stream.h"

#include <errno.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "hosts/standalone/session/session_entry.h"

int kpti_session_begin_stream(kpti_session *s, const char *path)
{
    int error;
    kpti_assert(!s->stream_open);
    (void)snprintf(s->stream_path, sizeof s->stream_path, "%s", path);
    error = kpti_kpt_create(&s->stream, path, 1, s->traced_pid, s->base_ns, kpt_str_of(s->info));
    s->streams = s->stream_open = !error;
    if (!error && !s->no_compress) (void)kpti_kpt_pack(&s->stream);
    return error;
}

/* A note that was written to the file is dropped from memory, since a program may make any number of them.
 * Readers of a stream load its notes from the file. Notes that could not be written are kept for the next
 * flush. */
static void put_notes(kpti_session *s)
{
    uint32_t end;
    pthread_mutex_lock(&s->notes_lock);
    kpti_kpt_put_notes(&s->stream, &s->notes);
    end = kpti_notes_first(&s->notes) + s->notes.count;
    kpti_assert(s->stream.notes < end && s->stream.notes + 1 >= kpti_notes_first(&s->notes));
    kpti_notes_keep_last(&s->notes, end - (s->stream.notes + 1));
    pthread_mutex_unlock(&s->notes_lock);
}

/* The same for GPU activity. */
static void put_gpu(kpti_session *s)
{
    s->gpu.log.counts.dropped += kpti_gpu_put(&s->stream, &s->gpu.log, &s->gpu_written);
    kpti_gpu_log_forget(&s->gpu.log);
}

kpt_status kpti_session_sink(void *session, const kpt_chunk *chunk)
{
    kpti_session *s = session;
    /* A child must not write its parent's file, and a tracer that is being destroyed has nothing left to write. */
    if (!s->stream_open || s->pid != getpid()) return KPT_E_IO;
    return kpti_kpt_put_chunk(&s->stream, chunk);
}

void kpti_session_flush(kpti_session *s)
{
    if (!s->stream_open) return;
    kpti_assert(s->pid == getpid() && s->tracer.ops); /* the stream is the parent's file */
    if (kpti_has_chunks(&s->tracer)) (void)s->tracer.ops->get_chunks(s->tracer.self, NULL);
    kpti_kpt_drain(&s->stream);
    put_notes(s);
    kpti_gpu_collect(&s->gpu);
    put_gpu(s);
}

/* --- a recording of memory in the same file ------------------------------------------------------ */

void kpti_session_describe_memory(kpti_session *s)
{
    const size_t end = strlen(s->info);
    (void)snprintf(s->info + end, sizeof s->info - end, "recording=calls and memory\n");
}

static void accept_memory(kpti_session *s, int accepts)
{
    pthread_mutex_lock(&s->memory_lock);
    s->takes_memory = accepts;
    pthread_mutex_unlock(&s->memory_lock);
}

static kpt_status join_inside(kpti_session *s, kpti_session_error *error)
{
    if (!s->stream_open)
        return kpti_session_fail(
            error, KPT_E_STATE,
            "this trace writes no .kpt file that memory could be recorded into");
    if (s->has_memory)
        return kpti_session_fail(error, KPT_E_STATE,
                                 "%.180s has a recording of memory already: choose another path",
                                 s->stream_path);
    s->has_memory = 1;
    kpti_session_describe_memory(s);
    kpti_kpt_put_info(&s->stream, kpt_str_of(s->info));
    accept_memory(s, 1);
    return KPT_OK;
}

kpt_status kpti_session_join_memory(kpti_session *s, kpti_session_error *error)
{
    const kpt_status status = kpti_session_enter(s, error);
    return status == KPT_OK ? kpti_session_leave(s, join_inside(s, error)) : status;
}

int kpti_session_put_memory(kpti_session *s, const void *record, uint64_t size)
{
    int error = ESHUTDOWN;
    pthread_mutex_lock(&s->memory_lock);
    if (s->takes_memory) error = kpti_kpt_put_memory(&s->stream, record, size);
    pthread_mutex_unlock(&s->memory_lock);
    return error;
}

const char *kpti_session_memory_path(const kpti_session *s, kpti_session_error *error)
{
    if (kpti_kpt_is_in_place(&s->stream)) return s->stream_path;
    (void)kpti_session_fail_io(error, ESTALE, s->stream_path);
    return NULL;
}

/* --- the end ------------------------------------------------------------------------------------- */

kpt_status kpti_session_fail_replaced(const kpti_session *s, kpti_session_error *error)
{
    return kpti_session_fail(error, KPT_E_IO,
                             "%.180s was replaced or removed since the trace was written there",
                             s->stream_path);
}

kpt_status kpti_session_end_stream(kpti_session *s, kpti_session_error *error)
{
    const char *memory;
    uint64_t lost;
    int os_error;
    if (!s->stream_open) return KPT_OK;
    kpti_assert(s->pid == getpid());
    s->stream_open = 0;
    accept_memory(s, 0);
    put_notes(s);
    put_gpu(s);
    if (s->gpu.stopped) kpti_gpu_put_counts(&s->stream, &s->gpu.log);
    kpti_kpt_drain(&s->stream);
    lost = s->stream.lost_bytes;
    os_error = kpti_kpt_close(&s->stream, 1);
    if (!os_error) return KPT_OK;
    if (os_error == ESTALE) return kpti_session_fail_replaced(s, error);
    memory = s->stream.lost_memory ? " and all later allocations" : "";
    (void)kpti_session_fail(
        error, KPT_E_IO, "%.180s: %s; %llu events%s were lost, the rest of the file is whole",
        s->stream_path, strerror(os_error), (unsigned long long)(lost / sizeof(uint64_t)), memory);
    error->os_error = os_error;
    return KPT_E_IO;
}
