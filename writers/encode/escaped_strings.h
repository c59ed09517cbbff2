/* escaped_strings.h: a table of ready text fragments by number. A name is escaped once, when it is delivered,
 * and copied for every call. The table owns the texts, and grows with the numbers used. */
#ifndef KPTI_WRITERS_ENCODE_ESCAPED_STRINGS_H
#define KPTI_WRITERS_ENCODE_ESCAPED_STRINGS_H

#include <string.h>

#include "core/base/growable_array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Texts are copied in steps of this many bytes, so up to a step of bytes after a text may be read and written. */
enum { KPTI_FRAGMENT_STEP = 32 };
enum { KPTI_MAX_FRAGMENTS = KPTI_MAX_ITEMS };

typedef struct kpti_fragment {
    const char *text; /* NULL: the number has no text */
    uint32_t size;
    uint32_t note; /* for the caller */
} kpti_fragment;

typedef struct kpti_fragments {
    kpti_heap heap;
    kpti_fragment *items;
    uint32_t capacity;
    uint32_t count; /* numbers that have a text */
    struct kpti_fragment_block *block;
} kpti_fragments;

/* A table is zeroed at first, except for heap. */

/* Returns memory for a text of at most SIZE bytes, or NULL if there is none. The table owns it. */
char *kpti_fragments_reserve(kpti_fragments *table, size_t size);

/* Makes SIZE bytes of that memory the text of NUMBER, and replaces the text it had. Returns KPT_OK,
 * KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_fragments_set(kpti_fragments *table, uint32_t number, const char *text, size_t size,
                              uint32_t note);

/* Keeps the first SIZE bytes of that memory, without a number. */
void kpti_fragments_keep(kpti_fragments *table, size_t size);

void kpti_fragments_free(kpti_fragments *table);

/* Returns the text of NUMBER, or OTHERWISE if it has none. */
static inline kpti_fragment kpti_fragments_get(const kpti_fragments *table, uint32_t number,
                                               kpti_fragment otherwise)
{
    if (number >= table->capacity || !table->items[number].text) return otherwise;
    return table->items[number];
}

/* Copies the text and returns its end. OUT must have space for the text and one step more. */
static inline char *kpti_fragment_put(char *out, kpti_fragment fragment)
{
    for (uint32_t i = 0; i < fragment.size; i += KPTI_FRAGMENT_STEP)
        memcpy(out + i, fragment.text + i, KPTI_FRAGMENT_STEP);
    return out + fragment.size;
}

#ifdef __cplusplus
}
#endif
#endif
