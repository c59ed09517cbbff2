/* memory_perfetto.h: the same as memory_chrome.h for Perfetto, with the source location. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_PERFETTO_H
#define KPTI_WRITERS_MEMORY_MEMORY_PERFETTO_H

#include "writers/io/output_file.h"
#include "writers/memory/memory_history.h"

/* Writes all of HISTORY. Returns 1, or 0 if there is no memory. OUT stores errors of the file. */
int kpti_memory_perfetto_write(kpti_memory_history *history, kpti_out_file *out);

#endif
