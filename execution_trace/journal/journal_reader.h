/* journal_reader.h: a journal's records in the order of their time, over all threads. Of a damaged or cut
 * journal it gives what is there: chunks and records that can't be are left out, and nothing outside of the
 * bytes is read. It may be read while it grows: chunks are added as they are taken, and what they have is seen. */
#ifndef KPTI_EXECUTION_TRACE_JOURNAL_JOURNAL_READER_H
#define KPTI_EXECUTION_TRACE_JOURNAL_JOURNAL_READER_H

#include <string.h>

#include "core/base/allocator.h"
#include "execution_trace/journal/journal_format.h"

/* A record, checked: all of it lies within its chunk. */
typedef struct kpti_et_item {
    const kpti_et_record *record;
    const kpti_et_chunk *chunk;
    uint32_t stream;
    uint64_t chunk_words;
} kpti_et_item;

/* A thread's chunks, and where we are in them. */
typedef struct kpti_et_lane {
    kpti_et_item item; /* the next one; record NULL: there is none */
    const uint64_t *end;
    uint32_t next_chunk; /* one more than its index; 0: none */
    uint32_t last_chunk;
} kpti_et_lane;

typedef struct kpti_et_found {
    const kpti_et_chunk *chunk;
    uint64_t words; /* of it that there are */
    uint32_t next;  /* of its stream; one more than the index */
} kpti_et_found;

typedef struct kpti_et_reader {
    kpti_heap heap;
    int is_mapped; /* shared with a file: what was read need not stay in memory */
    const kpti_et_head *head;
    kpti_et_found *chunks;
    uint32_t chunk_count;
    uint32_t chunk_room;
    kpti_et_lane *lanes; /* by stream */
    uint32_t lane_count;
    uint32_t lane_room;
    uint32_t *heap_of_lanes; /* those that have an item, the earliest first */
    uint32_t heap_count;
    uint32_t heap_room;
    uint64_t damaged; /* places where something was left out */
} kpti_et_reader;

/* BYTES are borrowed until close. KPT_OK, KPT_E_INVALID for what is no journal, KPT_E_MEMORY; needs a close
 * in any case. Before, READER is zeroed but for its heap and whether it is mapped. */
kpt_status kpti_et_reader_open(kpti_et_reader *reader, const void *bytes, uint64_t size);
void kpti_et_reader_close(kpti_et_reader *reader);
/* Takes what the chunks have got since, and adds those that BYTES are, which follow what was there before;
 * borrowed as well. KPT_OK, KPT_E_MEMORY. */
kpt_status kpti_et_reader_add(kpti_et_reader *reader, const void *bytes, uint64_t size);
/* The next one, up to LAST_NS; 0: there are no more. */
int kpti_et_reader_next(kpti_et_reader *reader, kpti_et_item *item, int64_t last_ns);

/* A text of ITEM's chunk; what can't be is empty. */
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

/* What ITEM, a begin, is a call of; NULL where that can't be. */
static inline const kpti_et_function *kpti_et_item_function(const kpti_et_item *item)
{
    enum { WORDS = sizeof(kpti_et_function) / KPTI_ET_WORD };
    const uint32_t at = ((const kpti_et_begin *)item->record)->function;
    if (at < KPTI_ET_CHUNK_WORDS || item->chunk_words < WORDS || at > item->chunk_words - WORDS)
        return NULL;
    return (const kpti_et_function *)((const uint64_t *)item->chunk + at);
}

/* Of a begin or an end, BEHIND which it is; zeroes where there is no more. */
static inline kpti_et_more kpti_et_more_of(const kpti_et_record *record, const void *behind)
{
    kpti_et_more more = {0, 0, 0};
    if (record->flags & KPTI_ET_HAS_MORE) memcpy(&more, behind, sizeof more);
    return more;
}

/* Where its values begin. */
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
