/* perfetto_gpu.c: GPU activities, on the process's own sequence, with Unix times; readers sort by time. CUDA
 * calls are slices on the tracks of their threads, so that they nest in the Python calls around them. Kernels
 * are on the tracks of their streams, which are below the track of their device. Names and stacks are written
 * once. */
#include "writers/perfetto/perfetto_gpu.h"

#include <stdio.h>

#include "writers/gpu/gpu_index.h"
#include "writers/gpu/gpu_names.h"
#include "writers/perfetto/perfetto_gpu_ranges.h"
#include "writers/perfetto/perfetto_packets.h"
#include "writers/perfetto/perfetto_tracks.h"

/* The names of annotations, by their number in the process's own sequence. */
enum {
    FIRST = 100,
    DEVICE = FIRST,
    CONTEXT,
    STREAM,
    CORRELATION,
    EXTERNAL,
    REGISTERS,
    SHARED,
    GRID,
    BLOCK,
    OCCUPANCY,
    BYTES,
    BANDWIDTH,
    RETURNED,
    GRAPH,
    STACK,
    LAUNCHED,
    FORWARD,
    BEHIND
};
static const char *const words[] = {"device",        "context",
                                    "stream",        "correlation",
                                    "External id",   "registers per thread",
                                    "shared memory", "grid",
                                    "block",         "est. achieved occupancy %",
                                    "bytes",         "memory bandwidth (GB/s)",
                                    "returned",      "graph id",
                                    "python stack",  "launched at",
                                    "forward at"};
_Static_assert(sizeof words / sizeof words[0] == BEHIND - FIRST, "a word for each");

/* Above the numbers of users' flows, which are likely to be small. */
#define FIRST_FLOW (UINT64_C(1) << 62)

enum { EVENT_ROOM = 2 * KPTI_PERFETTO_MAX_NAME * KPTI_UTF8_MAX_GROWTH };

typedef struct gpu_tracks {
    kpti_gpu_index index;
    kpti_perfetto_stream *uuids; /* by track */
    kpti_gpu_range_spans ranges;
    unsigned char *seen_texts;
    unsigned char *seen_stacks;
} gpu_tracks;

/* --- interned data ---------------------------------------------------------------------------- */

/* Writes "inner (file.py:12)", a line for each frame, innermost first, as many as fit. */
static void put_stack(kpti_perfetto *w, uint32_t stack)
{
    char text[KPTI_PERFETTO_MAX_NAME];
    size_t size = 0;
    const kpti_gpu_node *node = kpti_gpu_node_of(w->base.gpu, stack);
    for (; node && size < sizeof text; node = kpti_gpu_node_of(w->base.gpu, node->caller)) {
        const kpt_str function = kpti_gpu_text(w->base.gpu, node->function);
        const kpt_str file = kpti_gpu_text(w->base.gpu, node->file);
        const int made =
            snprintf(text + size, sizeof text - size, "%s%.*s (%.*s:%u)", size ? "\n" : "",
                     (int)function.size, function.data, (int)file.size, file.data, node->line);
        if (made < 0 || (size_t)made >= sizeof text - size) break;
        size += (size_t)made;
    }
    kpti_perfetto_intern(w, &w->own, INTERNED_STRING, stack, (kpt_str){text, size});
}

/* Returns whether NUMBER is seen for the first time, and records it. */
static int is_new(unsigned char *seen, uint32_t number)
{
    const unsigned char bit = (unsigned char)(1u << (number & 7));
    if (seen[number >> 3] & bit) return 0;
    seen[number >> 3] |= bit;
    return 1;
}

/* --- tracks ----------------------------------------------------------------------------------- */

static uint64_t device_track(kpti_perfetto *w, const gpu_tracks *t, uint32_t track)
{
    char name[256];
    const uint32_t device = t->index.tracks[track].device;
    const kpt_gpu_device *known = kpti_gpu_device_of(w->base.gpu, device);
    for (uint32_t i = 0; i < track; i++)
        if (t->index.tracks[i].device == device) return t->uuids[i].device;
    (void)snprintf(name, sizeof name, "GPU %u%s%.*s", device, known ? " " : "",
                   known ? (int)known->name.size : 0, known ? known->name.data : "");
    /* If there are other processes, the track is below that of its process. */
    if (w->base.shares_file) return kpti_perfetto_make_track(w, kpt_str_of(name), 0);
    return kpti_perfetto_make_track_in(w, 0, kpt_str_of(name));
}

static void make_tracks(kpti_perfetto *w, gpu_tracks *t)
{
    char name[256];
    for (uint32_t i = 0; i < t->index.track_count; i++) {
        const uint32_t stream = t->index.tracks[i].stream;
        const kpt_str given = kpti_gpu_name_of(w->base.gpu, KPT_GPU_NAMES_STREAM, stream);
        (void)snprintf(name, sizeof name, "stream %d %.*s", (int)stream, (int)given.size,
                       given.data);
        t->uuids[i].device = device_track(w, t, i);
        t->uuids[i].stream = kpti_perfetto_make_track_in(w, t->uuids[i].device, kpt_str_of(name));
    }
}

/* Returns the track of a thread, or 0 if there is no memory. The track is new if the thread ran no Python. */
static uint64_t thread_track(kpti_perfetto *w, uint64_t os_tid)
{
    char name[32];
    uint32_t *index = kpti_u64_map_at(&w->threads, kpti_perfetto_thread_key(os_tid));
    kpt_thread thread = {.os_tid = os_tid};
    if (!index) return 0;
    if (!*index) {
        (void)snprintf(name, sizeof name, "thread %llu", (unsigned long long)os_tid);
        thread.index = w->next_thread;
        thread.name = kpt_str_of(name);
        if (kpti_perfetto_begin_thread(w, &thread) != KPT_OK) return 0;
        index = kpti_u64_map_at(&w->threads, kpti_perfetto_thread_key(os_tid));
    }
    return index && *index ? kpti_perfetto_thread_track(w, *index - 1) : 0;
}

/* --- events ----------------------------------------------------------------------------------- */

static char *put_double(char *at, uint32_t annotation, double value)
{
    char *content = kpti_proto_open(at, EVENT_ANNOTATION);
    at = kpti_proto_number(content, ANNOTATION_NAME_ID, annotation);
    return kpti_proto_close(content, kpti_proto_double(at, ANNOTATION_DOUBLE, value));
}

static char *put_words(char *at, uint32_t annotation, kpt_str text)
{
    char *content = kpti_proto_open(at, EVENT_ANNOTATION);
    at = kpti_proto_number(content, ANNOTATION_NAME_ID, annotation);
    at = kpti_proto_text(at, ANNOTATION_TEXT, text, KPTI_PERFETTO_MAX_NAME);
    return kpti_proto_close(content, at);
}

static char *put_three(char *at, uint32_t annotation, const uint32_t *values)
{
    char text[64];
    (void)snprintf(text, sizeof text, "[%u, %u, %u]", values[0], values[1], values[2]);
    return put_words(at, annotation, kpt_str_of(text));
}

static char *put_uint(char *at, uint32_t annotation, uint64_t value)
{
    return kpti_perfetto_annotate(at, annotation, ANNOTATION_UINT, value);
}

static char *put_device(char *at, const kpt_gpu_event *e)
{
    if (e->device != KPT_GPU_NONE) at = put_uint(at, DEVICE, e->device);
    if (e->context != KPT_GPU_NONE) at = put_uint(at, CONTEXT, e->context);
    return e->stream == KPT_GPU_NONE ? at : put_uint(at, STREAM, e->stream);
}

static char *put_kernel(const kpti_perfetto *w, char *at, const kpt_gpu_event *e)
{
    const kpti_gpu_fill fill = kpti_gpu_fill_of(e, kpti_gpu_device_of(w->base.gpu, e->device));
    at = put_uint(at, REGISTERS, e->registers);
    at = put_uint(at, SHARED, (uint64_t)e->shared_static_bytes + e->shared_dynamic_bytes);
    at = put_three(put_three(at, GRID, e->grid), BLOCK, e->block);
    return put_uint(at, OCCUPANCY, (uint64_t)fill.occupancy);
}

static char *put_memory(char *at, const kpt_gpu_event *e)
{
    const uint64_t ns = kpti_gpu_ns(e->start_ns, e->end_ns);
    at = put_uint(at, BYTES, e->bytes);
    return ns ? put_double(at, BANDWIDTH, (double)e->bytes / (double)ns) : at;
}

/* The launch of an event, if the recording has operators. */
static const kpti_gpu_launch *launch_of(const kpti_perfetto *w, const kpt_gpu_event *e)
{
    return w->base.operators ? kpti_gpu_launch_of(&w->base.operators->launches, e) : NULL;
}

static char *put_forward(char *at, const kpti_gpu_launch *launch)
{
    if (!launch || !launch->is_backward) return at;
    return put_words(at, FORWARD,
                     launch->forward.size ? launch->forward : kpt_str_of("(not recorded)"));
}

static char *put_annotations(const kpti_perfetto *w, char *at, const kpti_gpu_entry *entry)
{
    const kpt_gpu_event *e = &entry->event;
    const kpti_gpu_launch *launch = launch_of(w, e);
    const uint64_t external = launch && launch->external ? launch->external : e->external;
    const kpti_gpu_node *node = kpti_gpu_own_frame(w->base.gpu, entry->stack);
    char text[512];
    at = put_device(at, e);
    if (e->correlation) at = put_uint(at, CORRELATION, kpti_id_in_file(&w->base, e->correlation));
    if (external) at = put_uint(at, EXTERNAL, kpti_id_in_file(&w->base, external));
    if (e->kind == KPT_GPU_KERNEL)
        at = put_kernel(w, at, e);
    else if (kpti_gpu_is_work(e->kind))
        at = put_memory(at, e);
    if (kpti_gpu_is_call(e->kind) && e->value) at = put_uint(at, RETURNED, e->value);
    if (e->flags & KPT_GPU_GRAPH) at = put_uint(at, GRAPH, e->graph);
    if (e->flags & KPT_GPU_UNENDED)
        at = kpti_perfetto_annotate(at, KPTI_ANNOTATION_ENDED_BY_STOP, ANNOTATION_BOOL, 1);
    if (node) {
        const kpt_str file = kpti_gpu_text(w->base.gpu, node->file);
        const kpt_str function = kpti_gpu_text(w->base.gpu, node->function);
        (void)snprintf(text, sizeof text, "%.*s(%u): %.*s", (int)file.size, file.data, node->line,
                       (int)function.size, function.data);
        at = put_words(at, LAUNCHED, kpt_str_of(text));
        at = kpti_perfetto_annotate(at, STACK, ANNOTATION_STRING_ID, entry->stack);
    }
    return put_forward(at, launch);
}

static kpt_status put_event(kpti_perfetto *w, gpu_tracks *t, const kpti_gpu_entry *entry)
{
    const kpt_gpu_event *e = &entry->event;
    const uint32_t track = kpti_gpu_track_of(&t->index, e);
    const uint64_t uuid = track == UINT32_MAX ? thread_track(w, e->os_tid) : t->uuids[track].stream;
    const int is_mark = e->kind == KPT_GPU_MARK;
    kpti_perfetto_event event;
    char *at;
    if (!uuid) return KPT_E_MEMORY;
    if (entry->text && is_new(t->seen_texts, entry->text))
        kpti_perfetto_intern(w, &w->own, INTERNED_NAME, entry->text, e->name);
    if (entry->stack && is_new(t->seen_stacks, entry->stack)) put_stack(w, entry->stack);
    at = kpti_perfetto_open(w, &w->own, e->start_ns, is_mark ? EVENT_INSTANT : EVENT_BEGIN,
                            EVENT_ROOM, &event);
    at = kpti_proto_number(at, EVENT_TRACK, uuid);
    at = kpti_proto_text(at, EVENT_CATEGORY, kpt_str_of(kpti_gpu_category(e->kind)), SIZE_MAX);
    if (entry->text) at = kpti_proto_number(at, EVENT_NAME_ID, entry->text);
    if (kpti_gpu_arrow_leaves(&t->index, e) || kpti_gpu_arrow_comes(&t->index, e))
        at = kpti_proto_fixed64(at, EVENT_FLOW,
                                FIRST_FLOW + kpti_id_in_file(&w->base, e->correlation));
    kpti_perfetto_close(w, &event, put_annotations(w, at, entry));
    if (is_mark) return KPT_OK;
    at = kpti_perfetto_open(w, &w->own, e->end_ns > e->start_ns ? e->end_ns : e->start_ns,
                            EVENT_END, 0, &event);
    kpti_perfetto_close(w, &event, kpti_proto_number(at, EVENT_TRACK, uuid));
    return KPT_OK;
}

/* --- all events ------------------------------------------------------------------------------- */

static void *take_zeroes(const kpti_heap *heap, size_t size)
{
    void *memory = kpti_heap_take(heap, size);
    return memory ? memset(memory, 0, size) : NULL;
}

static kpt_status add_to_ranges(const kpti_perfetto *w, gpu_tracks *t, const kpt_gpu_event *e)
{
    const kpti_gpu_launch *launch = kpti_gpu_is_work(e->kind) ? launch_of(w, e) : NULL;
    const uint32_t track = launch ? kpti_gpu_track_of(&t->index, e) : UINT32_MAX;
    if (track == UINT32_MAX) return launch ? KPT_E_MEMORY : KPT_OK;
    return kpti_gpu_range_spans_add(&t->ranges, &w->base.operators->launches, launch, track, e);
}

static kpt_status put_all(kpti_perfetto *w, gpu_tracks *t)
{
    const int has_operators = w->base.operators && w->base.operators->launches.count;
    kpti_gpu_cursor cursor = {.log = w->base.gpu};
    const kpti_gpu_entry *entry;
    kpt_status status = KPT_OK;
    for (uint32_t word = FIRST; word < (has_operators ? BEHIND : FORWARD); word++)
        kpti_perfetto_intern(w, &w->own, INTERNED_ANNOTATION, word,
                             kpt_str_of(words[word - FIRST]));
    make_tracks(w, t);
    while (status == KPT_OK && (entry = kpti_gpu_next(&cursor))) {
        status = put_event(w, t, entry);
        if (status == KPT_OK) status = add_to_ranges(w, t, &entry->event);
    }
    if (status == KPT_OK) status = kpti_perfetto_gpu_ranges(w, &t->ranges, t->uuids);
    return status;
}

kpt_status kpti_perfetto_gpu(kpti_perfetto *w)
{
    const kpti_heap *heap = &w->base.heap;
    const kpti_gpu_log *log = w->base.gpu;
    const size_t text_bytes = log->texts.texts.count / 8 + 1;
    const size_t stack_bytes = log->node_count / 8 + 1;
    gpu_tracks t = {.index = {.heap = *heap}, .ranges = {.heap = *heap}};
    size_t uuid_bytes;
    kpt_status status;
    if (!log->events) return KPT_OK;
    status = kpti_gpu_index_make(&t.index, log);
    uuid_bytes = (t.index.track_count + (size_t)1) * sizeof *t.uuids;
    t.uuids = take_zeroes(heap, uuid_bytes);
    t.seen_texts = take_zeroes(heap, text_bytes);
    t.seen_stacks = take_zeroes(heap, stack_bytes);
    if (!t.uuids || !t.seen_texts || !t.seen_stacks) status = KPT_E_MEMORY;
    if (status == KPT_OK) status = put_all(w, &t);
    kpti_heap_give(heap, t.uuids, uuid_bytes);
    kpti_heap_give(heap, t.seen_texts, text_bytes);
    kpti_heap_give(heap, t.seen_stacks, stack_bytes);
    kpti_gpu_range_spans_free(&t.ranges);
    kpti_gpu_index_free(&t.index);
    return status;
}
