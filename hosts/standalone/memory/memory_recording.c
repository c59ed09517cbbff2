#include "hosts/standalone/memory/memory_recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hosts/standalone/memory/memory_recording_state.h"

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
    return kpti_recording_status(r, status, "memory can't be recorded", error);
}

kpt_status kpti_recording_stop(kpti_recording *r, kpti_session_error *error)
{
    const kpt_status status = call_without_sigterm_flush(r, r->tracer.ops->stop);
    if (status != KPT_OK)
        return kpti_recording_status(r, status, "recording can't be stopped", error);
    atomic_store(&r->recording_pid, 0);
    return kpti_recording_end_stream(r, error);
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
    if (r->stream_pid == getpid()) return kpti_recording_convert(r, wanted, path, error);
    return kpti_recording_status(
        r, r->tracer.ops->export_memory_history(r->tracer.self, kpt_str_of(path)),
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
    if (r->stream_pid != getpid() || !kpti_recording_is_of_user(r->kind))
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
    if (status != KPT_OK)
        return kpti_recording_status(r, status, "the recording can't be freed", error);
    atomic_store(&r->recording_pid, 0);
    kpti_recording_leave_stream(r);
    return KPT_OK;
}

void kpti_recording_free(kpti_recording *r)
{
    if (!r) return;
    kpti_sigterm_flush_remove(&r->sigterm_flush);
    (void)r->tracer.ops->destroy(r->tracer.self);
    kpti_recording_leave_stream(r);
    kpti_plugin_client_close(&r->client);
    free(r);
}
