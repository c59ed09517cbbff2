#include "host.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "session.h"

enum { NS_PER_SECOND = 1000 * 1000 * 1000 };
/* A flight recorder keeps so many of the user's own notes. */
enum { RING_NOTES = 1 << 16 };

static int64_t unix_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* As `ps` knows the process. */
static void process_name(char *buffer, size_t size)
{
    FILE *file = fopen("/proc/self/comm", "re");
    buffer[0] = 0;
    if (file) {
        if (!fgets(buffer, (int)size, file)) buffer[0] = 0;
        (void)fclose(file);
    }
    buffer[strcspn(buffer, "\n")] = 0;
}

/* A session with its plugin opened; NULL with an error. */
static kpti_session *make_session(const char *plugin, kpti_session_error *error)
{
    kpti_session *s = calloc(1, sizeof *s);
    if (!s) {
        (void)kpti_session_fail(error, KPT_E_MEMORY, "no memory for a session");
        return NULL;
    }
    atomic_flag_clear(&s->inside);
    (void)pthread_mutex_init(&s->control, NULL);
    (void)pthread_mutex_init(&s->notes_lock, NULL);
    s->pid = getpid();
    s->traced_pid = (uint64_t)s->pid;
    s->base_ns = unix_ns() / NS_PER_SECOND * NS_PER_SECOND;
    if (kpti_door_open(&s->door, plugin, error) == KPT_OK) return s;
    kpti_session_free(s);
    return NULL;
}

/* --- one call at a time ----------------------------------------------------------------------- */

/* In the child of a fork: the keeper is not there, and the stream is the parent's. */
static void adopt_in_child(kpti_session *s)
{
    s->pid = getpid();
    (void)pthread_mutex_init(&s->control, NULL);
    (void)pthread_mutex_init(&s->notes_lock, NULL);
    s->has_keeper = 0;
    s->streams = 0;
    if (s->stream_open) (void)close(s->stream.fd);
    s->stream_open = 0;
}

kpt_status kpti_session_enter(kpti_session *s, kpti_session_error *error)
{
    if (s->pid != getpid()) {
        adopt_in_child(s);
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
                             "this trace is closed, and its recording is gone");
}

kpt_status kpti_session_leave(kpti_session *s, kpt_status status)
{
    pthread_mutex_unlock(&s->control);
    atomic_flag_clear(&s->inside);
    return status;
}

/* --- the keeper ------------------------------------------------------------------------------- */

static void keeper_flush(void *session)
{
    kpti_session *s = session;
    pthread_mutex_lock(&s->control);
    kpti_session_flush(s);
    pthread_mutex_unlock(&s->control);
}

void kpti_session_number_path(kpti_session *s, const char *path, char *out, size_t size)
{
    const kpti_format_choice choice = kpti_format_of_path(path);
    const size_t length = strlen(path);
    size_t suffix = (choice.known ? strlen(choice.format->suffix) : 0) + (choice.gzip ? 3 : 0);
    if (length > 4 && strcmp(path + length - 4, ".kpt") == 0) suffix = 4;
    (void)snprintf(out, size, "%.*s.%u%s", (int)(length - suffix), path,
                   atomic_fetch_add(&s->dumps, 1) + 1, path + length - suffix);
}

static void keeper_dump(void *session)
{
    static const kpti_session_watch nobody = {NULL, NULL, NULL, NULL};
    kpti_session *s = session;
    kpti_session_count count;
    kpti_session_error error;
    char path[PATH_MAX];
    kpt_status status;
    pthread_mutex_lock(&s->control);
    kpti_session_number_path(s, s->dump_path, path, sizeof path);
    status = kpti_session_write_inside(s, path, &nobody, &count, &error);
    pthread_mutex_unlock(&s->control);
    if (status != KPT_OK) (void)fprintf(stderr, "kpytrace: no dump: %s\n", error.text);
}

static kpt_status start_keeper(kpti_session *s, const kpti_session_options *options,
                               kpti_session_error *error)
{
    int os_error;
    if (options->dump) (void)snprintf(s->dump_path, sizeof s->dump_path, "%s", options->dump);
    s->keeper.signal = options->dump ? (int)options->dump_signal : 0;
    if (s->streams) s->keeper.interval_ns = options->flush_ns ? options->flush_ns : NS_PER_SECOND;
    if (!s->keeper.signal && !s->keeper.interval_ns) return KPT_OK;
    s->keeper.at_interval = keeper_flush;
    s->keeper.at_signal = keeper_dump;
    s->keeper.ctx = s;
    os_error = kpti_keeper_start(&s->keeper);
    if (os_error)
        return kpti_session_fail(error, KPT_E_BUSY,
                                 "signal %d, which dumps, or the thread that "
                                 "does it: %s",
                                 s->keeper.signal, strerror(os_error));
    s->has_keeper = 1;
    return KPT_OK;
}

static void end_keeper(kpti_session *s)
{
    if (!s->has_keeper) return;
    s->has_keeper = 0;
    if (s->pid == getpid()) kpti_keeper_end(&s->keeper);
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
    status = kpti_door_make(&s->door, &args, &s->tracer, error);
    if (status != KPT_OK) return status;
    if (s->tracer.flags & KPT_OBJECT_NOOP) {
        (void)s->tracer.ops->last_error(s->tracer.self, s->noop_reason, sizeof s->noop_reason,
                                        NULL);
        if (!s->noop_reason[0])
            (void)snprintf(s->noop_reason, sizeof s->noop_reason, "the plugin does not say why");
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
                   (int)s->door.info.version.size, s->door.info.version.data, name,
                   (int)(more.size < sizeof s->info / 2 ? more.size : sizeof s->info / 2),
                   more.size ? more.data : "");
}

static kpt_status start_inside(kpti_session *s, const kpt_tracer_args *args,
                               const kpti_session_options *options, kpti_session_error *error)
{
    kpt_status status;
    int os_error = 0;
    write_info(s, options->info);
    if (options->flags & KPTI_SESSION_RING) s->most_notes = RING_NOTES;
    if (options->stream) os_error = kpti_session_begin_stream(s, options->stream);
    if (os_error) return kpti_session_fail_io(error, os_error, options->stream);
    status = make_tracer(s, *args, options->flags, error);
    return status == KPT_OK ? start_keeper(s, options, error) : status;
}

/* A session that could not begin is freed. */
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
    kpti_session *s = make_session(plugin, error);
    *out = NULL;
    if (!s) return error->status;
    return hand_out(s, start_inside(s, args, options, error), out);
}

kpt_status kpti_session_load(kpti_session *s, const char *path, kpti_kpt_reader *reader,
                             kpti_notes *notes, kpt_tracer *tracer, kpti_session_error *error)
{
    const char *why;
    int os_error = kpti_kpt_open(reader, path, &why);
    if (os_error && !why) return kpti_session_fail_io(error, os_error, path);
    if (os_error) return kpti_session_fail(error, KPT_E_INVALID, "%.180s: %s", path, why);
    reader->notes = notes;
    return kpti_door_load(&s->door, kpti_kpt_next_chunk, reader, tracer, error);
}

static kpt_status open_inside(kpti_session *s, const char *path, int recover,
                              kpti_session_error *error)
{
    kpt_status status = kpti_session_load(s, path, &s->reader, &s->notes, &s->tracer, error);
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
                             "%.180s: it is damaged at byte %llu of %llu; what is before can be "
                             "read with --recover",
                             path, (unsigned long long)s->reader.at,
                             (unsigned long long)s->reader.size);
}

kpt_status kpti_session_open(const char *plugin, const char *path, int recover, kpti_session **out,
                             kpti_session_error *error)
{
    kpti_session *s = make_session(plugin, error);
    *out = NULL;
    if (!s) return error->status;
    return hand_out(s, open_inside(s, path, recover, error), out);
}

const char *kpti_session_noop_reason(const kpti_session *session)
{
    return session->noop_reason[0] ? session->noop_reason : NULL;
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

/* With control: the tracer has stopped. */
static kpt_status stop_inside(kpti_session *s, kpti_session_error *error)
{
    kpt_stats stats;
    kpt_status status = s->tracer.ops->stop(s->tracer.self);
    KPT_INIT(&stats);
    if (status == KPT_E_STATE && s->tracer.ops->get_stats(s->tracer.self, &stats) == KPT_OK &&
        stats.state == KPT_STATE_STOPPED)
        status = KPT_OK;
    if (status != KPT_OK)
        return kpti_session_fail_of_tracer(&s->tracer, error, status, "tracing can't be stopped");
    s->stopped = 1;
    return kpti_session_end_stream(s, error);
}

kpt_status kpti_session_stop(kpti_session *s, kpti_session_error *error)
{
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    pthread_mutex_unlock(&s->control); /* the keeper may be waiting for it */
    end_keeper(s);
    pthread_mutex_lock(&s->control);
    return kpti_session_leave(s, stop_inside(s, error));
}

kpt_status kpti_session_stats(kpti_session *s, kpt_stats *out, kpti_session_error *error)
{
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    KPT_INIT(out);
    status = s->tracer.ops->get_stats(s->tracer.self, out);
    if (status != KPT_OK)
        (void)kpti_session_fail_of_tracer(&s->tracer, error, status, "no counters");
    return kpti_session_leave(s, status);
}

static uint32_t note_inside(kpti_session *s, kpti_note *note)
{
    uint32_t number;
    note->ns = unix_ns();
    note->os_tid = (uint64_t)syscall(SYS_gettid);
    pthread_mutex_lock(&s->notes_lock);
    number = kpti_notes_add(&s->notes, note);
    if (s->most_notes && s->notes.count > 2 * s->most_notes)
        kpti_notes_keep_last(&s->notes, s->most_notes);
    pthread_mutex_unlock(&s->notes_lock);
    if (number) (void)s->tracer.ops->mark(s->tracer.self, KPT_MARK_POINT, number);
    return number;
}

uint32_t kpti_session_note(kpti_session *s, kpti_note note)
{
    uint32_t number = 0;
    atomic_fetch_add(&s->noting, 1);
    if (!atomic_load(&s->closing) && !s->stopped && s->pid == getpid())
        number = note_inside(s, &note);
    atomic_fetch_sub(&s->noting, 1);
    return number;
}

static void close_inside(kpti_session *s)
{
    kpti_session_error ignored;
    end_keeper(s);
    atomic_store(&s->closing, 1);
    while (atomic_load(&s->noting))
        (void)sched_yield();
    if (s->tracer.ops) {
        if (!s->stopped && s->stream_open) (void)stop_inside(s, &ignored);
        (void)s->tracer.ops->destroy(s->tracer.self);
    }
    s->tracer.ops = NULL;
    if (s->stream_open) (void)kpti_session_end_stream(s, &ignored);
    if (s->door.info.self) kpti_door_close(&s->door);
    s->door.info.self = 0;
    kpti_notes_free(&s->notes);
    kpti_kpt_unmap(&s->reader);
}

kpt_status kpti_session_close(kpti_session *s, kpti_session_error *error)
{
    kpt_status status = kpti_session_enter(s, error);
    if (status == KPT_E_HANDLE) return KPT_OK; /* again is no change */
    if (status != KPT_OK) return status;
    pthread_mutex_unlock(&s->control); /* as in stop */
    close_inside(s);
    pthread_mutex_lock(&s->control);
    return kpti_session_leave(s, KPT_OK);
}

void kpti_session_free(kpti_session *s)
{
    if (!s) return;
    if (s->pid != getpid()) adopt_in_child(s);
    close_inside(s);
    (void)pthread_mutex_destroy(&s->control);
    (void)pthread_mutex_destroy(&s->notes_lock);
    free(s);
}
