#include "writers/chrome/chrome_gpu.h"

#include "writers/chrome/chrome_gpu_put.h"
#include "writers/gpu/gpu_index.h"
#include "writers/gpu/gpu_names.h"
#include "writers/gpu/gpu_range_spans.h"
#include "writers/operators/operator_walk.h"

#define PUT KPTI_PUT

/* As in Kineto's files: above the index of every process of the system. */
enum { SORT_INDEX = 5000000 };

/* KPT_GPU_NONE is -1 in Kineto's files. */
static char *put_index(char *at, const char *key, uint32_t value)
{
    return kpti_put_i64(stpcpy(at, key), (int32_t)value);
}

/* --- all processes ------------------------------------------------------------------------------ */

void kpti_chrome_gpu_init(kpti_chrome_gpu *gpu, const kpti_heap *heap)
{
    kpti_gpu_log_init(&gpu->stacks, heap);
}

void kpti_chrome_gpu_free(kpti_chrome_gpu *gpu)
{
    kpti_heap_give(&gpu->stacks.heap, gpu->devices, gpu->device_capacity * sizeof *gpu->devices);
    gpu->devices = NULL;
    gpu->device_capacity = gpu->device_count = 0;
    kpti_gpu_log_free(&gpu->stacks);
}

static kpt_status keep_devices(kpti_chrome_gpu *gpu, const kpti_writer *w)
{
    kpt_status status = KPT_OK;
    for (uint32_t i = 0; status == KPT_OK && i < w->gpu->device_count; i++) {
        kpti_chrome_device device = {w->pid, 0, w->gpu->devices[i]};
        status = kpti_gpu_log_text(&gpu->stacks, device.known.name, &device.name);
        if (status == KPT_OK)
            status = kpti_array_reach(&gpu->stacks.heap, &gpu->devices, &gpu->device_capacity,
                                      gpu->device_count, sizeof *gpu->devices);
        if (status == KPT_OK) gpu->devices[gpu->device_count++] = device;
    }
    return status;
}

/* Copies the process's stacks. NUMBERS receives the new number of each node. Callers are before their callees. */
static kpt_status keep_stacks(kpti_chrome_gpu *gpu, const kpti_gpu_log *log, uint32_t *numbers)
{
    kpt_status status = KPT_OK;
    numbers[0] = 0;
    for (uint32_t i = 1; status == KPT_OK && i <= log->node_count; i++) {
        kpti_gpu_node node = log->nodes[i];
        node.caller = numbers[node.caller];
        status = kpti_gpu_log_text(&gpu->stacks, kpti_gpu_text(log, node.function), &node.function);
        if (status == KPT_OK)
            status = kpti_gpu_log_text(&gpu->stacks, kpti_gpu_text(log, node.file), &node.file);
        if (status == KPT_OK) status = kpti_gpu_log_node(&gpu->stacks, &node, &numbers[i]);
    }
    return status;
}

/* --- devices and streams ---------------------------------------------------------------------- */

/* If a process is alone in its file, its devices have their own numbers, as in Kineto's files. Else their
 * numbers are above those of all processes: Linux has no pids that large, and pids that were changed because of
 * a conflict are lower too. */
static uint64_t device_pid(const kpti_writer *w, uint32_t device)
{
    enum { FIRST_PID = 1000000000, MAX_DEVICES = 1024 };
    if (!w->shares_file) return device;
    if (device >= MAX_DEVICES) device = MAX_DEVICES - 1; /* no machine has as many */
    return FIRST_PID + (uint64_t)w->processes * MAX_DEVICES + device;
}

/* Writes a metadata event up to the value of KEY. */
static char *put_metadata(kpti_writer *w, const char *what, kpti_gpu_track track, const char *key)
{
    char *at = stpcpy(PUT(kpti_chrome_gpu_reserve(w), ",\n{\"ph\":\"M\",\"name\":\""), what);
    at = kpti_chrome_put_number(at, "\",\"pid\":", device_pid(w, track.device));
    at = put_index(at, ",\"tid\":", track.stream);
    return stpcpy(stpcpy(PUT(at, ",\"args\":{\""), key), "\":");
}

static void end_metadata(kpti_writer *w, char *at)
{
    kpti_out_wrote(&w->out, PUT(at, "}}"));
}

/* Not inlined: gcc 12 with sanitizers would derive a false warning about an index from the value range. */
__attribute__((noinline)) static uint64_t sort_index_of(uint64_t device)
{
    return SORT_INDEX + device;
}

static void put_device(kpti_writer *w, uint32_t device)
{
    const kpti_gpu_track track = {device, 0};
    const kpt_gpu_device *known = kpti_gpu_device_of(w->gpu, device);
    kpt_str name = kpti_gpu_name_of(w->gpu, KPT_GPU_NAMES_DEVICE, device);
    char *at = PUT(put_metadata(w, "process_name", track, "name"), "\"");
    if (!name.size && known) name = known->name;
    at = kpti_chrome_escape(at, name.size ? name : kpt_str_of("python"));
    end_metadata(w, PUT(at, "\""));
    at = kpti_chrome_put_number(put_metadata(w, "process_labels", track, "labels"), "\"GPU ",
                                device);
    if (w->shares_file) at = kpti_chrome_put_number(at, " of process ", w->pid);
    end_metadata(w, PUT(at, "\""));
    at = kpti_put_u64(put_metadata(w, "process_sort_index", track, "sort_index"),
                      sort_index_of(device_pid(w, device)));
    end_metadata(w, at);
}

static void put_stream(kpti_writer *w, kpti_gpu_track track)
{
    const kpt_str name = kpti_gpu_name_of(w->gpu, KPT_GPU_NAMES_STREAM, track.stream);
    char *at = put_index(put_metadata(w, "thread_name", track, "name"), "\"stream ", track.stream);
    at = kpti_chrome_escape(PUT(at, " "), name);
    end_metadata(w, PUT(at, "\""));
    at = kpti_put_i64(put_metadata(w, "thread_sort_index", track, "sort_index"),
                      (int32_t)track.stream);
    end_metadata(w, at);
}

static int is_first_of_device(const kpti_gpu_index *index, uint32_t track)
{
    for (uint32_t i = 0; i < track; i++)
        if (index->tracks[i].device == index->tracks[track].device) return 0;
    return 1;
}

/* --- events ----------------------------------------------------------------------------------- */

static char *put_stream_place(const kpti_writer *w, char *at, kpti_gpu_track track)
{
    at = kpti_chrome_put_number(at, ",\"pid\":", device_pid(w, track.device));
    return put_index(at, ",\"tid\":", track.stream);
}

/* Writes the track of an event: a stream of a device, or a thread of the process. */
static char *put_place(const kpti_writer *w, char *at, const kpti_gpu_index *index, uint32_t track,
                       const kpt_gpu_event *e)
{
    if (track != UINT32_MAX) return put_stream_place(w, at, index->tracks[track]);
    at = kpti_chrome_put_number(at, ",\"pid\":", w->pid);
    return kpti_chrome_put_number(at, ",\"tid\":", e->os_tid);
}

static char *put_device_args(const kpti_writer *w, char *at, const kpt_gpu_event *e)
{
    at = put_index(at, "\"device\":", e->device);
    at = put_index(at, ",\"context\":", e->context);
    at = put_index(at, ",\"stream\":", e->stream);
    return kpti_chrome_put_number(at, ",\"correlation\":", kpti_id_in_file(w, e->correlation));
}

static char *put_three(char *at, const char *key, const uint32_t *values)
{
    for (int i = 0; i < 3; i++)
        at = kpti_chrome_put_number(at, i ? "," : key, values[i]);
    return PUT(at, "]");
}

static char *put_kernel_args(const kpti_writer *w, char *at, const kpt_gpu_event *e)
{
    const kpti_gpu_fill fill = kpti_gpu_fill_of(e, kpti_gpu_device_of(w->gpu, e->device));
    at = put_device_args(w, PUT(at, "\"queued\":0,"), e);
    at = kpti_chrome_put_number(at, ",\"registers per thread\":", e->registers);
    at = kpti_chrome_put_number(
        at, ",\"shared memory\":", (uint64_t)e->shared_static_bytes + e->shared_dynamic_bytes);
    at = kpti_put_double(PUT(at, ",\"blocks per SM\":"), fill.blocks);
    at = kpti_put_double(PUT(at, ",\"warps per SM\":"), fill.warps);
    at = put_three(at, ",\"grid\":[", e->grid);
    at = put_three(at, ",\"block\":[", e->block);
    at = kpti_chrome_put_number(at, ",\"est. achieved occupancy %\":", (uint64_t)fill.occupancy);
    if (e->local_bytes) at = kpti_chrome_put_number(at, ",\"local memory\":", e->local_bytes);
    return at;
}

static char *put_memory_args(const kpti_writer *w, char *at, const kpt_gpu_event *e)
{
    const uint64_t ns = kpti_gpu_ns(e->start_ns, e->end_ns);
    at = put_device_args(w, at, e);
    at = kpti_chrome_put_number(at, ",\"bytes\":", e->bytes);
    /* Bytes per nanosecond are gigabytes per second. */
    return kpti_put_double(PUT(at, ",\"memory bandwidth (GB/s)\":"),
                           ns ? (double)e->bytes / (double)ns : 0);
}

static char *put_sync_args(const kpti_writer *w, char *at, const kpt_gpu_event *e)
{
    char words[KPTI_GPU_MAX_WORDS];
    at = kpti_chrome_escape(PUT(at, "\"cuda_sync_kind\":\""), kpti_gpu_words_for(e, words));
    if (e->event && e->event != KPT_GPU_NONE)
        at = kpti_chrome_put_number(at, "\",\"wait_on_cuda_event_id\":", e->event);
    else
        at = PUT(at, "\"");
    return put_device_args(w, PUT(at, ","), e);
}

/* The launch of an event, if the recording has operators. */
static const kpti_gpu_launch *launch_of(const kpti_writer *w, const kpt_gpu_event *e)
{
    return w->operators ? kpti_gpu_launch_of(&w->operators->launches, e) : NULL;
}

/* The number of the operator around the launch, as torch's own or as ours. Those of operators are unique in the file. */
static char *put_external(const kpti_writer *w, char *at, const kpt_gpu_event *e,
                          const kpti_gpu_launch *launch)
{
    uint64_t id = launch ? launch->external : 0;
    if (!id && e->external) id = kpti_id_in_file(w, e->external);
    return id ? PUT(kpti_chrome_put_number(at, "\"External id\":", id), ",") : at;
}

static char *put_forward(char *at, const kpti_gpu_launch *launch)
{
    if (!launch || !launch->is_backward) return at;
    at = PUT(at, ",\"forward at\":\"");
    at = launch->forward.size ? kpti_chrome_escape(at, launch->forward) : PUT(at, "(not recorded)");
    return PUT(at, "\"");
}

/* Writes where the event was launched. */
static char *put_launched(const kpti_chrome_gpu *gpu, const kpti_writer *w, char *at,
                          const kpti_gpu_entry *entry)
{
    const kpti_gpu_node *node;
    if (gpu->launched) {
        const kpti_fragment text = kpti_gpu_is_work(entry->event.kind)
                                       ? gpu->launched(gpu->launched_ctx, &entry->event)
                                       : (kpti_fragment){NULL, 0, 0};
        return text.size ? kpti_put_bytes(PUT(at, ","), text.text, text.size) : at;
    }
    node = kpti_gpu_own_frame(w->gpu, entry->stack);
    if (!node) return at;
    return PUT(kpti_chrome_put_frame(PUT(at, ",\"launched at\":\""), w->gpu, node), "\"");
}

/* STACK is the number of its node at the end of the file. */
static char *put_args(const kpti_chrome_gpu *gpu, const kpti_writer *w, char *at,
                      const kpti_gpu_entry *entry, uint32_t stack)
{
    const kpt_gpu_event *e = &entry->event;
    const kpti_gpu_launch *launch = launch_of(w, e);
    at = put_external(w, PUT(at, ",\"args\":{"), e, launch);
    if (e->kind == KPT_GPU_KERNEL)
        at = put_kernel_args(w, at, e);
    else if (kpti_gpu_is_work(e->kind))
        at = put_memory_args(w, at, e);
    else if (e->kind == KPT_GPU_SYNC)
        at = put_sync_args(w, at, e);
    else if (kpti_gpu_is_call(e->kind))
        at = kpti_chrome_put_number(kpti_chrome_put_number(at, "\"cbid\":", e->cbid),
                                    ",\"correlation\":", kpti_id_in_file(w, e->correlation));
    else
        at = kpti_chrome_put_number(at, "\"kind\":", e->kind);
    if (kpti_gpu_is_call(e->kind) && e->value)
        at = kpti_chrome_put_number(at, ",\"returned\":", e->value);
    if (e->flags & KPT_GPU_GRAPH) at = kpti_chrome_put_number(at, ",\"graph id\":", e->graph);
    if (e->flags & KPT_GPU_UNENDED) at = PUT(at, ",\"ended by stop\":true");
    at = put_launched(gpu, w, at, entry);
    if (!gpu->launched) at = put_forward(at, launch);
    at = PUT(at, "}");
    return stack ? kpti_chrome_put_number(at, ",\"sf\":", stack) : at;
}

static void put_arrow(kpti_writer *w, const kpti_gpu_index *index, uint32_t track,
                      const kpt_gpu_event *e, char phase)
{
    char *at = PUT(kpti_chrome_gpu_reserve(w), ",\n{\"ph\":\"");
    *at++ = phase;
    at = kpti_chrome_put_number(at, "\",\"id\":", kpti_id_in_file(w, e->correlation));
    at = put_place(w, at, index, track, e);
    at = kpti_put_us_between(PUT(at, ",\"ts\":"), w->base_ns, e->start_ns);
    at = PUT(at, ",\"cat\":\"ac2g\",\"name\":\"ac2g\"");
    kpti_out_wrote(&w->out, phase == 'f' ? PUT(at, ",\"bp\":\"e\"}") : PUT(at, "}"));
}

static void put_event(const kpti_chrome_gpu *gpu, kpti_writer *w, kpti_gpu_index *index,
                      const kpti_gpu_entry *entry, uint32_t stack)
{
    const kpt_gpu_event *e = &entry->event;
    const uint32_t track = kpti_gpu_track_of(index, e);
    const int is_mark = e->kind == KPT_GPU_MARK;
    char *at =
        stpcpy(kpti_chrome_gpu_reserve(w),
               is_mark ? ",\n{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"" : ",\n{\"ph\":\"X\",\"cat\":\"");
    at = stpcpy(at, kpti_gpu_category(e->kind));
    at = kpti_chrome_escape(PUT(at, "\",\"name\":\""), e->name);
    at = put_place(w, PUT(at, "\""), index, track, e);
    at = kpti_put_us_between(PUT(at, ",\"ts\":"), w->base_ns, e->start_ns);
    if (!is_mark) at = kpti_put_us_between(PUT(at, ",\"dur\":"), e->start_ns, e->end_ns);
    kpti_out_wrote(&w->out, PUT(put_args(gpu, w, at, entry, stack), "}"));
    if (kpti_gpu_arrow_leaves(index, e)) put_arrow(w, index, track, e, 's');
    if (kpti_gpu_arrow_comes(index, e)) put_arrow(w, index, track, e, 'f');
}

/* Writes the ranges of the host on the streams, as Kineto does for annotations. */
static void put_ranges(kpti_writer *w, const kpti_gpu_index *index,
                       const kpti_gpu_range_spans *spans)
{
    for (uint32_t i = 0; i < spans->count; i++) {
        const kpti_gpu_range_span *span = &spans->items[i];
        const kpti_gpu_range *range = &w->operators->launches.ranges[span->range];
        char *at = PUT(kpti_chrome_gpu_reserve(w),
                       ",\n{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"");
        at = kpti_chrome_escape(at, (kpt_str){range->name, range->name_size});
        at = put_stream_place(w, PUT(at, "\""), index->tracks[span->track]);
        at = kpti_put_us_between(PUT(at, ",\"ts\":"), w->base_ns, span->start_ns);
        at = kpti_put_us_between(PUT(at, ",\"dur\":"), span->start_ns, span->end_ns);
        if (range->external)
            at = PUT(kpti_chrome_put_number(at, ",\"args\":{\"External id\":", range->external),
                     "}");
        kpti_out_wrote(&w->out, PUT(at, "}"));
    }
}

static kpt_status add_to_ranges(const kpti_writer *w, kpti_gpu_index *index,
                                kpti_gpu_range_spans *spans, const kpt_gpu_event *e)
{
    const kpti_gpu_launch *launch = kpti_gpu_is_work(e->kind) ? launch_of(w, e) : NULL;
    const uint32_t track = launch ? kpti_gpu_track_of(index, e) : UINT32_MAX;
    if (track == UINT32_MAX) return launch ? KPT_E_MEMORY : KPT_OK;
    return kpti_gpu_range_spans_add(spans, &w->operators->launches, launch, track, e);
}

static kpt_status put_events(const kpti_chrome_gpu *gpu, kpti_writer *w, const uint32_t *numbers)
{
    kpti_gpu_index index = {.heap = w->heap};
    kpti_gpu_range_spans spans = {.heap = w->heap};
    kpti_gpu_cursor cursor = {.log = w->gpu};
    const kpti_gpu_entry *e;
    kpt_status status = kpti_gpu_index_make(&index, w->gpu);
    for (uint32_t i = 0; status == KPT_OK && i < index.track_count; i++) {
        if (is_first_of_device(&index, i)) put_device(w, index.tracks[i].device);
        put_stream(w, index.tracks[i]);
    }
    while (status == KPT_OK && (e = kpti_gpu_next(&cursor))) {
        const int has_stack = !gpu->launched && kpti_gpu_node_of(w->gpu, e->stack);
        put_event(gpu, w, &index, e, has_stack ? numbers[e->stack] : 0);
        status = add_to_ranges(w, &index, &spans, &e->event);
    }
    if (status == KPT_OK) put_ranges(w, &index, &spans);
    kpti_gpu_range_spans_free(&spans);
    kpti_gpu_index_free(&index);
    return status;
}

kpt_status kpti_chrome_gpu_events(kpti_chrome_gpu *gpu, kpti_writer *w)
{
    const size_t bytes = (w->gpu->node_count + (size_t)1) * sizeof(uint32_t);
    uint32_t *numbers = kpti_heap_take(&w->heap, bytes);
    kpt_status status = numbers ? keep_devices(gpu, w) : KPT_E_MEMORY;
    if (status == KPT_OK && !gpu->launched) status = keep_stacks(gpu, w->gpu, numbers);
    if (status == KPT_OK) status = put_events(gpu, w, numbers);
    kpti_heap_give(&w->heap, numbers, bytes);
    gpu->events += w->gpu->events;
    gpu->counts.dropped += w->gpu->counts.dropped;
    gpu->counts.lost_kernels += w->gpu->counts.lost_kernels;
    return status;
}
