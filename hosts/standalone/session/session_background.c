#include "hosts/standalone/session/session_background.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "hosts/standalone/background/crash_flush.h"
#include "hosts/standalone/session/session_export.h"
#include "hosts/standalone/session/session_stream.h"
#include "hosts/standalone/session/session_triggers.h"
#include "writers/formats.h"

enum { NS_PER_SECOND = 1000 * 1000 * 1000 };

static void last_flush(void *session, const struct timespec *until)
{
    kpti_session *s = session;
    if (pthread_mutex_timedlock(&s->control, until) != 0) return;
    kpti_session_flush(s);
    pthread_mutex_unlock(&s->control);
}

void kpti_session_number_path(kpti_session *s, const char *path, char *out, size_t size)
{
    const kpti_format_choice choice = kpti_format_of_path(path);
    const size_t length = strlen(path);
    size_t suffix = (choice.known ? strlen(choice.format->suffix) : 0) + (choice.gzip ? 3 : 0);
    struct stat found;
    int written;
    if (length > 4 && strcmp(path + length - 4, ".kpt") == 0) suffix = 4;
    do { /* keeps the dumps that an earlier process left */
        written = snprintf(out, size, "%.*s.%u%s", (int)(length - suffix), path,
                           atomic_fetch_add(&s->dumps, 1) + 1, path + length - suffix);
    } while (written > 0 && (size_t)written < size && lstat(out, &found) == 0);
}

/* Returns 1 if the file is written. */
static int dump_to(kpti_session *s, const char *path)
{
    static const kpti_session_watch nobody = {NULL, NULL, NULL, NULL};
    kpti_session_count count;
    kpti_session_error error;
    const kpt_status status = kpti_session_write_inside(s, path, &nobody, &count, &error);
    if (status != KPT_OK)
        (void)fprintf(stderr, "kpytrace: cannot write the dump: %s\n", error.text);
    return status == KPT_OK;
}

/* Writes a numbered file, whose information about the program has the line "dump=REASON", and prints where it is. REASON
 * is NULL for a signal. */
static void dump_because(kpti_session *s, const char *reason)
{
    char path[PATH_MAX];
    size_t end;
    int is_written;
    pthread_mutex_lock(&s->control);
    kpti_session_number_path(s, s->dump_path, path, sizeof path);
    end = strlen(s->info);
    if (reason) (void)snprintf(s->info + end, sizeof s->info - end, "dump=%s\n", reason);
    is_written = s->tracer.ops && dump_to(s, path);
    s->info[end] = 0;
    pthread_mutex_unlock(&s->control);
    if (is_written)
        (void)fprintf(stderr, "kpytrace: %s: the trace is in %s\n", reason ? reason : "SIGUSR2",
                      path);
}

static void service_dump(void *session)
{
    dump_because(session, NULL);
}

static void service_flush(void *session)
{
    kpti_session *s = session;
    pthread_mutex_lock(&s->control);
    if (s->stream_open)
        kpti_session_flush(s); /* also collects GPU activity */
    else
        kpti_gpu_collect(&s->gpu);
    pthread_mutex_unlock(&s->control);
    if (s->dump_path[0]) kpti_triggers_look(s, dump_because);
}

/* Writes the recording in memory to the file that the end of the session would write. */
static void save(void *session, const struct timespec *until)
{
    kpti_session *s = session;
    if (pthread_mutex_timedlock(&s->control, until) != 0) return;
    if (s->tracer.ops && !s->is_saved) (void)dump_to(s, s->dump_path);
    pthread_mutex_unlock(&s->control);
}

/* Returns 0, or an errno if the session needs the thread. A recording in memory does not need it, unless it is
 * a flight recorder, and continues without it. */
static int start_sigterm_flush(kpti_session *s, const kpti_session_options *options)
{
    int error;
    if (!(options->flags & KPTI_SESSION_TERM) || !(s->streams || s->dump_path[0])) return 0;
    s->sigterm_flush.act = s->streams ? last_flush : save;
    s->sigterm_flush.ctx = s;
    error = kpti_sigterm_flush_add(&s->sigterm_flush);
    return s->streams || options->flags & KPTI_SESSION_RING ? error : 0;
}

kpt_status kpti_session_start_service(kpti_session *s, const kpti_session_options *options,
                                      kpti_session_error *error)
{
    const uint64_t look_ns = kpti_triggers_begin(s, options);
    int os_error;
    kpti_assert(!s->has_service && s->pid == getpid());
    if (options->dump) (void)snprintf(s->dump_path, sizeof s->dump_path, "%s", options->dump);
    s->service.signal = options->dump ? (int)options->dump_signal : 0;
    s->service.at_signal = service_dump;
    /* GPU events are collected at intervals: they are compressed in the log, while the plugin's own buffers of
     * them are larger and limited. */
    if (s->streams || s->gpu.tracer.ops)
        s->service.interval_ns = options->flush_ns ? options->flush_ns : NS_PER_SECOND;
    if (look_ns && (!s->service.interval_ns || look_ns < s->service.interval_ns))
        s->service.interval_ns = look_ns;
    s->service.at_interval = service_flush;
    s->service.ctx = s;
    os_error = start_sigterm_flush(s, options);
    if (os_error)
        return kpti_session_fail(error, KPT_E_BUSY,
                                 "cannot start the thread that waits for SIGTERM: %s",
                                 strerror(os_error));
    if (!s->service.signal && !s->service.interval_ns) return KPT_OK;
    os_error = kpti_service_thread_start(&s->service);
    s->has_service = !os_error;
    if (s->has_service) kpti_triggers_turn_on(s);
    if (s->has_service && s->streams && options->flags & KPTI_SESSION_CRASH)
        kpti_crash_watch(&s->service, options->chained_signals);
    if (os_error && s->service.signal)
        return kpti_session_fail(error, KPT_E_BUSY,
                                 "cannot handle signal %d, which requests a dump, or start the "
                                 "thread that writes the dump: %s",
                                 s->service.signal, strerror(os_error));
    if (os_error)
        return kpti_session_fail(error, KPT_E_BUSY,
                                 "cannot start the thread that writes at intervals: %s",
                                 strerror(os_error));
    return KPT_OK;
}

void kpti_session_pause_service(kpti_session *s)
{
    if (s->streams && s->pid == getpid()) kpti_sigterm_flush_pause(&s->sigterm_flush);
    if (!s->has_service || s->pid != getpid()) return;
    kpti_triggers_turn_off(s);
    kpti_crash_unwatch(&s->service);
    kpti_service_thread_pause(&s->service);
}

/* A stream is now complete. A recording in memory is not written yet. SIGTERM writes it until the user writes
 * it or closes the session. */
void kpti_session_end_service(kpti_session *s)
{
    if (s->streams) kpti_sigterm_flush_remove(&s->sigterm_flush);
    if (!s->has_service) return;
    s->has_service = 0;
    if (s->pid == getpid()) (void)kpti_service_thread_end(&s->service);
}
