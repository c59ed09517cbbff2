#include "host.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "writer.h"

enum { NS_PER_SECOND = 1000 * 1000 * 1000 };

/* Invariant: tracer.ops is set while the session is open; stopped tells what the host was told. */
struct kpti_session {
    atomic_flag inside;
    kpt_plugin_info info;
    kpt_tracer_make_fn make;
    void *make_ctx;
    kpt_tracer tracer;
    int stopped;
    int64_t base_ns; /* the full second in which it began: times in files are since then */
    char noop_reason[256];
};

/* --- errors ----------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static kpt_status
fail(kpti_session_error *error, kpt_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    error->status = status;
    error->os_error = 0;
    return status;
}

/* The text of the other side, behind what we tried. */
static kpt_status fail_of(kpti_session_error *error, kpt_status status, const char *what,
                          kpt_last_error_fn last_error, kpt_handle self)
{
    char text[384] = "";
    if (last_error) (void)last_error(self, text, sizeof text, NULL);
    return fail(error, status, "%s: %s", what, text[0] ? text : kpt_status_name(status));
}

static kpt_status fail_of_tracer(const kpti_session *s, kpti_session_error *error,
                                 kpt_status status, const char *what)
{
    return fail_of(error, status, what, s->tracer.ops->last_error, s->tracer.self);
}

/* --- start ------------------------------------------------------------------------------------ */

static kpt_status register_tracer(void *ctx, kpt_tracer_make_fn make, void *make_ctx)
{
    kpti_session *s = ctx;
    s->make = make;
    s->make_ctx = make_ctx;
    return KPT_OK;
}

static kpt_plugin_entry_fn open_plugin(const char *plugin, kpti_session_error *error)
{
    kpt_plugin_entry_fn entry = NULL;
    /* Never closed: plugins stay loaded, and the loader counts. */
    void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        (void)fail(error, KPT_E_INVALID, "the plugin can't be loaded: %s", dlerror());
        return NULL;
    }
    *(void **)&entry = dlsym(library, KPT_PLUGIN_ENTRY_NAME);
    if (!entry)
        (void)fail(error, KPT_E_INVALID, "%s is no plugin of ABI %d: it has no %s", plugin,
                   KPT_ABI_MAJOR, KPT_PLUGIN_ENTRY_NAME);
    return entry;
}

static kpt_status bind_plugin(kpti_session *s, const char *plugin, kpti_session_error *error)
{
    kpt_plugin_entry_fn entry = open_plugin(plugin, error);
    kpt_host host;
    kpt_status status;
    if (!entry) return error->status;
    KPT_INIT(&host);
    host.ctx = s;
    host.name = kpt_str_of("kpytrace");
    host.register_tracer = register_tracer;
    KPT_INIT(&s->info);
    status = entry(&host, &s->info);
    if (status != KPT_OK)
        return fail_of(error, status, "the plugin refused this host", s->info.last_error, 0);
    if (s->make) return KPT_OK;
    (void)s->info.detach(s->info.self);
    return fail(error, KPT_E_INTERNAL, "%s registered no factory of tracers", plugin);
}

static kpt_status make_tracer(kpti_session *s, const kpt_tracer_args *args, uint32_t flags,
                              kpti_session_error *error)
{
    kpt_status status;
    KPT_INIT(&s->tracer);
    status = s->make(s->make_ctx, args, &s->tracer);
    if (status != KPT_OK)
        return fail_of(error, status, "no tracer", s->info.last_error, s->info.self);
    if (s->tracer.flags & KPT_OBJECT_NOOP) {
        (void)s->tracer.ops->last_error(s->tracer.self, s->noop_reason, sizeof s->noop_reason,
                                        NULL);
        if (!s->noop_reason[0])
            (void)snprintf(s->noop_reason, sizeof s->noop_reason, "the plugin does not say why");
    }
    if (!(flags & KPTI_SESSION_GC)) return KPT_OK;
    status = s->tracer.ops->register_gc_callback(s->tracer.self);
    if (status == KPT_OK) return KPT_OK;
    (void)fail_of_tracer(s, error, status, "garbage collections can't be recorded");
    (void)s->tracer.ops->destroy(s->tracer.self);
    return status;
}

static int64_t this_second_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND;
}

kpt_status kpti_session_start(const char *plugin, const kpt_tracer_args *args, uint32_t flags,
                              kpti_session **out, kpti_session_error *error)
{
    kpti_session *s = calloc(1, sizeof *s);
    kpt_status status;
    *out = NULL;
    if (!s) return fail(error, KPT_E_MEMORY, "no memory for a session");
    atomic_flag_clear(&s->inside);
    s->base_ns = this_second_ns();
    status = bind_plugin(s, plugin, error);
    if (status == KPT_OK) {
        status = make_tracer(s, args, flags, error);
        if (status == KPT_OK) {
            *out = s;
            return KPT_OK;
        }
        (void)s->info.detach(s->info.self);
    }
    free(s);
    return status;
}

const char *kpti_session_noop_reason(const kpti_session *session)
{
    return session->noop_reason[0] ? session->noop_reason : NULL;
}

/* --- one call at a time ----------------------------------------------------------------------- */

/* KPT_OK: the caller is inside an open session, and has to leave. */
static kpt_status enter(kpti_session *s, kpti_session_error *error)
{
    if (atomic_flag_test_and_set(&s->inside))
        return fail(error, KPT_E_BUSY, "another call is using this trace");
    if (s->tracer.ops) return KPT_OK;
    atomic_flag_clear(&s->inside);
    return fail(error, KPT_E_HANDLE, "this trace is closed, and its recording is gone");
}

static kpt_status leave(kpti_session *s, kpt_status status)
{
    atomic_flag_clear(&s->inside);
    return status;
}

static kpt_status enter_stopped(kpti_session *s, kpti_session_error *error)
{
    kpt_status status = enter(s, error);
    if (status != KPT_OK || s->stopped) return status;
    return leave(s, fail(error, KPT_E_STATE, "this trace is still running: stop it first"));
}

kpt_status kpti_session_stop(kpti_session *s, kpti_session_error *error)
{
    kpt_stats stats;
    kpt_status status = enter(s, error);
    if (status != KPT_OK) return status;
    status = s->tracer.ops->stop(s->tracer.self);
    KPT_INIT(&stats);
    if (status == KPT_E_STATE && s->tracer.ops->get_stats(s->tracer.self, &stats) == KPT_OK &&
        stats.state == KPT_STATE_STOPPED)
        status = KPT_OK;
    if (status == KPT_OK)
        s->stopped = 1;
    else
        (void)fail_of_tracer(s, error, status, "tracing can't be stopped");
    return leave(s, status);
}

kpt_status kpti_session_stats(kpti_session *s, kpt_stats *out, kpti_session_error *error)
{
    kpt_status status = enter(s, error);
    if (status != KPT_OK) return status;
    KPT_INIT(out);
    status = s->tracer.ops->get_stats(s->tracer.self, out);
    if (status != KPT_OK) (void)fail_of_tracer(s, error, status, "no counters");
    return leave(s, status);
}

static void close_inside(kpti_session *s)
{
    (void)s->tracer.ops->destroy(s->tracer.self);
    (void)s->info.detach(s->info.self);
    s->tracer.ops = NULL;
}

kpt_status kpti_session_close(kpti_session *s, kpti_session_error *error)
{
    kpt_status status = enter(s, error);
    if (status == KPT_E_HANDLE) return KPT_OK; /* again is no change */
    if (status != KPT_OK) return status;
    close_inside(s);
    return leave(s, KPT_OK);
}

void kpti_session_free(kpti_session *s)
{
    if (s && s->tracer.ops) close_inside(s);
    free(s);
}

/* --- delivery --------------------------------------------------------------------------------- */

static kpt_status deliver(kpti_session *s, uint32_t order, kpt_batch_fn sink, void *sink_ctx,
                          kpti_session_error *error)
{
    kpt_delivery delivery;
    kpt_status status;
    KPT_INIT(&delivery);
    delivery.order = order;
    delivery.sink = sink;
    delivery.sink_ctx = sink_ctx;
    status = s->tracer.ops->get_events(s->tracer.self, &delivery);
    if (status != KPT_OK) (void)fail_of_tracer(s, error, status, "the recording can't be read");
    return status;
}

static kpt_status count_batch(void *ctx, const kpt_batch *batch)
{
    kpti_session_count *count = ctx;
    count->calls += batch->activity_count;
    count->names += batch->name_count;
    count->threads += batch->thread_count;
    return KPT_OK;
}

kpt_status kpti_session_count_calls(kpti_session *s, kpti_session_count *count,
                                    kpti_session_error *error)
{
    kpt_status status = enter_stopped(s, error);
    memset(count, 0, sizeof *count);
    if (status != KPT_OK) return status;
    return leave(s, deliver(s, KPT_ORDER_THREAD, count_batch, count, error));
}

/* As `ps` knows the process. */
static kpt_str process_name(char *buffer, size_t size)
{
    FILE *file = fopen("/proc/self/comm", "re");
    buffer[0] = 0;
    if (file) {
        if (!fgets(buffer, (int)size, file)) buffer[0] = 0;
        (void)fclose(file);
    }
    buffer[strcspn(buffer, "\n")] = 0;
    return kpt_str_of(buffer);
}

static kpt_status write_inside(kpti_session *s, const char *path, kpti_writer_options *options,
                               kpti_session_count *count, kpti_session_error *error)
{
    char name[64];
    kpti_format_choice choice = kpti_format_of_path(path);
    kpti_writer *writer;
    kpti_writer_result result;
    kpt_stats stats;
    kpt_status status;
    options->base_ns = s->base_ns;
    options->gzip = choice.gzip;
    options->version = s->info.version;
    options->process_name = process_name(name, sizeof name);
    status = kpti_writer_open(choice.format, path, options, &writer, &result);
    if (status == KPT_OK) {
        error->text[0] = 0;
        status = deliver(s, choice.format->order, kpti_writer_batch, writer, error);
        KPT_INIT(&stats);
        (void)s->tracer.ops->get_stats(s->tracer.self, &stats);
        status = kpti_writer_close(writer, status, &stats, &result);
        *count =
            (kpti_session_count){result.activities, result.names, result.threads, result.bytes};
        /* The tracer's own failure has the tracer's words, the file's has the writer's. */
        if (status != KPT_OK && status != KPT_E_IO && error->text[0]) return status;
    }
    if (status == KPT_OK) return status;
    (void)fail(error, status, "%s", result.text);
    error->os_error = result.os_error;
    return status;
}

kpt_status kpti_session_write(kpti_session *s, const char *path, kpti_interrupted_fn interrupted,
                              void *interrupted_ctx, kpti_session_count *count,
                              kpti_session_error *error)
{
    kpti_writer_options options;
    kpt_status status = enter_stopped(s, error);
    memset(count, 0, sizeof *count);
    if (status != KPT_OK) return status;
    memset(&options, 0, sizeof options);
    options.interrupted = interrupted;
    options.interrupted_ctx = interrupted_ctx;
    return leave(s, write_inside(s, path, &options, count, error));
}
