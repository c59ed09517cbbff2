/* journal_text.h: writes a journal's texts as JSON. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_JOURNAL_TEXT_H
#define KPTI_EXECUTION_TRACE_OUTPUT_JOURNAL_TEXT_H

#include "execution_trace/journal/journal_reader.h"
#include "execution_trace/output/string_buffer.h"

/* Appends the text at AT of ITEM's chunk, escaped as the inside of a JSON string. */
static inline void kpti_et_text_of(kpti_et_text *out, const kpti_et_item *item, uint32_t at)
{
    kpti_et_text_escaped(out, kpti_et_item_text(item, at));
}

#endif
