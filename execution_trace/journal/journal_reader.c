#include "execution_trace/journal/journal_reader.h"

#include <sys/mman.h>

#include "core/base/growable_array.h"

/* --- chunks -------------------------------------------------------------------------------------- */

static kpt_status add_chunk(kpti_et_reader *r, const kpti_et_chunk *chunk, uint64_t words)
{
    const uint32_t index = r->chunk_count;
    kpti_et_lane *lane;
    kpt_status status =
        kpti_table_reach(&r->heap, &r->chunks, &r->chunk_room, index, sizeof *r->chunks);
    if (status == KPT_OK)
        status =
            kpti_table_reach(&r->heap, &r->lanes, &r->lane_room, chunk->stream, sizeof *r->lanes);
    if (status != KPT_OK) return status;
    r->chunks[index] = (kpti_et_found){chunk, words, 0};
    r->chunk_count++;
    if (r->lane_count <= chunk->stream) r->lane_count = chunk->stream + 1;
    lane = &r->lanes[chunk->stream];
    if (lane->last_chunk) r->chunks[lane->last_chunk - 1].next = index + 1;
    if (!lane->next_chunk) lane->next_chunk = index + 1;
    lane->last_chunk = index + 1;
    return KPT_OK;
}

/* Returns the size in bytes of the chunk at BYTES, of which SIZE bytes are present. Returns 0 if it is not
 * a chunk. */
static uint64_t chunk_bytes(const void *bytes, uint64_t size)
{
    const kpti_et_chunk *chunk = bytes;
    if (size < sizeof *chunk || chunk->magic != KPTI_ET_CHUNK_MAGIC) return 0;
    if (chunk->stream >= KPTI_ET_MOST_STREAMS || chunk->words > UINT64_MAX / KPTI_ET_WORD) return 0;
    return chunk->words * KPTI_ET_WORD % KPTI_ET_ALIGN ? 0 : chunk->words * KPTI_ET_WORD;
}

static int is_blank(const char *bytes, uint64_t size)
{
    return !bytes[0] && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static kpt_status find_chunks(kpti_et_reader *r, const char *bytes, uint64_t size)
{
    kpt_status status = KPT_OK;
    /* blocks of zeroes since the last chunk; at the end of the file they are space prepared for more chunks */
    uint64_t blank = 0;
    for (uint64_t at = 0; status == KPT_OK && at < size;) {
        const uint64_t left = size - at;
        uint64_t own = chunk_bytes(bytes + at, left);
        if (own) {
            const uint64_t there = own < left ? own : left;
            r->damaged += blank + (there < own);
            blank = 0;
            status = add_chunk(r, (const kpti_et_chunk *)(bytes + at), there / KPTI_ET_WORD);
            own = there;
        } else {
            own = left < KPTI_ET_ALIGN ? left : KPTI_ET_ALIGN; /* the next block may be valid */
            if (is_blank(bytes + at, own)) {
                blank++;
            } else {
                r->damaged += blank + 1;
                blank = 0;
            }
        }
        at += own;
    }
    return status;
}

/* --- records ------------------------------------------------------------------------------------- */

/* Returns the minimum size of a record of this kind in words, or 0 if the kind is unknown. */
static uint32_t least_words(const kpti_et_record *record)
{
    enum { MORE_WORDS = sizeof(kpti_et_more) / KPTI_ET_WORD };
    static const uint32_t bytes[] = {
        [KPTI_ET_BEGIN] = sizeof(kpti_et_begin),  [KPTI_ET_END] = sizeof(kpti_et_end),
        [KPTI_ET_PLACE] = sizeof(kpti_et_place),  [KPTI_ET_STACK] = sizeof(kpti_et_stack),
        [KPTI_ET_START] = sizeof(kpti_et_record), [KPTI_ET_STOP] = sizeof(kpti_et_record),
    };
    const uint16_t kind = record->kind;
    const int is_longer =
        (kind == KPTI_ET_BEGIN || kind == KPTI_ET_END) && record->flags & KPTI_ET_HAS_MORE;
    if (kind >= sizeof bytes / sizeof *bytes) return 0;
    return bytes[kind] / KPTI_ET_WORD + (is_longer ? MORE_WORDS : 0);
}

/* Returns the current end of the records of CHUNK. Increments *WRONG if `used` is larger than the chunk. */
static const uint64_t *records_end(const kpti_et_chunk *chunk, uint64_t words, uint64_t *wrong)
{
    const uint64_t most = words - KPTI_ET_CHUNK_WORDS;
    const uint64_t used = __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE);
    *wrong += used > most;
    return (const uint64_t *)chunk + KPTI_ET_CHUNK_WORDS + (used < most ? used : most);
}

/* Re-reads the end of the lane's chunk. Returns 1 if the chunk has grown. */
static int see_more(kpti_et_lane *lane)
{
    uint64_t wrong = 0; /* unused: open_chunk has counted it */
    const uint64_t *end = lane->end;
    if (!lane->item.chunk) return 0;
    lane->end = records_end(lane->item.chunk, lane->item.chunk_words, &wrong);
    return lane->end > end;
}

/* Moves the lane to its next chunk. Returns 0 if there is none. A thread finishes a chunk before it begins
 * the next one. */
static int open_chunk(kpti_et_reader *r, kpti_et_lane *lane, const uint64_t **at)
{
    const kpti_et_found *found;
    if (!lane->next_chunk) return 0;
    if (r->is_mapped && lane->item.chunk)
        (void)madvise((void *)lane->item.chunk, lane->item.chunk_words * KPTI_ET_WORD,
                      MADV_DONTNEED);
    found = &r->chunks[lane->next_chunk - 1];
    lane->next_chunk = found->next;
    lane->item.chunk = found->chunk;
    lane->item.chunk_words = found->words;
    lane->end = records_end(found->chunk, found->words, &r->damaged);
    *at = (const uint64_t *)found->chunk + KPTI_ET_CHUNK_WORDS;
    return 1;
}

/* Moves the lane to its next valid record. */
static void advance(kpti_et_reader *r, kpti_et_lane *lane)
{
    const kpti_et_record *record = lane->item.record;
    const uint64_t *at = record ? (const uint64_t *)record + record->words : lane->end;
    for (;;) {
        uint64_t left = (uint64_t)(lane->end - at);
        uint32_t least;
        if (left == 0) {
            if (see_more(lane) || open_chunk(r, lane, &at)) continue;
            lane->item.record = NULL;
            return;
        }
        record = (const kpti_et_record *)at;
        if (left < sizeof *record / KPTI_ET_WORD || record->words > left ||
            record->words < sizeof *record / KPTI_ET_WORD) {
            r->damaged++;
            at = lane->end; /* the position of the next record is unknown */
            continue;
        }
        lane->item.record = record;
        least = least_words(record);
        if (least && record->words >= least) return;
        r->damaged++;
        at += record->words;
    }
}

/* --- the order of time --------------------------------------------------------------------------- */

static int is_before(const kpti_et_reader *r, uint32_t a, uint32_t b)
{
    const int64_t a_ns = r->lanes[a].item.record->ns;
    const int64_t b_ns = r->lanes[b].item.record->ns;
    return a_ns != b_ns ? a_ns < b_ns : a < b;
}

static void sift_down(kpti_et_reader *r, uint32_t at)
{
    uint32_t *heap = r->heap_of_lanes;
    for (;;) {
        const uint32_t lane = heap[at];
        uint32_t child = 2 * at + 1;
        if (child >= r->heap_count) return;
        if (child + 1 < r->heap_count && is_before(r, heap[child + 1], heap[child])) child++;
        if (!is_before(r, heap[child], lane)) return;
        heap[at] = heap[child];
        heap[child] = lane;
        at = child;
    }
}

/* Adds lanes that have a first record, or a new one, to the heap. */
static kpt_status order_lanes(kpti_et_reader *r)
{
    for (uint32_t i = 0; i < r->lane_count; i++) {
        kpti_et_lane *lane = &r->lanes[i];
        kpt_status status = kpti_table_reach(&r->heap, &r->heap_of_lanes, &r->heap_room,
                                             r->heap_count, sizeof *r->heap_of_lanes);
        if (status != KPT_OK) return status;
        if (lane->item.record) continue;
        lane->item.stream = i;
        advance(r, lane);
        if (lane->item.record) r->heap_of_lanes[r->heap_count++] = i;
    }
    for (uint32_t i = r->heap_count; i-- > 0;)
        sift_down(r, i);
    return KPT_OK;
}

kpt_status kpti_et_reader_add(kpti_et_reader *r, const void *bytes, uint64_t size)
{
    const kpt_status status = find_chunks(r, bytes, size);
    return status == KPT_OK ? order_lanes(r) : status;
}

kpt_status kpti_et_reader_open(kpti_et_reader *r, const void *bytes, uint64_t size)
{
    const uint64_t first = size < KPTI_ET_ALIGN ? size : KPTI_ET_ALIGN;
    r->head = bytes;
    if (size < sizeof *r->head || r->head->magic != KPTI_ET_MAGIC) return KPT_E_INVALID;
    return kpti_et_reader_add(r, (const char *)bytes + first, size - first);
}

void kpti_et_reader_close(kpti_et_reader *r)
{
    kpti_heap_give(&r->heap, r->chunks, r->chunk_room * sizeof *r->chunks);
    kpti_heap_give(&r->heap, r->lanes, r->lane_room * sizeof *r->lanes);
    kpti_heap_give(&r->heap, r->heap_of_lanes, r->heap_room * sizeof *r->heap_of_lanes);
}

int kpti_et_reader_next(kpti_et_reader *r, kpti_et_item *item, int64_t last_ns)
{
    kpti_et_lane *lane;
    if (!r->heap_count) return 0;
    lane = &r->lanes[r->heap_of_lanes[0]];
    if (lane->item.record->ns > last_ns) return 0;
    *item = lane->item;
    advance(r, lane);
    if (!lane->item.record) r->heap_of_lanes[0] = r->heap_of_lanes[--r->heap_count];
    if (r->heap_count) sift_down(r, 0);
    return 1;
}
