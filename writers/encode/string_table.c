#include "writers/encode/string_table.h"

#include "core/base/assert.h"
#include "writers/encode/json_text.h"

enum { MORE_ROOM = 64 };

kpt_status kpti_text_table_at(kpti_text_table *table, kpt_str text, kpti_put_text_fn put,
                              uint32_t *number)
{
    uint32_t *known = kpti_u64_map_at(&table->numbers, kpti_text_key(text));
    kpt_status status;
    char *begin;
    if (!known) return KPT_E_MEMORY;
    if (!*known) {
        begin = kpti_fragments_reserve(&table->texts,
                                       (size_t)text.size * KPTI_JSON_MAX_GROWTH + MORE_ROOM);
        if (!begin) return KPT_E_MEMORY;
        status = kpti_fragments_set(&table->texts, table->texts.count, begin,
                                    (size_t)(put(begin, text) - begin), 0);
        if (status != KPT_OK) return status;
        *known = table->texts.count;
    }
    kpti_assert(*known <= table->texts.count && table->texts.count <= table->numbers.table.count);
    *number = *known - 1;
    return KPT_OK;
}

void kpti_text_table_free(kpti_text_table *table)
{
    kpti_u64_map_free(&table->numbers);
    kpti_fragments_free(&table->texts);
}
