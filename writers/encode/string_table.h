/* string_table.h: texts that are the same once, numbered from 0 as they come: for names that are made
 * at run time, as those of spans and threads are. Only writers use this. */
#ifndef KPTI_WRITERS_ENCODE_STRING_TABLE_H
#define KPTI_WRITERS_ENCODE_STRING_TABLE_H

#include "core/base/u64_map.h"
#include "writers/encode/escaped_strings.h"

/* Writes TEXT as the format has it into room of MOST_GROWTH times its size and some; where it ended. */
typedef char *(*kpti_put_text_fn)(char *out, kpt_str text);

/* Begins as zeroes with heaps. */
typedef struct kpti_text_table {
    kpti_u64_map numbers; /* one more than the number */
    kpti_fragments texts;
} kpti_text_table;

/* KPT_OK with *NUMBER, KPT_E_MEMORY or KPT_E_LIMIT. PUT may write up to 6 bytes for each of TEXT's,
 * and 64 more. */
kpt_status kpti_text_table_at(kpti_text_table *table, kpt_str text, kpti_put_text_fn put,
                              uint32_t *number);

void kpti_text_table_free(kpti_text_table *table);

#endif
