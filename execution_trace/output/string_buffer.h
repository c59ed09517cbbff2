/* string_buffer.h: a string buffer that grows. If there is no memory, the text is omitted and the buffer is
 * marked as failed, so that its owner checks once for all appends. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_STRING_BUFFER_H
#define KPTI_EXECUTION_TRACE_OUTPUT_STRING_BUFFER_H

#include "core/base/growable_array.h"
#include "writers/encode/json_text.h"

/* Starts as zeroes with a heap. */
typedef struct kpti_et_text {
    const kpti_heap *heap;
    char *data;
    size_t used;
    uint64_t capacity;
    int failed;
} kpti_et_text;

/* Makes space for more than SIZE bytes. Returns 0 if there is no memory. */
int kpti_et_text_grow(kpti_et_text *text, size_t size);
void kpti_et_text_free(kpti_et_text *text);

/* Returns space for up to SIZE bytes, which may be 0, or NULL if there is no memory. The caller then
 * reports the end of its text with kpti_et_text_wrote. */
static inline char *kpti_et_text_reserve(kpti_et_text *t, size_t size)
{
    if (__builtin_expect(t->capacity - t->used <= size, 0) && !kpti_et_text_grow(t, size))
        return NULL;
    return t->data + t->used;
}

static inline void kpti_et_text_wrote(kpti_et_text *t, const char *end)
{
    t->used = (size_t)(end - t->data);
}

static inline void kpti_et_text_put(kpti_et_text *t, const void *data, size_t size)
{
    char *at = kpti_et_text_reserve(t, size);
    if (!at || !size) return;
    memcpy(at, data, size);
    t->used += size;
}

/* Copies SIZE bytes in whole steps, so it may read and write up to KPTI_ET_STEP bytes more. Returns the end
 * of the copied bytes. */
enum { KPTI_ET_STEP = 32 };
static inline char *kpti_et_copy(char *to, const char *from, size_t size)
{
    for (size_t i = 0; i < size; i += KPTI_ET_STEP)
        memcpy(to + i, from + i, KPTI_ET_STEP);
    return to + size;
}

/* Appends a literal. */
#define KPTI_ET_PUT(text, literal) kpti_et_text_put((text), (literal), sizeof(literal) - 1)

static inline void kpti_et_text_char(kpti_et_text *t, char c)
{
    char *at = kpti_et_text_reserve(t, 1);
    if (!at) return;
    *at = c;
    t->used++;
}

static inline void kpti_et_text_u64(kpti_et_text *t, uint64_t value)
{
    char *at = kpti_et_text_reserve(t, KPTI_JSON_MAX_NUMBER);
    if (at) kpti_et_text_wrote(t, kpti_put_u64(at, value));
}

static inline void kpti_et_text_i64(kpti_et_text *t, int64_t value)
{
    char *at = kpti_et_text_reserve(t, KPTI_JSON_MAX_NUMBER);
    if (at) kpti_et_text_wrote(t, kpti_put_i64(at, value));
}

/* Appends TEXT, escaped as the inside of a JSON string. */
static inline void kpti_et_text_escaped(kpti_et_text *t, kpt_str text)
{
    char *at = kpti_et_text_reserve(t, (size_t)text.size * KPTI_JSON_MAX_GROWTH);
    if (at && text.size) kpti_et_text_wrote(t, kpti_json_escape(at, text.data, text.size));
}

/* Writes a double as the shortest text that reads back as the same number. "inf", "-inf" and "nan" are in
 * quotes. Returns the end of the text, which has up to KPTI_JSON_MAX_NUMBER bytes. */
char *kpti_et_put_double(char *to, double value);

#endif
