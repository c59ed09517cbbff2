#include "imports/import_chunks.h"

#include <stdio.h>

#include "abi/kpt_text.h"
#include "core/recording/serialized/metadata_sections.h"

enum { CHUNK_EVENTS = 8192, NS_IN_S = 1000000000, MAX_LABEL = 512 };
/* The first id of a track that has none of its own, or whose id another track has. */
enum { FIRST_TID = 1 << 30 };

typedef struct putting {
    const kpti_import_recording *from;
    kpti_kpt_writer *writer;
    kpti_event *events; /* of the chunk that is being filled */
    uint32_t count;
    uint32_t format;
    kpt_chunk chunk;
    uint64_t high; /* upper half of the ticks */
    uint64_t put;  /* enters and exits */
    kpt_status status;
    /* names and ends of the calls that are open, outermost first */
    kpti_import_call *open;
    uint64_t open_capacity;
    uint64_t open_count;
} putting;

static uint64_t ticks_of(const putting *p, int64_t ns)
{
    return (uint64_t)ns - (uint64_t)p->from->tracks->first_ns + 1;
}

/* --- chunks ----------------------------------------------------------------------------------- */

static void put_chunk(putting *p)
{
    if (!p->count || p->status != KPT_OK) return;
    p->chunk.format = p->format;
    p->chunk.data = p->events;
    p->chunk.size_bytes = (uint64_t)p->count * sizeof *p->events;
    p->status = kpti_kpt_put_chunk(p->writer, &p->chunk);
    p->chunk.sequence++;
    p->count = 0;
}

/* The caller has reserved space: an event takes up to three words. */
static void put_event(putting *p, uint32_t kind, uint32_t number, uint64_t ticks)
{
    if (p->count + 3 > CHUNK_EVENTS) put_chunk(p);
    if (!p->count) {
        p->chunk.first_ticks = ticks;
        p->high = ticks >> 32;
    }
    if (ticks >> 32 != p->high) {
        p->events[p->count++] = kpti_event_make(KPTI_EVENT_EPOCH, 0, ticks);
        p->events[p->count++] = ticks;
        p->high = ticks >> 32;
    }
    p->events[p->count++] = kpti_event_make(kind, number, ticks);
    p->chunk.last_ticks = ticks;
    p->put++;
}

static void end_calls(putting *p, int64_t until_ns)
{
    while (p->open_count && p->open[p->open_count - 1].end_ns <= until_ns) {
        const kpti_import_call *call = &p->open[--p->open_count];
        put_event(p, KPTI_EVENT_EXIT, call->name, ticks_of(p, call->end_ns));
    }
}

static void begin_call(putting *p, const kpti_import_call *call)
{
    put_event(p, KPTI_EVENT_ENTER, call->name, ticks_of(p, call->start_ns));
    if (!kpti_array_reserve(&kpti_malloc_heap, &p->open, &p->open_capacity, p->open_count + 1,
                            sizeof *p->open)) {
        p->status = KPT_E_MEMORY;
        return;
    }
    p->open[p->open_count++] = *call;
}

static void put_lane(putting *p, const kpti_import_track *track, uint32_t lane)
{
    p->chunk.sequence = 0;
    p->open_count = 0;
    for (uint64_t i = 0; i < track->count && p->status == KPT_OK; i++) {
        const kpti_import_call *call = &track->calls[i];
        const int is_point = call->order == (uint32_t)KPTI_IMPORT_POINT;
        if (is_point ? lane : call->order != lane) continue;
        end_calls(p, call->start_ns);
        if (is_point)
            put_event(p, KPTI_EVENT_MARK, call->name, ticks_of(p, call->start_ns));
        else
            begin_call(p, call);
    }
    end_calls(p, INT64_MAX);
    put_chunk(p);
}

/* --- tables ----------------------------------------------------------------------------------- */

static void put_table(putting *p, kpti_metadata *table)
{
    kpt_chunk chunk;
    kpti_metadata_chunk(table, &chunk);
    if (table->failed)
        p->status = KPT_E_MEMORY;
    else if (p->status == KPT_OK)
        p->status = kpti_kpt_put_chunk(p->writer, &chunk);
    kpti_metadata_free(table);
}

static void put_names(putting *p, const kpti_env *env)
{
    uint32_t at = 0;
    while (at < p->from->names->count && p->status == KPT_OK) {
        kpti_metadata table = {.env = env};
        at = kpti_metadata_add_names(&table, kpti_import_names_describe, p->from->names, at,
                                     p->from->names->count);
        if (table.format > p->format) p->format = table.format;
        put_table(p, &table);
    }
}

/* The line through these points gives each tick a nanosecond. They are far enough from each other for the loader to
 * trust them. */
static void put_clock(putting *p, const kpti_env *env)
{
    const kpti_import_tracks *tracks = p->from->tracks;
    const uint64_t last = tracks->calls ? ticks_of(p, tracks->last_ns) + 1 : 1;
    const uint64_t end = last > NS_IN_S ? last : NS_IN_S;
    const int64_t unix_ns = p->from->base_ns + tracks->first_ns - 1;
    const kpti_run run = {1, last};
    kpti_metadata table = {.env = env};
    const kpti_clock_point first = {0, 0, unix_ns, NS_IN_S, 0, 0};
    const kpti_clock_point second = {end, (int64_t)end, unix_ns + (int64_t)end, NS_IN_S, 0, 0};
    kpti_metadata_add_run(&table, 0, &run);
    kpti_metadata_add_clock(&table, &first);
    kpti_metadata_add_clock(&table, &second);
    put_table(p, &table);
}

static void put_stats(putting *p, const kpti_env *env, uint64_t threads)
{
    kpti_metadata table = {.env = env};
    kpt_stats stats;
    KPT_INIT(&stats);
    stats.events = p->put;
    stats.threads = threads;
    kpti_metadata_add_stats(&table, 0, &stats);
    put_table(p, &table);
}

/* --- threads ---------------------------------------------------------------------------------- */

/* Whether the calls are of several processes. Then the name of each track begins with its process. */
static int has_processes(const kpti_import_tracks *tracks)
{
    const kpti_import_track *first = NULL;
    for (uint32_t i = 0; i < tracks->count; i++) {
        const kpti_import_track *track = &tracks->items[i];
        if (!track->count) continue;
        if (!first) first = track;
        if (track->pid.size != first->pid.size ||
            memcmp(track->pid.data, first->pid.data, (size_t)first->pid.size) != 0)
            return 1;
    }
    return 0;
}

static uint64_t number_of(kpt_str text)
{
    uint64_t value = 0;
    if (!text.size || text.size > 18) return 0;
    for (uint64_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') return 0;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    return value;
}

static int length_of(kpt_str text)
{
    enum { MOST = 200 };
    return text.size < MOST ? (int)text.size : MOST;
}

/* Writes "python 12: MainThread (2)". */
static kpt_str label(char *out, const kpti_import_track *track, int processes, uint32_t lane)
{
    char number[24] = "";
    char before[MAX_LABEL] = "";
    int size;
    if (lane) (void)snprintf(number, sizeof number, " (%u)", lane + 1);
    if (processes)
        (void)snprintf(before, sizeof before, "%.*s%s%.*s: ", length_of(track->process),
                       track->process.data ? track->process.data : "",
                       track->process.size ? " " : "", length_of(track->pid),
                       track->pid.data ? track->pid.data : "");
    size = track->name.size
               ? snprintf(out, MAX_LABEL, "%s%.*s%s", before, length_of(track->name),
                          track->name.data, number)
               : snprintf(out, MAX_LABEL, "%sthread %.*s%s", before, length_of(track->tid),
                          track->tid.data ? track->tid.data : "", number);
    return (kpt_str){out, size < MAX_LABEL ? (uint64_t)size : MAX_LABEL - 1};
}

static void put_track(putting *p, const kpti_env *env, const kpti_import_track *track,
                      int processes, uint32_t *threads)
{
    for (uint32_t lane = 0; lane < track->lanes && p->status == KPT_OK; lane++) {
        char text[MAX_LABEL];
        kpti_metadata table = {.env = env};
        kpti_track out = {.name = label(text, track, processes, lane)};
        const uint64_t tid = processes || lane ? 0 : number_of(track->tid);
        out.os_tid = tid ? tid : FIRST_TID + *threads;
        kpti_metadata_add_thread(&table, *threads, &out);
        put_table(p, &table);
        KPT_INIT(&p->chunk);
        p->chunk.thread = (*threads)++;
        p->chunk.os_tid = out.os_tid;
        put_lane(p, track, lane);
    }
}

kpt_status kpti_import_put(const kpti_import_recording *recording, kpti_kpt_writer *writer)
{
    static const kpti_env env; /* malloc */
    putting p = {.from = recording, .writer = writer};
    const int processes = has_processes(recording->tracks);
    uint32_t threads = 0;
    p.events = malloc(CHUNK_EVENTS * sizeof *p.events);
    if (!p.events) return KPT_E_MEMORY;
    put_clock(&p, &env);
    put_names(&p, &env);
    for (uint32_t i = 0; i < recording->tracks->count; i++)
        if (recording->tracks->items[i].count)
            put_track(&p, &env, &recording->tracks->items[i], processes, &threads);
    put_stats(&p, &env, threads);
    free(p.events);
    kpti_heap_give(&kpti_malloc_heap, p.open, (size_t)p.open_capacity * sizeof *p.open);
    return p.status;
}
