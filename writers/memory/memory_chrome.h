/* memory_chrome.h: Chrome JSON with an instant event [memory] for each allocation and free, as Kineto writes
 * them, and a counter for each device. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_CHROME_H
#define KPTI_WRITERS_MEMORY_MEMORY_CHROME_H

#include "writers/io/output_file.h"
#include "writers/memory/memory_history.h"

/* Writes all of HISTORY. Returns 1, or 0 if there is no memory. OUT stores errors of the file. */
int kpti_memory_chrome_write(kpti_memory_history *history, kpti_out_file *out);

#endif
