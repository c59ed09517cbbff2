/* memory_tables.h: JSON with one row per stack and pool: the bytes and blocks that it had allocated at the
 * peak, at the end and in total. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_TABLES_H
#define KPTI_WRITERS_MEMORY_MEMORY_TABLES_H

#include "writers/io/output_file.h"
#include "writers/memory/memory_history.h"

/* Writes all of HISTORY. Returns 1, or 0 if there is no memory. OUT stores errors of the file. */
int kpti_memory_tables_write(kpti_memory_history *history, kpti_out_file *out);

#endif
