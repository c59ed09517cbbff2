#include "core/recording/serialized/chunk_loader.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/host_heap.h"
#include "core/base/packed_words.h"
#include "core/base/platform.h"
#include "core/recording/replay/track_begin.h"

/* Memory is bounded by the size of the chunks, whatever numbers a damaged chunk contains: runs are numbered
 * without gaps, and only threads that have data take memory. */

/* --- arrays ----------------------------------------------------------------------------------- */

/* Extends the list to COUNT items of SIZE bytes; the new items are zeroed. Returns 0 if there is no memory. */
static int extend(const kpti_env *env, kpti_list *l, uint32_t count, size_t size)
{
    if (!kpti_host_array_reserve(env, &l->items, &l->capacity, count, size)) return 0;
    if (count > l->count) l->count = count;
    kpti_assert(l->count <= l->capacity);
    return 1;
}

/* --- threads ---------------------------------------------------------------------------------- */

static int is_used(const void *slot)
{
    return ((const kpti_thread_page *)slot)->ends != NULL;
}

static int has_key(const void *slot, const void *number, const void *ctx)
{
    (void)ctx;
    return ((const kpti_thread_page *)slot)->number == *(const uint32_t *)number;
}

static uint64_t hash_of(uint32_t number, uint64_t multiplier)
{
    return number * multiplier >> 32;
}

static uint64_t hash(const void *slot, const void *multiplier)
{
    return hash_of(((const kpti_thread_page *)slot)->number, *(const uint64_t *)multiplier);
}

static const kpti_hash_slots page_slots = {sizeof(kpti_thread_page), 64, is_used, has_key, hash};

void kpti_loaded_free_pages(kpti_loaded *r)
{
    const kpti_heap heap = kpti_host_heap(r->env);
    for (uint64_t i = 0; i < r->pages.capacity; i++)
        kpti_free(r->env, ((kpti_thread_page *)r->pages.slots)[i].ends,
                  KPTI_THREADS_IN_PAGE * sizeof(uint32_t));
    kpti_hash_table_free(&r->pages, &page_slots, &heap);
}

/* Returns the page with NUMBER, added if it is new, or NULL if there is no memory. */
static kpti_thread_page *reach_page(kpti_loaded *r, uint32_t number)
{
    const kpti_heap heap = kpti_host_heap(r->env);
    kpti_thread_page *page;
    if (!kpti_hash_table_reserve(&r->pages, &page_slots, &heap, &r->multiplier)) return NULL;
    page =
        kpti_hash_table_find(&r->pages, &page_slots, hash_of(number, r->multiplier), &number, NULL);
    if (page->ends) return page;
    page->ends = kpti_alloc(r->env, KPTI_THREADS_IN_PAGE * sizeof *page->ends);
    if (!page->ends) return NULL;
    page->number = number;
    r->pages.count++;
    return page;
}

/* Returns 0 if there is no memory. */
static int add_thread(kpti_loaded *r, uint32_t index)
{
    if (r->thread_count == r->blocks.count * KPTI_THREADS_IN_BLOCK) {
        kpti_loaded_thread *block = kpti_alloc(r->env, KPTI_THREADS_IN_BLOCK * sizeof *block);
        if (!block) return 0;
        if (!extend(r->env, &r->blocks, r->blocks.count + 1, sizeof block)) {
            kpti_free(r->env, block, KPTI_THREADS_IN_BLOCK * sizeof *block);
            return 0;
        }
        ((kpti_loaded_thread **)r->blocks.items)[r->blocks.count - 1] = block;
    }
    r->thread_count++;
    kpti_loaded_thread_at(r, r->thread_count - 1)->index = index;
    return 1;
}

/* Returns thread INDEX, added if it is new, or NULL if there is no memory. */
static kpti_loaded_thread *reach_thread(kpti_loaded *r, uint32_t index)
{
    kpti_thread_page *page = reach_page(r, index / KPTI_THREADS_IN_PAGE);
    uint32_t *end;
    if (!page) return NULL;
    end = &page->ends[index % KPTI_THREADS_IN_PAGE];
    if (!*end) {
        if (!add_thread(r, index)) return NULL;
        *end = r->thread_count;
    }
    return kpti_loaded_thread_at(r, *end - 1);
}

static int by_number(const void *a, const void *b)
{
    const kpti_thread_page *x = a;
    const kpti_thread_page *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Sorts the pages, which are then no hash table any more. Empty slots are last. */
static void sort_pages(kpti_loaded *r)
{
    kpti_thread_page *const pages = r->pages.slots;
    uint64_t count = 0;
    for (uint64_t i = 0; i < r->pages.capacity; i++) {
        const kpti_thread_page page = pages[i];
        if (!page.ends) continue;
        pages[i].ends = NULL;
        pages[count++] = page;
    }
    qsort(pages, count, sizeof *pages, by_number);
}

/* All is loaded: sorts the threads by their index. Returns 0 if there is no memory. */
static int sort_threads(kpti_loaded *r)
{
    const kpti_thread_page *const pages = r->pages.slots;
    uint32_t count = 0;
    if (!r->thread_count) return 1;
    r->tracks = kpti_alloc(r->env, r->thread_count * sizeof *r->tracks);
    if (!r->tracks) return 0;
    sort_pages(r);
    for (uint64_t p = 0; p < r->pages.count; p++)
        for (uint32_t i = 0; i < KPTI_THREADS_IN_PAGE; i++)
            if (pages[p].ends[i]) r->tracks[count++] = pages[p].ends[i] - 1;
    kpti_assert(count == r->thread_count);
    kpti_loaded_free_pages(r);
    return 1;
}

/* Returns whether a recorder can have assigned the largest index. It numbers all threads, and some may be missing: there
 * was no memory for their events, or the file is incomplete. */
static int is_plausible(const kpti_loaded *r)
{
    enum { MISSING_FOR_EACH = 1024, ALWAYS = 4096 };
    const uint32_t largest = kpti_loaded_thread_at(r, r->tracks[r->thread_count - 1])->index;
    return largest / MISSING_FOR_EACH < (uint64_t)r->thread_count + ALWAYS;
}

/* --- tracks ----------------------------------------------------------------------------------- */

const kpti_chunk *kpti_loaded_first_chunk(const void *ctx, uint32_t track)
{
    const kpti_loaded *r = ctx;
    return kpti_loaded_thread_at(r, r->tracks[track])->first;
}

void kpti_loaded_read_track(const void *ctx, uint32_t track, kpti_track *out)
{
    const kpti_loaded *r = ctx;
    const kpti_loaded_thread *t = kpti_loaded_thread_at(r, r->tracks[track]);
    const kpti_section section = {KPTI_METADATA_THREAD, t->section_bytes, t->section};
    kpti_indexed_chunk chunk;
    uint32_t index;
    memset(out, 0, sizeof *out);
    if (t->section) (void)kpti_section_thread(&section, &index, out);
    out->chunks = t->first;
    for (const kpti_chunk *at = t->first; at && !out->os_tid; at = chunk.head.next) {
        kpti_chunk_index_read(&r->chunks, at, &chunk);
        out->os_tid = chunk.chunk.os_tid;
    }
    /* Without the final tables it is not known which threads have spans. */
    if (!r->whole) out->spans = 1;
}

/* --- tables ----------------------------------------------------------------------------------- */

static kpt_status damaged(kpti_error *error, const char *what)
{
    return kpti_fail(error, KPT_E_INVALID, "the recording is damaged: %s", what);
}

static kpt_status no_memory(kpti_error *error)
{
    return kpti_fail(error, KPT_E_MEMORY, "no memory to load the recording");
}

static kpt_status take_run(kpti_loaded *r, const kpti_section *section, kpti_error *error)
{
    kpti_run run;
    uint32_t number;
    if (!kpti_section_run(section, &number, &run) || number > r->runs.count)
        return damaged(error, "a run is invalid");
    if (!extend(r->env, &r->runs, number + 1, sizeof run)) return no_memory(error);
    ((kpti_run *)r->runs.items)[number] = run;
    if (!run.stop_ticks) r->whole = 0; /* a restart: the earlier counters are incomplete */
    return KPT_OK;
}

static kpt_status take_clock(kpti_loaded *r, const kpti_section *section, kpti_error *error)
{
    kpti_clock_point point;
    if (!kpti_section_clock(section, &point)) return damaged(error, "a clock point is invalid");
    if (!r->points || point.ticks < r->first_point.ticks) r->first_point = point;
    if (!r->points || point.ticks >= r->last_point.ticks) r->last_point = point;
    r->points++;
    return KPT_OK;
}

static kpt_status take_thread(kpti_loaded *r, const kpti_section *section, kpti_error *error)
{
    kpti_track track;
    uint32_t index;
    kpti_loaded_thread *t;
    if (!kpti_section_thread(section, &index, &track) || index == KPT_CHUNK_TABLE)
        return damaged(error, "a thread is invalid");
    t = reach_thread(r, index);
    if (!t) return no_memory(error);
    t->section = section->bytes;
    t->section_bytes = section->size;
    return KPT_OK;
}

static kpt_status take_names(kpti_loaded *r, const kpti_section *section, kpti_error *error)
{
    uint64_t at = 0;
    uint32_t first;
    uint32_t count;
    if (!kpti_section_names(section, &first, &count) || first > r->names.count)
        return damaged(error, "names are missing");
    if (!extend(r->env, &r->names, first + count, sizeof(kpti_function_view)))
        return no_memory(error);
    for (uint32_t i = 0; i < count; i++)
        if (!kpti_section_next_name(section, &at, (kpti_function_view *)r->names.items + first + i))
            return damaged(error, "a name is invalid");
    return KPT_OK;
}

static kpt_status take_stats(kpti_loaded *r, const kpti_section *section, kpti_error *error)
{
    uint64_t min_duration_ns;
    if (!kpti_section_stats(section, &min_duration_ns, &r->stats))
        return damaged(error, "the counters are invalid");
    if (!r->min_duration_ns) r->min_duration_ns = min_duration_ns;
    r->whole = 1;
    return KPT_OK;
}

static kpt_status take_remote_ends(kpti_loaded *r, const kpti_section *section, kpti_error *error)
{
    const uint32_t count = kpti_section_cross_thread_ends(section);
    r->cross_thread_ends.count = 0;
    if (!extend(r->env, &r->cross_thread_ends, count, sizeof(kpti_cross_thread_end)))
        return no_memory(error);
    for (uint32_t i = 0; i < count; i++) {
        kpti_cross_thread_end *ends = r->cross_thread_ends.items;
        ends[i] = kpti_section_cross_thread_end(section, i);
        if (i && ends[i].ticks < ends[i - 1].ticks)
            return damaged(error, "the ends of spans are not sorted by time");
    }
    return KPT_OK;
}

static kpt_status take_table(kpti_loaded *r, const kpt_chunk *chunk, kpti_error *error)
{
    kpti_section section;
    uint64_t at = 0;
    kpt_status status = KPT_OK;
    int more = 1;
    while (status == KPT_OK) {
        more = kpti_metadata_next(chunk->data, chunk->size_bytes, &at, &section);
        if (more <= 0) break;
        if (section.kind == KPTI_METADATA_RUN)
            status = take_run(r, &section, error);
        else if (section.kind == KPTI_METADATA_CLOCK)
            status = take_clock(r, &section, error);
        else if (section.kind == KPTI_METADATA_THREAD)
            status = take_thread(r, &section, error);
        else if (section.kind == KPTI_METADATA_NAMES)
            status = take_names(r, &section, error);
        else if (section.kind == KPTI_METADATA_STATS)
            status = take_stats(r, &section, error);
        else if (section.kind == KPTI_METADATA_CROSS_THREAD_ENDS)
            status = take_remote_ends(r, &section, error);
    }
    return more < 0 ? damaged(error, "a table is truncated") : status;
}

/* --- chunks ----------------------------------------------------------------------------------- */

_Static_assert(KPTI_PACKED_UNTIMED ==
                       (1 << KPTI_EVENT_TEXT | 1 << KPTI_EVENT_OPERATOR | 1 << KPTI_EVENT_INPUTS) &&
                   KPTI_PACKED_KINDS == 1 << KPTI_KIND_BITS &&
                   0 + KPTI_PACKED_NEWEST == 0 + KPTI_CHUNK_FORMAT_NEWEST,
               "packing knows the layout of events");

int kpti_loaded_is_packed(const kpt_chunk *chunk)
{
    return (chunk->format & KPTI_PACKED_FORMAT) != 0;
}

uint64_t kpti_loaded_event_count(const kpt_chunk *chunk)
{
    return kpti_loaded_is_packed(chunk) ? kpti_packed_count(chunk->data, chunk->size_bytes)
                                        : chunk->size_bytes / sizeof(kpti_event);
}

/* Returns the first ticks of CHUNK, which has COUNT events. */
static uint64_t first_ticks(const kpt_chunk *chunk, uint32_t count)
{
    const kpti_chunk head = {.base_ticks = chunk->first_ticks,
                             .sequence = chunk->sequence,
                             .count = count,
                             .packed_bytes =
                                 kpti_loaded_is_packed(chunk) ? (uint32_t)chunk->size_bytes : 0,
                             .events = (kpti_event *)chunk->data};
    return kpti_chunk_first_ticks(&head);
}

static kpt_status take_events(kpti_loaded *r, const kpt_chunk *chunk, kpti_error *error)
{
    const uint64_t count = kpti_loaded_event_count(chunk);
    kpti_loaded_thread *t;
    kpti_chunk *place;
    if (count > UINT32_MAX || (kpti_loaded_is_packed(chunk) && chunk->size_bytes > UINT32_MAX))
        return damaged(error, "a chunk is too large");
    if (kpti_loaded_is_packed(chunk) && !count) return damaged(error, "a packed chunk is invalid");
    t = reach_thread(r, chunk->thread);
    if (!t) return no_memory(error);
    place = kpti_chunk_index_add(&r->chunks, r->env, chunk, (uint32_t)count,
                                 first_ticks(chunk, (uint32_t)count));
    if (!place) return no_memory(error);
    if (t->last)
        kpti_chunk_index_link(t->last, place);
    else
        t->first = place;
    t->last = place;
    if (chunk->last_ticks > r->last_ticks) r->last_ticks = chunk->last_ticks;
    return KPT_OK;
}

static kpt_status take_chunk(kpti_loaded *r, const kpt_chunk *chunk, kpti_error *error)
{
    if ((chunk->format & ~(uint32_t)KPTI_PACKED_FORMAT) > KPTI_CHUNK_FORMAT_NEWEST)
        return kpti_fail(
            error, KPT_E_UNSUPPORTED,
            "the recording has format %u, but this version of kpytrace reads formats up to %d: "
            "use the version that made it, or a newer one",
            chunk->format & ~(uint32_t)KPTI_PACKED_FORMAT, KPTI_CHUNK_FORMAT_NEWEST);
    if (chunk->size_bytes && (!chunk->data || (uintptr_t)chunk->data % sizeof(kpti_event)))
        return kpti_fail(error, KPT_E_INVALID, "a chunk's data is NULL, or not aligned to 8 bytes");
    if (chunk->thread != KPT_CHUNK_TABLE) return take_events(r, chunk, error);
    if (!kpti_chunk_index_add(&r->chunks, r->env, chunk, 0, 0)) return no_memory(error);
    return take_table(r, chunk, error);
}

static kpt_status take_all(kpti_loaded *r, const kpt_load_args *args, kpti_error *error)
{
    for (;;) {
        kpt_chunk chunk;
        kpt_status status;
        KPT_INIT(&chunk);
        status = args->next(args->next_ctx, &chunk);
        if (status == KPT_DECLINED) return KPT_OK;
        if (status != KPT_OK)
            return kpti_fail(error, status, "load: args.next returned %s", kpt_status_name(status));
        status = take_chunk(r, &chunk, error);
        if (status != KPT_OK) return status;
    }
}

/* Completes a recording that a crash cut short: sets the ends of runs. */
static void complete(kpti_loaded *r)
{
    kpti_run *runs = r->runs.items;
    for (uint32_t i = 0; i < r->runs.count; i++)
        if (!runs[i].stop_ticks)
            runs[i].stop_ticks = i + 1 < r->runs.count ? runs[i + 1].start_ticks : r->last_ticks;
}

kpt_status kpti_load_all(kpti_loaded *r, const kpt_load_args *args, kpti_error *error)
{
    kpt_status status;
    r->multiplier = kpti_hash_spread(kpti_ticks() ^ (uintptr_t)r << 20) | 1;
    status = take_all(r, args, error);
    if (status != KPT_OK) return status;
    if (!r->points && r->thread_count) return damaged(error, "it has no clock point");
    complete(r);
    if (!sort_threads(r)) return no_memory(error);
    if (r->thread_count && !is_plausible(r))
        return damaged(error, "a thread's index is out of range");
    return KPT_OK;
}
