#include "hosts/standalone/session/session_background.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hosts/standalone/background/crash_flush.h"
#include "hosts/standalone/session/session_export.h"
#include "hosts/standalone/session/session_stream.h"
#include "writers/formats.h"

enum { NS_PER_SECOND = 1000 * 1000 * 1000 };

static void keeper_flush(void *session)
{
    kpti_session *s = session;
    pthread_mutex_lock(&s->control);
    if (s->stream_open)
        kpti_session_flush(s); /* also collects GPU activity */
    else
        kpti_gpu_collect(&s->gpu);
    pthread_mutex_unlock(&s->control);
}

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

static void dump_to(kpti_session *s, const char *path)
{
    static const kpti_session_watch nobody = {NULL, NULL, NULL, NULL};
    kpti_session_count count;
    kpti_session_error error;
    const kpt_status status = kpti_session_write_inside(s, path, &nobody, &count, &error);
    if (status != KPT_OK) (void)fprintf(stderr, "kpytrace: no dump: %s\n", error.text);
}

static void keeper_dump(void *session)
{
    kpti_session *s = session;
    char path[PATH_MAX];
    pthread_mutex_lock(&s->control);
    kpti_session_number_path(s, s->dump_path, path, sizeof path);
    dump_to(s, path);
    pthread_mutex_unlock(&s->control);
}

/* Writes the recording in memory to the file that the end of the session would write. */
static void save(void *session, const struct timespec *until)
{
    kpti_session *s = session;
    if (pthread_mutex_timedlock(&s->control, until) != 0) return;
    if (s->tracer.ops && !s->is_saved) dump_to(s, s->dump_path);
    pthread_mutex_unlock(&s->control);
}

/* Returns 0, or an errno if the session needs the thread. A recording in memory does not need it, unless it is
 * a flight recorder, and continues without it. */
static int start_farewell(kpti_session *s, const kpti_session_options *options)
{
    int error;
    if (!(options->flags & KPTI_SESSION_TERM) || !(s->streams || s->dump_path[0])) return 0;
    s->farewell.act = s->streams ? last_flush : save;
    s->farewell.ctx = s;
    error = kpti_farewell_add(&s->farewell);
    return s->streams || options->flags & KPTI_SESSION_RING ? error : 0;
}

kpt_status kpti_session_start_keeper(kpti_session *s, const kpti_session_options *options,
                                     kpti_session_error *error)
{
    int os_error;
    if (options->dump) (void)snprintf(s->dump_path, sizeof s->dump_path, "%s", options->dump);
    s->keeper.signal = options->dump ? (int)options->dump_signal : 0;
    s->keeper.at_signal = keeper_dump;
    /* GPU events are collected at intervals: they are compressed in the log, while the plugin's own buffers of
     * them are larger and limited. */
    if (s->streams || s->gpu.tracer.ops)
        s->keeper.interval_ns = options->flush_ns ? options->flush_ns : NS_PER_SECOND;
    s->keeper.at_interval = keeper_flush;
    s->keeper.ctx = s;
    os_error = start_farewell(s, options);
    if (os_error)
        return kpti_session_fail(error, KPT_E_BUSY, "the thread that waits for SIGTERM: %s",
                                 strerror(os_error));
    if (!s->keeper.signal && !s->keeper.interval_ns) return KPT_OK;
    os_error = kpti_keeper_start(&s->keeper);
    s->has_keeper = !os_error;
    if (s->has_keeper && s->streams && options->flags & KPTI_SESSION_CRASH)
        kpti_crash_watch(&s->keeper, options->chained_signals);
    if (os_error && s->keeper.signal)
        return kpti_session_fail(error, KPT_E_BUSY,
                                 "signal %d, which dumps, or the thread that does it: %s",
                                 s->keeper.signal, strerror(os_error));
    if (os_error)
        return kpti_session_fail(error, KPT_E_BUSY, "the thread that writes at intervals: %s",
                                 strerror(os_error));
    return KPT_OK;
}

void kpti_session_rest_keeper(kpti_session *s)
{
    if (s->streams && s->pid == getpid()) kpti_farewell_rest(&s->farewell);
    if (!s->has_keeper || s->pid != getpid()) return;
    kpti_crash_unwatch(&s->keeper);
    kpti_keeper_rest(&s->keeper);
}

/* A stream is now complete. A recording in memory is not written yet. SIGTERM writes it until the user writes
 * it or closes the session. */
void kpti_session_end_keeper(kpti_session *s)
{
    if (s->streams) kpti_farewell_remove(&s->farewell);
    if (!s->has_keeper) return;
    s->has_keeper = 0;
    if (s->pid == getpid()) (void)kpti_keeper_end(&s->keeper);
}
