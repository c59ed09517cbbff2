/* string_table.h: a table of unique texts, numbered from 0 in the order of arrival, for names made at run time,
 * such as those of spans and threads. Only writers use this. */
#ifndef KPTI_WRITERS_ENCODE_STRING_TABLE_H
#define KPTI_WRITERS_ENCODE_STRING_TABLE_H

#include "core/base/u64_map.h"
#include "writers/encode/escaped_strings.h"

/* Writes TEXT in the format's encoding, and returns its end. The space is KPTI_JSON_MAX_GROWTH times the size
 * of TEXT, and 64 bytes more. */
typedef char *(*kpti_put_text_fn)(char *out, kpt_str text);

/* Zeroed at first, except for the heaps. */
typedef struct kpti_text_table {
    kpti_u64_map numbers; /* the value is the number + 1 */
    kpti_fragments texts;
} kpti_text_table;

/* Finds or adds TEXT. Returns KPT_OK and sets *NUMBER, or returns KPT_E_MEMORY or KPT_E_LIMIT. PUT may write up
 * to 6 bytes for each byte of TEXT, and 64 more. */
kpt_status kpti_text_table_at(kpti_text_table *table, kpt_str text, kpti_put_text_fn put,
                              uint32_t *number);

void kpti_text_table_free(kpti_text_table *table);

#endif
