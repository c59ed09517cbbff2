/* What the tracer records goes to a file, the stream of a session, or sums in memory; other outputs are made of that. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hosts/standalone/memory/memory_file.h"
#include "hosts/standalone/memory/memory_recording.h"
#include "hosts/standalone/memory/memory_recording_state.h"
#include "hosts/standalone/session/session_stream.h"

kpt_status kpti_recording_status(const kpti_recording *r, kpt_status status, const char *what,
                                 kpti_session_error *error)
{
    if (status == KPT_OK) return status;
    return kpti_session_fail_of(error, status, what, r->tracer.ops->last_error, r->tracer.self);
}

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

int kpti_recording_is_of_user(kpti_recording_kind kind)
{
    return kind == KPTI_RECORDING_FILE || kind == KPTI_RECORDING_JOINED;
}

/* In the child of a fork the file is the parent's. What the parent added up is not freed there: one of its threads may have
 * been in the middle of a change. */
void kpti_recording_leave_stream(kpti_recording *r)
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
    if (r->stream_pid && kpti_recording_is_of_user(kind))
        return kpti_session_fail(
            error, KPT_E_STATE,
            "%.180s is written by the parent of this process: make a new recording", path);
    kpti_recording_leave_stream(r);
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
    return kpti_recording_status(r, r->tracer.ops->stream(r->tracer.self, write_record, r),
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
    if (r->stream_pid != getpid() || kpti_recording_is_of_user(r->kind) || !r->is_named) return;
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
                              : kpti_recording_status(r, status, "memory can't be written", error);
}

kpt_status kpti_recording_end_stream(kpti_recording *r, kpti_session_error *error)
{
    if (r->stream_pid != getpid()) return KPT_OK; /* the file is the parent's */
    if (!r->stream_open || !kpti_recording_is_of_user(r->kind)) return check_stream(r, 0, error);
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
kpt_status kpti_recording_convert(kpti_recording *r, const kpti_memory_wanted *wanted,
                                  const char *path, kpti_session_error *error)
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
