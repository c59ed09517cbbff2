#include "hosts/standalone/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/file_descriptor.h"
#include "hosts/standalone/session/recording_source.h"
#include "hosts/standalone/session/session_background.h"
#include "hosts/standalone/session/session_entry.h"
#include "hosts/standalone/session/session_notes.h"
#include "hosts/standalone/session/session_stream.h"

enum { NS_PER_SECOND = KPTI_NS_PER_SECOND };
/* The number of the user's own notes that a flight recorder keeps. */
enum { RING_NOTES = 1 << 16 };

/* The name that `ps` shows. */
static void process_name(char *buffer, size_t size)
{
    const int fd = kpti_descriptor_open("/proc/self/comm", O_RDONLY);
    const ssize_t length = fd < 0 ? 0 : read(fd, buffer, size - 1);
    if (fd >= 0) (void)close(fd);
    buffer[length > 0 ? length : 0] = 0;
    buffer[strcspn(buffer, "\n")] = 0;
}

/* Returns a session whose plugin is open, or NULL with an error. */
static kpti_session *make_session(const char *plugin, const kpt_host *callbacks,
                                  kpti_session_error *error)
{
    kpti_session *s = calloc(1, sizeof *s);
    if (!s) {
        (void)kpti_session_fail(error, KPT_E_MEMORY, "no memory for a session");
        return NULL;
    }
    atomic_flag_clear(&s->inside);
    (void)pthread_mutex_init(&s->control, NULL);
    (void)pthread_mutex_init(&s->notes_lock, NULL);
    (void)pthread_mutex_init(&s->memory_lock, NULL);
    s->pid = getpid();
    s->traced_pid = (uint64_t)s->pid;
    s->base_ns = kpti_unix_ns() / NS_PER_SECOND * NS_PER_SECOND;
    if (kpti_plugin_client_open(&s->client, plugin, callbacks, error) != KPT_OK) {
        kpti_session_free(s);
        return NULL;
    }
    s->client.on_task = kpti_session_note_task;
    s->client.on_task_ctx = s;
    return s;
}

/* --- start and open --------------------------------------------------------------------------- */

static kpt_status make_tracer(kpti_session *s, kpt_tracer_args args, uint32_t flags,
                              kpti_session_error *error)
{
    kpt_chunk_sink sink;
    kpt_status status;
    KPT_INIT(&sink);
    sink.flags = KPT_CHUNKS_WHOLE;
    sink.sealed = kpti_session_sink;
    sink.chunk_ctx = s;
    if (s->streams) args.chunk_sink = &sink;
    status = kpti_plugin_client_make(&s->client, &args, &s->tracer, error);
    if (status == KPT_E_UNSUPPORTED && args.flags & KPT_TRACE_TASKS) { /* a plugin of 1.0 */
        args.flags &= ~(uint32_t)KPT_TRACE_TASKS;
        status = kpti_plugin_client_make(&s->client, &args, &s->tracer, error);
    }
    if (status != KPT_OK) return status;
    if (s->tracer.flags & KPT_OBJECT_NOOP) {
        (void)s->tracer.ops->last_error(s->tracer.self, s->noop_reason, sizeof s->noop_reason,
                                        NULL);
        if (!s->noop_reason[0])
            (void)snprintf(s->noop_reason, sizeof s->noop_reason, "the plugin gave no reason");
    }
    if (!(flags & KPTI_SESSION_GC)) return KPT_OK;
    status = s->tracer.ops->register_gc_callback(s->tracer.self);
    if (status == KPT_OK) return KPT_OK;
    return kpti_session_fail_of_tracer(&s->tracer, error, status,
                                       "garbage collections can't be recorded");
}

static void write_info(kpti_session *s, kpt_str more)
{
    char name[64];
    process_name(name, sizeof name);
    (void)snprintf(s->info, sizeof s->info, "version=%.*s\nprocess=%s\n%.*s",
                   (int)s->client.info.version.size, s->client.info.version.data, name,
                   (int)(more.size < sizeof s->info / 2 ? more.size : sizeof s->info / 2),
                   more.size ? more.data : "");
    if (s->has_memory) kpti_session_describe_memory(s);
}

kpt_status kpti_session_set_info(kpti_session *s, kpt_str info, kpti_session_error *error)
{
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    write_info(s, info);
    if (s->stream_open) kpti_kpt_put_info(&s->stream, kpt_str_of(s->info));
    return kpti_session_leave(s, KPT_OK);
}

static kpt_status start_inside(kpti_session *s, const kpt_tracer_args *args,
                               const kpti_session_options *options, kpti_session_error *error)
{
    kpt_status status;
    int os_error = 0;
    write_info(s, options->info);
    if (options->flags & KPTI_SESSION_RING) s->most_notes = RING_NOTES;
    s->no_compress = (options->flags & KPTI_SESSION_NO_COMPRESS) != 0;
    if (options->stream) os_error = kpti_session_begin_stream(s, options->stream);
    if (os_error) return kpti_session_fail_io(error, os_error, options->stream);
    kpti_gpu_start(&s->gpu, &s->client, options->gpu, (options->flags & KPTI_SESSION_RING) != 0);
    status = make_tracer(s, *args, options->flags, error);
    return status == KPT_OK ? kpti_session_start_service(s, options, error) : status;
}

/* Frees a session that failed to start or open. */
static kpt_status hand_out(kpti_session *s, kpt_status status, kpti_session **out)
{
    if (status == KPT_OK)
        *out = s;
    else
        kpti_session_free(s);
    return status;
}

kpt_status kpti_session_start(const char *plugin, const kpt_tracer_args *args,
                              const kpti_session_options *options, kpti_session **out,
                              kpti_session_error *error)
{
    kpti_session *s = make_session(plugin, options->callbacks, error);
    *out = NULL;
    if (!s) return error->status;
    return hand_out(s, start_inside(s, args, options, error), out);
}

static kpt_status open_inside(kpti_session *s, const char *path, int recover,
                              kpti_session_error *error)
{
    kpt_status status =
        kpti_session_load(s, path, &s->reader, &s->notes, &s->gpu.log, &s->tracer, error);
    if (status != KPT_OK) return status;
    s->stopped = 1;
    s->base_ns = s->reader.base_ns;
    s->traced_pid = s->reader.pid;
    if (s->reader.info.size)
        (void)snprintf(
            s->info, sizeof s->info, "%.*s",
            (int)(s->reader.info.size < sizeof s->info ? s->reader.info.size : sizeof s->info),
            s->reader.info.data);
    if (s->reader.state != KPTI_KPT_DAMAGED || recover) return KPT_OK;
    return kpti_session_fail(error, KPT_E_INVALID,
                             "%.180s: it is damaged at byte %llu of %llu; use --recover to read "
                             "the part before that byte",
                             path, (unsigned long long)s->reader.at,
                             (unsigned long long)s->reader.size);
}

kpt_status kpti_session_open(const char *plugin, const char *path, int recover, kpti_session **out,
                             kpti_session_error *error)
{
    kpti_session *s = make_session(plugin, NULL, error);
    *out = NULL;
    if (!s) return error->status;
    return hand_out(s, open_inside(s, path, recover, error), out);
}

const char *kpti_session_noop_reason(const kpti_session *session)
{
    return session->noop_reason[0] ? session->noop_reason : NULL;
}

void kpti_session_no_compress(kpti_session *session)
{
    session->no_compress = 1;
}

void kpti_session_compact(kpti_session *session)
{
    session->is_compact = 1;
}

uint64_t kpti_session_skipped(const kpti_session *session, uint32_t *kind)
{
    *kind = session->reader.skipped_kind;
    return session->reader.skipped;
}

kpti_kpt_state kpti_session_state(const kpti_session *session)
{
    return session->reader.state;
}

kpt_str kpti_session_info(const kpti_session *session)
{
    return kpt_str_of(session->info);
}

/* --- while it runs, and its end --------------------------------------------------------------- */

/* The caller holds control, and the tracer has stopped. */
static kpt_status stop_inside(kpti_session *s, kpti_session_error *error)
{
    kpt_stats stats;
    kpt_status status;
    kpti_gpu_stop(&s->gpu); /* calls that wait for the GPU are still recorded */
    status = s->tracer.ops->stop(s->tracer.self);
    KPT_INIT(&stats);
    if (status == KPT_E_STATE && s->tracer.ops->get_stats(s->tracer.self, &stats) == KPT_OK &&
        stats.state == KPT_STATE_STOPPED)
        status = KPT_OK;
    if (status != KPT_OK)
        return kpti_session_fail_of_tracer(&s->tracer, error, status, "tracing can't be stopped");
    pthread_mutex_lock(&s->notes_lock); /* from here on the notes are read without this lock */
    s->stopped = 1;
    pthread_mutex_unlock(&s->notes_lock);
    return kpti_session_end_stream(s, error);
}

kpt_status kpti_session_stop(kpti_session *s, kpti_session_error *error)
{
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    pthread_mutex_unlock(&s->control); /* the service thread may wait for it */
    kpti_session_pause_service(s);
    pthread_mutex_lock(&s->control);
    status = stop_inside(s, error);
    kpti_session_end_service(s);
    return kpti_session_leave(s, status);
}

kpt_tracer kpti_session_tracer(kpti_session *session)
{
    atomic_store(&session->may_have_operators, 1);
    return session->tracer;
}

kpt_status kpti_session_stats(kpti_session *s, kpt_stats *out, kpti_session_error *error)
{
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    KPT_INIT(out);
    status = s->tracer.ops->get_stats(s->tracer.self, out);
    if (status != KPT_OK)
        (void)kpti_session_fail_of_tracer(&s->tracer, error, status, "cannot read the counters");
    return kpti_session_leave(s, status);
}

int kpti_session_is_recording(const kpti_session *s)
{
    return s->traced_pid == (uint64_t)getpid() && !atomic_load(&s->stopped);
}

static void close_inside(kpti_session *s)
{
    kpti_session_error ignored;
    kpti_session_pause_service(s);
    if (!s->streams) kpti_sigterm_flush_remove(&s->sigterm_flush);
    atomic_store(&s->closing, 1);
    while (atomic_load(&s->noting))
        (void)sched_yield();
    if (s->tracer.ops) {
        if (!s->stopped && s->stream_open) (void)stop_inside(s, &ignored);
        (void)s->tracer.ops->destroy(s->tracer.self);
    }
    s->tracer.ops = NULL;
    atomic_store(&s->stopped, 1);
    if (s->stream_open) (void)kpti_session_end_stream(s, &ignored);
    kpti_gpu_free(&s->gpu); /* before the file, since its log may borrow from it */
    kpti_session_end_service(s);
    if (s->client.info.self) kpti_plugin_client_close(&s->client);
    s->client.info.self = 0;
    kpti_notes_free(&s->notes);
    kpti_kpt_unmap(&s->reader);
}

kpt_status kpti_session_close(kpti_session *s, kpti_session_error *error)
{
    kpt_status status = kpti_session_enter(s, error);
    if (status == KPT_E_HANDLE) return KPT_OK; /* closed already: no change */
    if (status != KPT_OK) return status;
    pthread_mutex_unlock(&s->control); /* as in stop */
    close_inside(s);
    pthread_mutex_lock(&s->control);
    return kpti_session_leave(s, KPT_OK);
}

void kpti_session_free(kpti_session *s)
{
    if (!s) return;
    if (s->pid != getpid()) kpti_session_adopt_in_child(s);
    close_inside(s);
    (void)pthread_mutex_destroy(&s->control);
    (void)pthread_mutex_destroy(&s->notes_lock);
    (void)pthread_mutex_destroy(&s->memory_lock);
    free(s);
}
