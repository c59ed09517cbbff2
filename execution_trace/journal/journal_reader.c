#include "execution_trace/journal/journal_reader.h"

#include <sys/mman.h>

#include "core/base/assert.h"
#include "core/base/growable_array.h"

/* --- chunks -------------------------------------------------------------------------------------- */

static kpt_status add_chunk(kpti_et_reader *r, const kpti_et_chunk *chunk, uint64_t words)
{
    const uint32_t index = r->chunk_count;
    kpti_et_thread_chunks *thread_chunks;
    kpt_status status =
        kpti_array_reach(&r->heap, &r->chunks, &r->chunk_capacity, index, sizeof *r->chunks);
    if (status == KPT_OK)
        status = kpti_array_reach(&r->heap, &r->thread_chunks, &r->thread_capacity, chunk->stream,
                                  sizeof *r->thread_chunks);
    if (status != KPT_OK) return status;
    r->chunks[index] = (kpti_et_found){chunk, words, 0};
    r->chunk_count++;
    kpti_assert(r->chunk_count <= r->chunk_capacity && words >= KPTI_ET_CHUNK_WORDS);
    if (r->thread_count <= chunk->stream) r->thread_count = chunk->stream + 1;
    thread_chunks = &r->thread_chunks[chunk->stream];
    if (thread_chunks->last_chunk) r->chunks[thread_chunks->last_chunk - 1].next = index + 1;
    if (!thread_chunks->next_chunk) thread_chunks->next_chunk = index + 1;
    thread_chunks->last_chunk = index + 1;
    return KPT_OK;
}

/* Returns the size in bytes of the chunk at BYTES, of which SIZE bytes are present. Returns 0 if it is not
 * a chunk. */
static uint64_t chunk_bytes(const void *bytes, uint64_t size)
{
    const kpti_et_chunk *chunk = bytes;
    if (size < sizeof *chunk || chunk->magic != KPTI_ET_CHUNK_MAGIC) return 0;
    if (chunk->stream >= KPTI_ET_MAX_STREAMS || chunk->words > UINT64_MAX / KPTI_ET_WORD) return 0;
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
        [KPTI_ET_BEGIN] = sizeof(kpti_et_begin),       [KPTI_ET_END] = sizeof(kpti_et_end),
        [KPTI_ET_LOCATION] = sizeof(kpti_et_location), [KPTI_ET_STACK] = sizeof(kpti_et_stack),
        [KPTI_ET_START] = sizeof(kpti_et_record),      [KPTI_ET_STOP] = sizeof(kpti_et_record),
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
    const uint64_t max = words - KPTI_ET_CHUNK_WORDS;
    const uint64_t used = __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE);
    *wrong += used > max;
    return (const uint64_t *)chunk + KPTI_ET_CHUNK_WORDS + (used < max ? used : max);
}

/* Re-reads the end of the thread's current chunk. Returns 1 if the chunk has grown. */
static int see_more(kpti_et_thread_chunks *thread_chunks)
{
    uint64_t wrong = 0; /* unused: open_chunk has counted it */
    const uint64_t *end = thread_chunks->end;
    if (!thread_chunks->item.chunk) return 0;
    thread_chunks->end =
        records_end(thread_chunks->item.chunk, thread_chunks->item.chunk_words, &wrong);
    return thread_chunks->end > end;
}

/* Moves the thread to its next chunk. Returns 0 if there is none. A thread finishes a chunk before it begins
 * the next one. */
static int open_chunk(kpti_et_reader *r, kpti_et_thread_chunks *thread_chunks, const uint64_t **at)
{
    const kpti_et_found *found;
    if (!thread_chunks->next_chunk) return 0;
    if (r->is_mapped && thread_chunks->item.chunk)
        (void)madvise((void *)thread_chunks->item.chunk,
                      thread_chunks->item.chunk_words * KPTI_ET_WORD, MADV_DONTNEED);
    found = &r->chunks[thread_chunks->next_chunk - 1];
    thread_chunks->next_chunk = found->next;
    thread_chunks->item.chunk = found->chunk;
    thread_chunks->item.chunk_words = found->words;
    thread_chunks->end = records_end(found->chunk, found->words, &r->damaged);
    *at = (const uint64_t *)found->chunk + KPTI_ET_CHUNK_WORDS;
    return 1;
}

/* Moves the thread to its next valid record. */
static void advance(kpti_et_reader *r, kpti_et_thread_chunks *thread_chunks)
{
    const kpti_et_record *record = thread_chunks->item.record;
    const uint64_t *at = record ? (const uint64_t *)record + record->words : thread_chunks->end;
    for (;;) {
        uint64_t left = (uint64_t)(thread_chunks->end - at);
        uint32_t min;
        if (left == 0) {
            if (see_more(thread_chunks) || open_chunk(r, thread_chunks, &at)) continue;
            thread_chunks->item.record = NULL;
            return;
        }
        record = (const kpti_et_record *)at;
        if (left < sizeof *record / KPTI_ET_WORD || record->words > left ||
            record->words < sizeof *record / KPTI_ET_WORD) {
            r->damaged++;
            at = thread_chunks->end; /* the position of the next record is unknown */
            continue;
        }
        thread_chunks->item.record = record;
        min = least_words(record);
        if (min && record->words >= min) return;
        r->damaged++;
        at += record->words;
    }
}

/* --- the order of time --------------------------------------------------------------------------- */

static int is_before(const kpti_et_reader *r, uint32_t a, uint32_t b)
{
    const int64_t a_ns = r->thread_chunks[a].item.record->ns;
    const int64_t b_ns = r->thread_chunks[b].item.record->ns;
    return a_ns != b_ns ? a_ns < b_ns : a < b;
}

static void sift_down(kpti_et_reader *r, uint32_t at)
{
    uint32_t *heap = r->heap_of_threads;
    for (;;) {
        const uint32_t thread_chunks = heap[at];
        uint32_t child = 2 * at + 1;
        if (child >= r->heap_count) return;
        if (child + 1 < r->heap_count && is_before(r, heap[child + 1], heap[child])) child++;
        if (!is_before(r, heap[child], thread_chunks)) return;
        heap[at] = heap[child];
        heap[child] = thread_chunks;
        at = child;
    }
}

/* Adds threads that have a first record, or a new one, to the heap. */
static kpt_status order_threads(kpti_et_reader *r)
{
    for (uint32_t i = 0; i < r->thread_count; i++) {
        kpti_et_thread_chunks *thread_chunks = &r->thread_chunks[i];
        kpt_status status = kpti_array_reach(&r->heap, &r->heap_of_threads, &r->heap_capacity,
                                             r->heap_count, sizeof *r->heap_of_threads);
        if (status != KPT_OK) return status;
        if (thread_chunks->item.record) continue;
        thread_chunks->item.stream = i;
        advance(r, thread_chunks);
        if (thread_chunks->item.record) r->heap_of_threads[r->heap_count++] = i;
    }
    for (uint32_t i = r->heap_count; i-- > 0;)
        sift_down(r, i);
    kpti_assert(r->heap_count <= r->thread_count && r->thread_count <= r->thread_capacity);
    return KPT_OK;
}

kpt_status kpti_et_reader_add(kpti_et_reader *r, const void *bytes, uint64_t size)
{
    const kpt_status status = find_chunks(r, bytes, size);
    return status == KPT_OK ? order_threads(r) : status;
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
    kpti_heap_give(&r->heap, r->chunks, r->chunk_capacity * sizeof *r->chunks);
    kpti_heap_give(&r->heap, r->thread_chunks, r->thread_capacity * sizeof *r->thread_chunks);
    kpti_heap_give(&r->heap, r->heap_of_threads, r->heap_capacity * sizeof *r->heap_of_threads);
}

int kpti_et_reader_next(kpti_et_reader *r, kpti_et_item *item, int64_t last_ns)
{
    kpti_et_thread_chunks *thread_chunks;
    if (!r->heap_count) return 0;
    thread_chunks = &r->thread_chunks[r->heap_of_threads[0]];
    if (thread_chunks->item.record->ns > last_ns) return 0;
    *item = thread_chunks->item;
    kpti_assert(kpti_et_item_end(item) <= (const uint64_t *)item->chunk + item->chunk_words);
    advance(r, thread_chunks);
    if (!thread_chunks->item.record) r->heap_of_threads[0] = r->heap_of_threads[--r->heap_count];
    if (r->heap_count) sift_down(r, 0);
    return 1;
}
