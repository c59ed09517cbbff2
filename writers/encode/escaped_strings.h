/* escaped_strings.h: ready pieces of text by number: a name is escaped once, when it arrives, and copied
 * for every call. The table owns the text, and grows with the numbers that come. */
#ifndef KPTI_WRITERS_ENCODE_ESCAPED_STRINGS_H
#define KPTI_WRITERS_ENCODE_ESCAPED_STRINGS_H

#include <string.h>

#include "core/base/growable_array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Texts are copied in steps of so many bytes: they may be read, and written, up to the next one. */
enum { KPTI_FRAGMENT_STEP = 32 };
enum { KPTI_MOST_FRAGMENTS = KPTI_MOST_ITEMS };

typedef struct kpti_fragment {
    const char *text; /* NULL: this number has not come */
    uint32_t size;
    uint32_t note; /* the caller's own */
} kpti_fragment;

typedef struct kpti_fragments {
    kpti_heap heap;
    kpti_fragment *items;
    uint32_t capacity;
    uint32_t count; /* numbers that have come */
    struct kpti_fragment_block *block;
} kpti_fragments;

/* A table begins as zeroes with a heap. */

/* Memory for a text of at most SIZE bytes, NULL when there is none. It is the table's. */
char *kpti_fragments_room(kpti_fragments *table, size_t size);

/* Makes SIZE bytes of that memory the text of NUMBER; what it was before is forgotten.
 * KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_fragments_set(kpti_fragments *table, uint32_t number, const char *text, size_t size,
                              uint32_t note);

void kpti_fragments_free(kpti_fragments *table);

/* The text of NUMBER, or OTHERWISE where it has none. */
static inline kpti_fragment kpti_fragments_get(const kpti_fragments *table, uint32_t number,
                                               kpti_fragment otherwise)
{
    if (number >= table->capacity || !table->items[number].text) return otherwise;
    return table->items[number];
}

/* Copies the text and returns where it ended. The room is a step longer than the text. */
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
