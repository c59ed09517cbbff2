/* string_buffer.h: text that grows. What finds no memory is left out and marks the text as failed, which its owner
 * asks for later, once for all. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_STRING_BUFFER_H
#define KPTI_EXECUTION_TRACE_OUTPUT_STRING_BUFFER_H

#include "core/base/allocator.h"
#include "writers/encode/json_text.h"

/* Begins as zeroes with a heap. */
typedef struct kpti_et_text {
    const kpti_heap *heap;
    char *data;
    size_t used;
    size_t room;
    int failed;
} kpti_et_text;

/* Has room for more than SIZE; 0: there is no memory. */
int kpti_et_text_grow(kpti_et_text *text, size_t size);
void kpti_et_text_free(kpti_et_text *text);

/* Where up to SIZE bytes may be written, also 0; NULL: there is no memory. wrote tells how far. */
static inline char *kpti_et_text_room(kpti_et_text *t, size_t size)
{
    if (__builtin_expect(t->room - t->used <= size, 0) && !kpti_et_text_grow(t, size)) return NULL;
    return t->data + t->used;
}

static inline void kpti_et_text_wrote(kpti_et_text *t, const char *end)
{
    t->used = (size_t)(end - t->data);
}

static inline void kpti_et_text_put(kpti_et_text *t, const void *data, size_t size)
{
    char *at = kpti_et_text_room(t, size);
    if (!at || !size) return;
    memcpy(at, data, size);
    t->used += size;
}

/* Copies SIZE bytes in whole steps, and returns where they end: as much may be read and written behind. */
enum { KPTI_ET_STEP = 32 };
static inline char *kpti_et_copy(char *to, const char *from, size_t size)
{
    for (size_t i = 0; i < size; i += KPTI_ET_STEP)
        memcpy(to + i, from + i, KPTI_ET_STEP);
    return to + size;
}

/* A literal. */
#define KPTI_ET_PUT(text, literal) kpti_et_text_put((text), (literal), sizeof(literal) - 1)

static inline void kpti_et_text_char(kpti_et_text *t, char c)
{
    char *at = kpti_et_text_room(t, 1);
    if (!at) return;
    *at = c;
    t->used++;
}

static inline void kpti_et_text_u64(kpti_et_text *t, uint64_t value)
{
    char *at = kpti_et_text_room(t, KPTI_JSON_MOST_NUMBER);
    if (at) kpti_et_text_wrote(t, kpti_put_u64(at, value));
}

static inline void kpti_et_text_i64(kpti_et_text *t, int64_t value)
{
    char *at = kpti_et_text_room(t, KPTI_JSON_MOST_NUMBER);
    if (at) kpti_et_text_wrote(t, kpti_put_i64(at, value));
}

/* The inside of a JSON string. */
static inline void kpti_et_text_escaped(kpti_et_text *t, kpt_str text)
{
    char *at = kpti_et_text_room(t, (size_t)text.size * KPTI_JSON_MOST_GROWTH);
    if (at && text.size) kpti_et_text_wrote(t, kpti_json_escape(at, text.data, text.size));
}

/* Writes a double as the shortest text that reads back as the same number, "inf", "-inf" and "nan" in quotes,
 * and returns where it ended. It takes up to KPTI_JSON_MOST_NUMBER bytes. */
char *kpti_et_put_double(char *to, double value);

#endif
