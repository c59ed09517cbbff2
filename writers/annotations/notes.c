#include "writers/annotations/notes.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/utf8.h"
#include "writers/encode/json_scan.h"

enum { FIRST_CAPACITY = 64, BLOCK_BYTES = 4000 };

/* A block of texts, stored one after the other, so that a note needs no allocation of its own. It is freed with
 * the last note that has a text in it. */
typedef struct kpti_note_texts {
    struct kpti_note_texts *next;
    uint32_t last; /* number of that note */
    size_t used;
    size_t capacity;
    char bytes[];
} block;

static kpti_note *entry_of(const kpti_notes *notes, uint32_t number)
{
    return &notes->entries[number & (notes->capacity - 1)];
}

static int grow(kpti_notes *notes)
{
    uint32_t capacity = notes->capacity ? notes->capacity * 2 : FIRST_CAPACITY;
    kpti_note *entries;
    if (capacity > KPTI_MAX_ITEMS) return 0;
    entries = kpti_heap_take(&notes->heap, capacity * sizeof *entries);
    if (!entries) return 0;
    for (uint32_t i = 0; i < notes->count; i++)
        entries[(notes->first + i) & (capacity - 1)] = *entry_of(notes, notes->first + i);
    kpti_heap_give(&notes->heap, notes->entries, notes->capacity * sizeof *notes->entries);
    notes->entries = entries;
    notes->capacity = capacity;
    return 1;
}

/* Returns SIZE bytes in the newest block, or in a new one. Returns NULL if there is no memory. */
static char *take_texts(kpti_notes *notes, size_t size)
{
    block *b = notes->newest_texts;
    if (!b || b->capacity - b->used < size) {
        const size_t capacity = size < BLOCK_BYTES ? BLOCK_BYTES : size;
        b = kpti_heap_take(&notes->heap, sizeof *b + capacity);
        if (!b) return NULL;
        *b = (block){.capacity = capacity};
        if (notes->newest_texts)
            notes->newest_texts->next = b;
        else
            notes->oldest_texts = b;
        notes->newest_texts = b;
    }
    b->used += size;
    kpti_assert(b->used <= b->capacity);
    return b->bytes + b->used - size;
}

static kpt_str copy_text(char *to, kpt_str text)
{
    if (!to || !text.size) return (kpt_str){NULL, 0};
    memcpy(to, text.data, (size_t)text.size);
    return (kpt_str){to, text.size};
}

uint32_t kpti_notes_add(kpti_notes *notes, const kpti_note *note)
{
    const uint32_t number = kpti_notes_first(notes) + notes->count;
    const size_t size = (size_t)(note->name.size + note->args.size); /* cannot overflow */
    char *texts = NULL;
    kpti_note *added;
    if (number == UINT32_MAX || (notes->count == notes->capacity && !grow(notes))) return 0;
    if (size) {
        texts = take_texts(notes, size);
        if (!texts) return 0;
        notes->newest_texts->last = number;
    }
    notes->first = kpti_notes_first(notes);
    added = entry_of(notes, number);
    *added = *note;
    added->name = copy_text(texts, note->name);
    added->args = copy_text(texts ? texts + note->name.size : NULL, note->args);
    notes->count++;
    kpti_assert(kpti_notes_are_valid(notes) && kpti_notes_get(notes, number) == added);
    return number;
}

static int is_utf8(kpt_str text)
{
    const unsigned char *at = (const unsigned char *)text.data;
    const unsigned char *end = at + text.size;
    while (at < end) {
        char put[sizeof(uint64_t)];
        const unsigned char *begin = at;
        const size_t size = (size_t)(kpti_utf8_put(put, &at, end) - put);
        if (size != (size_t)(at - begin) || memcmp(put, begin, size) != 0) return 0;
    }
    return 1;
}

int kpti_note_args_are_json(kpt_str args)
{
    const char *at = args.data;
    const char *end;
    kpti_json_member member;
    if (!args.size) return 1;
    end = at + args.size;
    for (;;) {
        at = kpti_json_skip_member(at, end, &member);
        if (!at) return 0;
        at = kpti_json_skip_space(at, end);
        if (at == end) return is_utf8(args);
        if (*at++ != ',') return 0;
    }
}

const kpti_note *kpti_notes_get(const kpti_notes *notes, uint64_t number)
{
    uint32_t first = kpti_notes_first(notes);
    if (number < first || number - first >= notes->count) return NULL;
    return entry_of(notes, (uint32_t)number);
}

void kpti_notes_keep_last(kpti_notes *notes, uint32_t count)
{
    if (notes->count <= count) return;
    notes->first += notes->count - count;
    notes->count = count;
    while (notes->oldest_texts && notes->oldest_texts->last < notes->first) {
        block *oldest = notes->oldest_texts;
        notes->oldest_texts = oldest->next;
        if (!oldest->next) notes->newest_texts = NULL;
        kpti_heap_give(&notes->heap, oldest, sizeof *oldest + oldest->capacity);
    }
    kpti_assert(kpti_notes_are_valid(notes) && (count || !notes->oldest_texts));
}

void kpti_notes_free(kpti_notes *notes)
{
    kpti_notes_keep_last(notes, 0);
    kpti_heap_give(&notes->heap, notes->entries, notes->capacity * sizeof *notes->entries);
    notes->entries = NULL;
    notes->capacity = 0;
}
