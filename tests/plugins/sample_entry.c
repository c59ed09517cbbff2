/* sample_entry.c: the binding with a host, from the entry to detach. It owns the copy of the host's
 * table and both of the binding's blocks; the host's name is the second one. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/plugins/sample.h"

static const sample_layout host_layout = {sizeof(kpt_host), KPT_HOST_V1_SIZE, "R107", "R109",
                                          "R110"};
static const sample_layout info_layout = {sizeof(kpt_plugin_info), KPT_PLUGIN_INFO_V1_SIZE, "R108",
                                          "R111", NULL};

void *sample_alloc(const sample_heap *heap, uint64_t size)
{
    void *memory = heap->alloc ? heap->alloc(heap->ctx, size) : malloc(size);
    return memory ? memset(memory, 0, size) : NULL;
}

void sample_free(const sample_heap *heap, void *memory, uint64_t size)
{
    if (!heap->dealloc)
        free(memory);
    else if (memory)
        heap->dealloc(heap->ctx, memory, size);
}

static kpt_status check_host(const kpt_host *host)
{
    if ((host->flags || host->tick_flags) && !wrong("R118"))
        return sample_refuse(NULL, KPT_E_UNSUPPORTED, "the host has unknown flags");
    if (!host->register_tracer && !wrong("R117"))
        return sample_refuse(NULL, KPT_E_INVALID, "the host has no register_tracer");
    if (!host->alloc != !host->dealloc && !wrong("R116"))
        return sample_refuse(NULL, KPT_E_INVALID, "the host has half an allocator");
    if (host->tick_source > KPT_TICKS_HOST && !wrong("R128"))
        return sample_refuse(NULL, KPT_E_UNSUPPORTED, "the host has an unknown tick source");
    if (host->tick_source == KPT_TICKS_HOST && !host->now_ticks && !wrong("R128"))
        return sample_refuse(NULL, KPT_E_INVALID, "the host has ticks of its own, but no clock");
    if (host->name.size && !host->name.data)
        return sample_refuse(NULL, KPT_E_INVALID, "the host's name has no bytes");
    return KPT_OK;
}

static sample_heap heap_of(const kpt_host *host)
{
    static sample_heap first; /* for R803 only */
    sample_heap heap = {host->ctx, host->alloc, host->dealloc};
    if (!heap.alloc || !heap.dealloc) heap = (sample_heap){NULL, NULL, NULL};
    if (!wrong("R803")) return heap;
    if (sample_count_mine(NULL, SAMPLE_BOND) == 0) first = heap;
    return first;
}

static kpt_status make_binding(const kpt_host *host, sample_binding **out)
{
    sample_heap heap = heap_of(host);
    sample_binding *binding = sample_alloc(&heap, sizeof *binding);
    char *name = binding ? sample_alloc(&heap, host->name.size + 1) : NULL;
    if (!name) {
        if (!wrong("R122")) sample_free(&heap, binding, sizeof *binding);
        return sample_refuse(NULL, KPT_E_MEMORY, "no memory for a binding with the host");
    }
    if (host->name.size) memcpy(name, host->name.data, host->name.size);
    binding->host = *host;
    binding->host.name.data = name;
    binding->heap = heap;
    binding->object.extra = name;
    sample_adopt(&binding->object, SAMPLE_BOND, NULL, "");
    *out = binding;
    return KPT_OK;
}

static void free_binding(sample_binding *binding)
{
    sample_heap heap = binding->heap;
    sample_free(&heap, binding->kept, sizeof(sample_recording));
    sample_free(&heap, binding->object.extra, binding->host.name.size + 1);
    sample_free(&heap, binding, sizeof *binding);
}

static kpt_status detach(kpt_handle self)
{
    sample_object *object;
    sample_binding *binding;
    kpt_status status = sample_enter(self, SAMPLE_BOND, &object);
    if (status == KPT_E_HANDLE && wrong("R126")) return KPT_OK;
    if (status != KPT_OK) return status;
    status = sample_end(object);
    if (status == KPT_E_STATE && wrong(((sample_binding *)object)->loaded ? "R778" : "R124"))
        return KPT_OK;
    if (status != KPT_OK) return status;
    binding = (sample_binding *)object;
    if (wrong("R123") && self == 1) binding->object.extra = NULL; /* the first host's, for ever */
    free_binding(binding);
    return KPT_OK;
}

static kpt_status make_tracer(void *make_ctx, const kpt_tracer_args *args, kpt_tracer *out)
{
    return sample_make(&sample_tracer_product, make_ctx, args, out);
}

static kpt_status make_memory(void *make_ctx, const kpt_memory_args *args, kpt_memory_tracer *out)
{
    return sample_make(&sample_memory_product, make_ctx, args, out);
}

static kpt_status make_observer(void *make_ctx, const kpt_observer_args *args, kpt_observer *out)
{
    return sample_make(&sample_observer_product, make_ctx, args, out);
}

static void log_text(const kpt_host *host, uint32_t level, const char *text)
{
    if (host->log || wrong("R114")) host->log(host->ctx, level, kpt_str_of(text));
}

/* A host that refuses memory tracers or observers does without. */
static kpt_status register_factories(const sample_binding *binding)
{
    const kpt_host *host = &binding->host;
    void *make_ctx = sample_make_ctx(binding);
    kpt_status status = KPT_OK;
    if (host->register_tracer || !wrong("R117"))
        status = host->register_tracer(host->ctx, make_tracer, make_ctx);
    if (wrong("R115")) status = KPT_OK;
    if (status != KPT_OK) return sample_refuse(NULL, status, "the host refused the tracer factory");
    if (wrong("R113")) (void)host->register_tracer(host->ctx, make_tracer, make_ctx);
    if (host->register_memory_tracer &&
        host->register_memory_tracer(host->ctx, make_memory, make_ctx) != KPT_OK)
        log_text(host, KPT_LOG_WARNING, "sample: the host refused the memory tracer factory");
    if (host->register_observer &&
        host->register_observer(host->ctx, make_observer, make_ctx) != KPT_OK)
        log_text(host, KPT_LOG_WARNING, "sample: the host refused the observer factory");
    log_text(host, KPT_LOG_DEBUG, "sample: the factories are registered");
    return KPT_OK;
}

/* For R120: the same host's second entry, while the first binding lives. */
static int is_second(const kpt_host *host)
{
    static uint32_t entries;
    static void *first;
    if (++entries == 1) first = host->ctx;
    return entries == 2 && host->ctx == first && sample_count_mine(NULL, SAMPLE_BOND) > 0;
}

static kpt_status bind_host(const kpt_host *theirs, sample_binding **out)
{
    kpt_host host;
    sample_binding *binding = NULL;
    kpt_status status = sample_read(&host, &host_layout, theirs);
    if (!theirs && wrong("R105")) return KPT_OK;
    if (status != KPT_OK)
        return sample_refuse(NULL, status, "the host's table is NULL, or below its V1 size");
    if (wrong("R120") && is_second(&host))
        return sample_refuse(NULL, KPT_E_STATE, "there is a binding already");
    status = check_host(&host);
    if (status == KPT_OK) status = make_binding(&host, &binding);
    if (status != KPT_OK) return status;
    binding->theirs = theirs;
    status = register_factories(binding);
    if (status == KPT_OK)
        *out = binding;
    else if (sample_end(&binding->object) == KPT_OK)
        free_binding(binding);
    return status;
}

kpt_status sample_entry(const kpt_host *host, kpt_plugin_info *out)
{
    kpt_plugin_info info;
    sample_binding *binding = NULL;
    kpt_status status = sample_check(out, &info_layout);
    if (wrong("R119")) (void)fprintf(stderr, "sample: hello\n");
    if (!out && wrong("R106")) return KPT_OK;
    if (status != KPT_OK)
        return sample_refuse(NULL, status, "the info struct is NULL, or below its V1 size");
    status = bind_host(host, &binding);
    KPT_INIT(&info);
    info.last_error = sample_last_error;
    if (binding) {
        sample_watch_fork();
        info.abi_minor = KPT_ABI_MINOR;
        info.self = binding->object.handle;
        info.name = kpt_str_of(wrong("R121") ? "" : "sample");
        info.version = kpt_str_of("1");
        info.get_extension = sample_get_plugin_extension;
        info.detach = detach;
    }
    sample_write(out, &info_layout, &info);
    if (wrong("R112")) out->struct_size += 4096;
    return wrong("R104") && status == KPT_OK ? 7 : status;
}
