#include "hosts/standalone/session/memory_recording.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "hosts/standalone/background/sigterm_flush.h"
#include "hosts/standalone/session/memory_file.h"
#include "hosts/standalone/session/session_stream.h"
#include "writers/kpt/kpt_writer.h"
#include "writers/memory/memory_aggregate.h"

struct kpti_recording {
    kpti_plugin_client client;
    kpt_memory_tracer tracer;
    char noop_reason[256];
    _Atomic pid_t recording_pid; /* the process that is recorded; 0 while it does not record */
    kpti_sigterm_flush sigterm_flush;
    _Atomic int is_leaving; /* the SIGTERM thread exports */
    char term_path[PATH_MAX];
    kpti_recording_kind kind; /* the next seven: only if it is written while it runs */
    pid_t stream_pid;         /* 0: it is kept in memory */
    int stream_open;
    int is_named;                     /* the spool is still at its path */
    _Atomic int stream_error;         /* an errno: the tracer delivers nothing more */
    kpti_session *session;            /* it has the stream, or NULL */
    kpti_memory_aggregate *aggregate; /* instead of a file, for its kind */
    kpti_kpt_writer stream;
    char stream_path[PATH_MAX];
};

/* The maximum wait. The waiting thread may hold the GIL, and the other call may need it. */
enum { NAP_NS = 1000000, MAX_NAPS = 2000 };

static void nap(void)
{
    const struct timespec time = {0, NAP_NS};
    (void)nanosleep(&time, NULL);
}

static kpt_status make_inside(kpti_recording *r, const char *plugin, const kpt_memory_args *args,
                              kpti_session_error *error)
{
    kpt_status status = kpti_plugin_client_open(&r->client, plugin, NULL, error);
    if (status != KPT_OK) return status;
    status = kpti_plugin_client_make_memory(&r->client, args, &r->tracer, error);
    if (status != KPT_OK) {
        kpti_plugin_client_close(&r->client);
        return status;
    }
    if (!(r->tracer.flags & KPT_OBJECT_NOOP)) return KPT_OK;
    (void)r->tracer.ops->last_error(r->tracer.self, r->noop_reason, sizeof r->noop_reason, NULL);
    if (!r->noop_reason[0])
        (void)snprintf(r->noop_reason, sizeof r->noop_reason, "the plugin gave no reason");
    return KPT_OK;
}

kpt_status kpti_recording_make(const char *plugin, const kpt_memory_args *args,
                               kpti_recording **out, kpti_session_error *error)
{
    kpti_recording *r = calloc(1, sizeof *r);
    kpt_status status;
    *out = NULL;
    if (!r) return kpti_session_fail(error, KPT_E_MEMORY, "no memory for a recording");
    status = make_inside(r, plugin, args, error);
    if (status == KPT_OK)
        *out = r;
    else
        free(r);
    return status;
}

const char *kpti_recording_noop_reason(const kpti_recording *recording)
{
    return recording->noop_reason[0] ? recording->noop_reason : NULL;
}

/* Returns STATUS. Unless it is KPT_OK, ERROR receives the plugin's text. */
static kpt_status tell(const kpti_recording *r, kpt_status status, const char *what,
                       kpti_session_error *error)
{
    if (status == KPT_OK) return status;
    return kpti_session_fail_of(error, status, what, r->tracer.ops->last_error, r->tracer.self);
}

/* --- the stream --------------------------------------------------------------------------------- */

/* A kpt_memory_sink_fn. Runs on any thread of the program, in the middle of an allocation: the writer's lock is held only
 * while it writes. */
static kpt_status write_record(void *recording, const void *record, uint64_t size)
{
    kpti_recording *r = recording;
    int error;
    if (r->stream_pid != getpid()) return KPT_E_STATE; /* the file is the parent's */
    if (r->kind == KPTI_RECORDING_AGGREGATE) {
        const kpt_status status = kpti_memory_aggregate_take(r->aggregate, record, size);
        if (status != KPT_OK) atomic_store(&r->stream_error, ENOMEM);
        return status;
    }
    error = r->session ? kpti_session_put_memory(r->session, record, size)
                       : kpti_kpt_put_memory(&r->stream, record, size);
    if (!error) return KPT_OK;
    atomic_store(&r->stream_error, error);
    return KPT_E_IO;
}

/* Whether the stream goes to a file of the user's, which is complete when the recording is stopped. */
static int is_users(kpti_recording_kind kind)
{
    return kind == KPTI_RECORDING_FILE || kind == KPTI_RECORDING_JOINED;
}

/* In the child of a fork the file is the parent's. What the parent added up is not freed there: one of its threads may have
 * been in the middle of a change. */
static void leave_stream(kpti_recording *r)
{
    if (!r->stream_open) return;
    r->stream_open = 0;
    if (r->session) {
        r->session = NULL;
    } else if (r->kind == KPTI_RECORDING_AGGREGATE) {
        if (r->stream_pid == getpid()) kpti_memory_aggregate_free(r->aggregate);
        r->aggregate = NULL;
    } else if (r->stream_pid == getpid())
        (void)kpti_kpt_close(&r->stream, r->kind == KPTI_RECORDING_FILE);
    else
        kpti_kpt_leave(&r->stream);
}

/* What was streamed before, if anything, was the parent's of this process. */
static kpt_status prepare_stream(kpti_recording *r, const char *path, kpti_recording_kind kind,
                                 kpti_session_error *error)
{
    if (r->stream_pid && is_users(kind))
        return kpti_session_fail(
            error, KPT_E_STATE,
            "%.180s is written by the parent of this process: make a new recording", path);
    leave_stream(r);
    if (!KPT_HAS(r->tracer.ops, kpt_memory_ops, stream))
        return kpti_session_fail(error, KPT_E_STATE,
                                 "this plugin can't write a recording while it runs");
    atomic_store(&r->stream_error, 0);
    return KPT_OK;
}

/* The tracer delivers to the stream from here on. */
static kpt_status begin_stream(kpti_recording *r, kpti_session_error *error)
{
    r->stream_pid = getpid();
    r->stream_open = 1;
    if (r->kind == KPTI_RECORDING_UNNAMED) kpti_recording_drop_spool(r);
    return tell(r, r->tracer.ops->stream(r->tracer.self, write_record, r),
                "memory can't be recorded", error);
}

/* Creates the file at PATH. */
static kpt_status create_file(kpti_recording *r, const char *path, kpti_recording_kind kind,
                              kpt_str info, kpti_session_error *error)
{
    const int64_t base_ns = (int64_t)time(NULL) * 1000000000;
    char text[4096];
    int number;
    if (strlen(path) >= sizeof r->stream_path)
        return kpti_session_fail_io(error, ENAMETOOLONG, path);
    memset(&r->stream, 0, sizeof r->stream);
    (void)snprintf(text, sizeof text, "version=%.*s\nrecording=memory\n%.*s",
                   (int)r->client.info.version.size, r->client.info.version.data, (int)info.size,
                   info.data);
    number = kpti_kpt_create(&r->stream, path, 1, (uint64_t)getpid(), base_ns, kpt_str_of(text));
    if (number) return kpti_session_fail_io(error, number, path);
    (void)snprintf(r->stream_path, sizeof r->stream_path, "%s", path);
    r->kind = kind;
    r->is_named = 1;
    return KPT_OK;
}

static kpt_status make_aggregate(kpti_recording *r, kpti_session_error *error)
{
    r->aggregate = kpti_memory_aggregate_make();
    if (!r->aggregate) return kpti_session_fail(error, KPT_E_MEMORY, "no memory for a recording");
    r->kind = KPTI_RECORDING_AGGREGATE;
    r->is_named = 0;
    return KPT_OK;
}

kpt_status kpti_recording_stream(kpti_recording *r, const char *path, kpti_recording_kind kind,
                                 kpt_str info, kpti_session_error *error)
{
    kpt_status status;
    if (r->stream_pid == getpid()) return KPT_OK;
    status = prepare_stream(r, path, kind, error);
    if (status == KPT_OK)
        status = kind == KPTI_RECORDING_AGGREGATE ? make_aggregate(r, error)
                                                  : create_file(r, path, kind, info, error);
    return status == KPT_OK ? begin_stream(r, error) : status;
}

kpt_status kpti_recording_join(kpti_recording *r, kpti_session *session, kpti_session_error *error)
{
    const char *path = kpti_session_memory_path(session, error);
    kpt_status status;
    if (!path) return error->status;
    if (r->stream_pid == getpid()) return KPT_OK;
    status = prepare_stream(r, path, KPTI_RECORDING_JOINED, error);
    if (status == KPT_OK) status = kpti_session_join_memory(session, error);
    if (status != KPT_OK) return status;
    (void)snprintf(r->stream_path, sizeof r->stream_path, "%s", path);
    r->session = session;
    r->kind = KPTI_RECORDING_JOINED;
    return begin_stream(r, error);
}

void kpti_recording_drop_spool(kpti_recording *r)
{
    if (r->stream_pid != getpid() || is_users(r->kind) || !r->is_named) return;
    r->is_named = 0;
    if (kpti_kpt_is_in_place(&r->stream)) (void)unlink(r->stream_path);
}

/* Returns KPT_OK, or the error that the file lacks a part of the recording. The stop of a session reports that of its
 * own stream. */
static kpt_status check_stream(const kpti_recording *r, int number, kpti_session_error *error)
{
    if (atomic_load(&r->stream_error)) number = atomic_load(&r->stream_error);
    if (!number || (r->session && number != ESHUTDOWN)) return KPT_OK;
    if (r->kind == KPTI_RECORDING_AGGREGATE)
        return kpti_session_fail(
            error, KPT_E_MEMORY,
            "there is no memory for more stacks and blocks of the recording: what "
            "was allocated after that is not in it");
    if (number == ESHUTDOWN)
        return kpti_session_fail(
            error, KPT_E_IO,
            "the trace of %.180s ended first: what was allocated after that is "
            "not recorded",
            r->stream_path);
    if (number == ESTALE)
        return kpti_session_fail(error, KPT_E_IO,
                                 "%.180s was replaced or removed since the recording was begun",
                                 r->stream_path);
    (void)kpti_session_fail(
        error, KPT_E_IO,
        "%.180s: %s; what was allocated after that is not recorded, the file is "
        "whole up to there",
        r->stream_path, strerror(number));
    error->os_error = number;
    return KPT_E_IO;
}

kpt_status kpti_recording_flush(kpti_recording *r, kpti_session_error *error)
{
    kpt_status status;
    if (r->stream_pid != getpid() || !r->stream_open) return KPT_OK;
    status = r->tracer.ops->stream(r->tracer.self, write_record, r);
    return status == KPT_E_IO ? check_stream(r, 0, error)
                              : tell(r, status, "memory can't be written", error);
}

/* Ends the file of the user's. */
static kpt_status end_stream(kpti_recording *r, kpti_session_error *error)
{
    if (r->stream_pid != getpid()) return KPT_OK; /* the file is the parent's */
    if (!r->stream_open || !is_users(r->kind)) return check_stream(r, 0, error);
    r->stream_open = 0;
    if (r->session) return check_stream(r, 0, error);
    return check_stream(r, kpti_kpt_close(&r->stream, 1), error);
}

static kpt_status write_aggregate(kpti_recording *r, const char *path, kpti_session_error *error)
{
    const int number = kpti_memory_aggregate_write(r->aggregate, path);
    if (!number) return check_stream(r, 0, error);
    if (number == EINVAL)
        return kpti_session_fail(error, KPT_E_UNSUPPORTED,
                                 "an aggregated recording of memory has no history, so it becomes "
                                 ".tables.json or .html: %.180s",
                                 path);
    return kpti_session_fail_io(error, number, path);
}

/* Makes PATH from what is in the stream. The file is read through its descriptor: it may have no name any more. */
static kpt_status convert(kpti_recording *r, const kpti_memory_wanted *wanted, const char *path,
                          kpti_session_error *error)
{
    char source[PATH_MAX];
    kpti_kpt_state state;
    kpt_status status;
    if (r->session && !kpti_session_memory_path(r->session, error)) return error->status;
    if (r->stream_open) (void)r->tracer.ops->stream(r->tracer.self, write_record, r);
    if (r->kind == KPTI_RECORDING_AGGREGATE) return write_aggregate(r, path, error);
    if (r->stream_open && !r->session) {
        (void)snprintf(source, sizeof source, "/proc/self/fd/%d", r->stream.fd);
    } else {
        (void)snprintf(source, sizeof source, "%s", r->stream_path);
    }
    status = kpti_memory_file_convert(source, 0, wanted, path, &state, error);
    if (status == KPT_OK) return check_stream(r, 0, error);
    if (r->kind == KPTI_RECORDING_SPOOL && r->is_named && kpti_kpt_is_in_place(&r->stream)) {
        const size_t end = strlen(error->text);
        (void)snprintf(error->text + end, sizeof error->text - end,
                       "; the recording stays in %.180s, and kpytrace convert makes the file of it",
                       r->stream_path);
    }
    return status;
}

/* --- calls of the tracer ------------------------------------------------------------------------ */

/* The plugin accepts one call at a time. If the export at SIGTERM is inside, this function waits for it and
 * tries again. */
static kpt_status call_without_sigterm_flush(kpti_recording *r, kpt_status (*call)(kpt_handle self))
{
    kpt_status status = call(r->tracer.self);
    for (int i = 0; status == KPT_E_BUSY && atomic_load(&r->is_leaving) && i < MAX_NAPS; i++) {
        nap();
        status = call(r->tracer.self);
    }
    return status;
}

kpt_status kpti_recording_start(kpti_recording *r, kpti_session_error *error)
{
    kpt_status status;
    if (r->stream_pid == getpid() && !r->stream_open)
        return kpti_session_fail(error, KPT_E_STATE, "%.180s is complete: make a new recording",
                                 r->stream_path);
    status = call_without_sigterm_flush(r, r->tracer.ops->start);
    if (status == KPT_OK) atomic_store(&r->recording_pid, getpid());
    return tell(r, status, "memory can't be recorded", error);
}

kpt_status kpti_recording_stop(kpti_recording *r, kpti_session_error *error)
{
    const kpt_status status = call_without_sigterm_flush(r, r->tracer.ops->stop);
    if (status != KPT_OK) return tell(r, status, "recording can't be stopped", error);
    atomic_store(&r->recording_pid, 0);
    return end_stream(r, error);
}

int kpti_recording_is_recording(const kpti_recording *r)
{
    return atomic_load(&r->recording_pid) == getpid();
}

kpt_status kpti_recording_export(kpti_recording *r, const kpti_memory_wanted *wanted,
                                 const char *path, kpti_session_error *error)
{
    const int is_in_a_file = r->stream_pid == getpid() && r->kind != KPTI_RECORDING_AGGREGATE;
    if (!is_in_a_file && (wanted->has_at || wanted->temporary_within))
        return kpti_session_fail(error, KPT_E_UNSUPPORTED,
                                 "this recording has no history in a file, so its tables are only "
                                 "of the peak, the end and "
                                 "all blocks: record without max_entries and without aggregate");
    if (r->stream_pid == getpid()) return convert(r, wanted, path, error);
    return tell(r, r->tracer.ops->export_memory_history(r->tracer.self, kpt_str_of(path)),
                "memory can't be exported", error);
}

static int is_over(const struct timespec *until)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec >= until->tv_sec;
}

static kpt_status write_all(kpti_recording *r, kpti_session_error *error)
{
    const kpti_memory_wanted wanted = {0};
    if (r->stream_pid != getpid() || !is_users(r->kind))
        return kpti_recording_export(r, &wanted, r->term_path, error);
    return kpti_recording_flush(r, error);
}

static void take_leave(void *recording, const struct timespec *until)
{
    kpti_recording *r = recording;
    kpti_session_error error;
    kpt_status status;
    atomic_store(&r->is_leaving, 1);
    while ((status = write_all(r, &error)) == KPT_E_BUSY && !is_over(until))
        nap(); /* until the call that is inside has ended */
    atomic_store(&r->is_leaving, 0);
    if (status == KPT_OK) kpti_recording_drop_spool(r);
    if (status != KPT_OK) (void)fprintf(stderr, "kpytrace: %s\n", error.text);
}

kpt_status kpti_recording_at_term(kpti_recording *r, const char *path, kpti_session_error *error)
{
    const size_t size = strlen(path) + 1;
    if (size > sizeof r->term_path) return kpti_session_fail_io(error, ENAMETOOLONG, path);
    if (strcmp(r->term_path, path) != 0) memcpy(r->term_path, path, size);
    r->sigterm_flush.act = take_leave;
    r->sigterm_flush.ctx = r;
    (void)kpti_sigterm_flush_add(&r->sigterm_flush); /* recording works without the thread, too */
    return KPT_OK;
}

const kpt_memory_tracer *kpti_recording_tracer(const kpti_recording *r)
{
    return &r->tracer;
}

void kpti_recording_not_at_term(kpti_recording *r)
{
    kpti_sigterm_flush_remove(&r->sigterm_flush);
}

kpt_status kpti_recording_close(kpti_recording *r, kpti_session_error *error)
{
    kpt_status status = call_without_sigterm_flush(r, r->tracer.ops->destroy);
    if (status == KPT_E_HANDLE) return KPT_OK; /* closed already: no change */
    if (status != KPT_OK) return tell(r, status, "the recording can't be freed", error);
    atomic_store(&r->recording_pid, 0);
    leave_stream(r);
    return KPT_OK;
}

void kpti_recording_free(kpti_recording *r)
{
    if (!r) return;
    kpti_sigterm_flush_remove(&r->sigterm_flush);
    (void)r->tracer.ops->destroy(r->tracer.self);
    leave_stream(r);
    kpti_plugin_client_close(&r->client);
    free(r);
}
