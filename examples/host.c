/* host.c: a minimal host. It opens the plugin, receives its tracer factory, makes a tracer, runs
 * for a moment, stops the tracer and prints the recording.
 *
 * usage: kpt_example_host PATH/libkpytrace.so
 *
 * In a process without Python, such as this one, the plugin makes a no-op tracer whose last_error
 * has the reason. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kpt.h"

/* The state of this host: the factory that the plugin registered. */
typedef struct host_state {
    kpt_tracer_make_fn make;
    void *make_ctx;
    uint64_t activities;
} host_state;

static kpt_status register_tracer(void *ctx, kpt_tracer_make_fn make, void *make_ctx)
{
    host_state *state = ctx;
    state->make = make;
    state->make_ctx = make_ctx;
    return KPT_OK;
}

/* Receives batches of finished calls. The plugin's records may be longer than ours: step by the
 * stride. */
static kpt_status print_batch(void *ctx, const kpt_batch *batch)
{
    host_state *state = ctx;
    const char *record = (const char *)batch->activities;
    for (uint32_t i = 0; i < batch->activity_count; i++, record += batch->activity_stride) {
        const kpt_activity *activity = (const kpt_activity *)(const void *)record;
        printf("  thread %u, name %u: %" PRId64 " ns\n", activity->thread, activity->name,
               activity->end_ns - activity->start_ns);
    }
    state->activities += batch->activity_count;
    return KPT_OK;
}

static int fail(const char *what, kpt_status status, kpt_last_error_fn last_error, kpt_handle self)
{
    char text[256] = "";
    if (last_error) (void)last_error(self, text, sizeof text, NULL);
    (void)fprintf(stderr, "%s: %s: %s\n", what, kpt_status_name(status), text);
    return EXIT_FAILURE;
}

static int trace(host_state *state, const kpt_plugin_info *info)
{
    kpt_tracer_args args;
    kpt_tracer tracer;
    kpt_delivery delivery;
    char why[256] = "";
    kpt_status status;

    KPT_INIT(&args); /* all defaults: every thread, every call */
    KPT_INIT(&tracer);
    status = state->make(state->make_ctx, &args, &tracer); /* the tracer records from here on */
    if (status != KPT_OK) return fail("make", status, info->last_error, info->self);
    if (tracer.flags & KPT_OBJECT_NOOP) {
        (void)tracer.ops->last_error(tracer.self, why, sizeof why, NULL);
        printf("a no-op tracer: %s\n", why);
    }

    /* ... the traced program runs here ... */

    status = tracer.ops->stop(tracer.self);
    KPT_INIT(&delivery);
    delivery.sink = print_batch;
    delivery.sink_ctx = state;
    if (status == KPT_OK) status = tracer.ops->get_events(tracer.self, &delivery);
    if (status != KPT_OK) return fail("trace", status, tracer.ops->last_error, tracer.self);
    printf("%" PRIu64 " activities\n", state->activities);
    return tracer.ops->destroy(tracer.self) == KPT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    host_state state = {0};
    kpt_host host;
    kpt_plugin_info info;
    kpt_plugin_entry_fn entry;
    kpt_status status;
    int result;
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

    if (!library) {
        (void)fprintf(stderr, "usage: %s PATH/libkpytrace.so\n%s\n", argv[0],
                      argc == 2 ? dlerror() : "");
        return EXIT_FAILURE;
    }
    *(void **)&entry = dlsym(library, KPT_PLUGIN_ENTRY_NAME);
    if (!entry) {
        (void)fprintf(stderr, "%s is no plugin of ABI %d\n", argv[1], KPT_ABI_MAJOR);
        return EXIT_FAILURE;
    }
    KPT_INIT(&host);
    host.ctx = &state;
    host.name = kpt_str_of("example");
    host.register_tracer = register_tracer;
    KPT_INIT(&info);
    status = entry(&host, &info);
    if (status != KPT_OK) return fail("entry", status, info.last_error, 0);
    printf("%.*s %.*s, ABI %d.%u\n", (int)info.name.size, info.name.data, (int)info.version.size,
           info.version.data, KPT_ABI_MAJOR, info.abi_minor);

    result = trace(&state, &info);
    (void)info.detach(info.self);
    return result;
}
