/* journal_reader.h: reads a journal's records over all threads, in the order of time. In a damaged or
 * truncated journal the reader skips invalid chunks and records, and reads nothing outside the bytes. A
 * journal may be read while it grows: the caller adds chunks as they are allocated, and the reader finds
 * the records that were added to known chunks. */
#ifndef KPTI_EXECUTION_TRACE_JOURNAL_JOURNAL_READER_H
#define KPTI_EXECUTION_TRACE_JOURNAL_JOURNAL_READER_H

#include <string.h>

#include "core/base/allocator.h"
#include "execution_trace/journal/journal_format.h"

/* A checked record: all of it is within its chunk. */
typedef struct kpti_et_item {
    const kpti_et_record *record;
    const kpti_et_chunk *chunk;
    uint32_t stream;
    uint64_t chunk_words;
} kpti_et_item;

/* A thread's chunks, and the position of the reader in them. */
typedef struct kpti_et_thread_chunks {
    kpti_et_item item; /* the next record; item.record is NULL if there is none */
    const uint64_t *end;
    uint32_t next_chunk; /* index + 1; 0 if there is none */
    uint32_t last_chunk;
} kpti_et_thread_chunks;

typedef struct kpti_et_found {
    const kpti_et_chunk *chunk;
    uint64_t words; /* of the chunk, as far as the file has it */
    uint32_t next;  /* the next chunk of the stream, as index + 1; 0 if there is none */
} kpti_et_found;

typedef struct kpti_et_reader {
    kpti_heap heap;
    int is_mapped; /* the bytes are a shared file mapping, so pages that were read can be dropped from memory */
    const kpti_et_head *head;
    kpti_et_found *chunks;
    uint32_t chunk_count;
    uint32_t chunk_capacity;
    kpti_et_thread_chunks *thread_chunks; /* by stream */
    uint32_t thread_count;
    uint32_t thread_capacity;
    uint32_t *heap_of_threads; /* threads that have an item, the earliest first */
    uint32_t heap_count;
    uint32_t heap_capacity;
    uint64_t damaged; /* number of places where the reader skipped something */
} kpti_et_reader;

/* Opens the journal in BYTES, which are borrowed until close. READER is zeroed except for heap and
 * is_mapped. Returns KPT_OK, KPT_E_INVALID if BYTES are not a journal, or KPT_E_MEMORY. The caller calls
 * close in each case. */
kpt_status kpti_et_reader_open(kpti_et_reader *reader, const void *bytes, uint64_t size);
void kpti_et_reader_close(kpti_et_reader *reader);
/* Reads the records that were added to known chunks, and adds the chunks in BYTES, which follow the known
 * ones. BYTES are borrowed until close. Returns KPT_OK or KPT_E_MEMORY. */
kpt_status kpti_et_reader_add(kpti_et_reader *reader, const void *bytes, uint64_t size);
/* Reads the next record that is not later than LAST_NS. Returns 0 if there is none. */
int kpti_et_reader_next(kpti_et_reader *reader, kpti_et_item *item, int64_t last_ns);

/* Returns a text of ITEM's chunk, or an empty text if AT is invalid. */
static inline kpt_str kpti_et_item_text(const kpti_et_item *item, uint32_t at)
{
    const uint64_t *words = (const uint64_t *)item->chunk;
    kpt_str text = {NULL, 0};
    if (at < KPTI_ET_CHUNK_WORDS || at >= item->chunk_words) return text;
    if (kpti_et_words(words[at]) > item->chunk_words - at - 1) return text;
    text.data = (const char *)(words + at + 1);
    text.size = words[at];
    return text;
}

/* Returns the function of ITEM, which is a begin, or NULL if the offset is invalid. */
static inline const kpti_et_function *kpti_et_item_function(const kpti_et_item *item)
{
    enum { WORDS = sizeof(kpti_et_function) / KPTI_ET_WORD };
    const uint32_t at = ((const kpti_et_begin *)item->record)->function;
    if (at < KPTI_ET_CHUNK_WORDS || item->chunk_words < WORDS || at > item->chunk_words - WORDS)
        return NULL;
    return (const kpti_et_function *)((const uint64_t *)item->chunk + at);
}

/* Returns the kpti_et_more at BEHIND, which follows a begin or an end, or zeroes if the record has none. */
static inline kpti_et_more kpti_et_more_of(const kpti_et_record *record, const void *behind)
{
    kpti_et_more more = {0, 0, 0};
    if (record->flags & KPTI_ET_HAS_MORE) memcpy(&more, behind, sizeof more);
    return more;
}

/* Returns the position of the record's first value. */
static inline const uint64_t *kpti_et_values_of(const kpti_et_record *record, const void *behind)
{
    enum { WORDS = sizeof(kpti_et_more) / KPTI_ET_WORD };
    return (const uint64_t *)behind + (record->flags & KPTI_ET_HAS_MORE ? WORDS : 0);
}

static inline const uint64_t *kpti_et_item_end(const kpti_et_item *item)
{
    return (const uint64_t *)item->record + item->record->words;
}

#endif
