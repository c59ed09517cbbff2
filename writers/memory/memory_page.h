/* memory_page.h: the page of a report (writers/report/page/) with the tables of a memory recording. Programs that make it have
 * the page in their text. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_PAGE_H
#define KPTI_WRITERS_MEMORY_MEMORY_PAGE_H

#include "writers/memory/memory_tables.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes all of HISTORY, with its moments. Returns 1, or 0 if there is no memory. OUT stores errors of the file. */
int kpti_memory_page_write(kpti_memory_history *history, kpti_out_file *out);
/* Writes the page of SUMS, whose names HISTORY has. */
int kpti_memory_page_put(const kpti_memory_history *history, const kpti_memory_sums *sums,
                         kpti_out_file *out);

#ifdef __cplusplus
}
#endif
#endif
