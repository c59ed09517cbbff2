/* text_builder.h: a text in memory that grows, for JSON that is made at once. After a failed allocation nothing more is
 * written, and `failed` is set: the caller looks at it once, at the end. */
#ifndef KPTI_WRITERS_ENCODE_TEXT_BUILDER_H
#define KPTI_WRITERS_ENCODE_TEXT_BUILDER_H

#include "core/base/growable_array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed at first, except for heap. */
typedef struct kpti_text_builder {
    kpti_heap heap;
    char *text; /* not terminated */
    uint64_t size;
    uint64_t capacity;
    int failed;
} kpti_text_builder;

void kpti_text_put(kpti_text_builder *out, const char *literal);
void kpti_text_put_u64(kpti_text_builder *out, uint64_t value);
void kpti_text_put_i64(kpti_text_builder *out, int64_t value);

/* With commas between thousands. */
void kpti_text_put_count(kpti_text_builder *out, uint64_t value);

/* With three decimals and a unit: "1.204 ms". */
void kpti_text_put_ns(kpti_text_builder *out, uint64_t ns);

/* "12.3 %" of 123. */
void kpti_text_put_percent(kpti_text_builder *out, uint64_t permille);

/* As the inside of a JSON string, cut like a name. */
void kpti_text_put_escaped(kpti_text_builder *out, kpt_str text);

void kpti_text_builder_free(kpti_text_builder *out);

#ifdef __cplusplus
}
#endif
#endif
