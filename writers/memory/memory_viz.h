/* memory_viz.h: a snapshot for torch's memory viewer and its commands: a pickle with a trace for each device, and
 * segments with the blocks that were alive at the end. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_VIZ_H
#define KPTI_WRITERS_MEMORY_MEMORY_VIZ_H

#include "writers/io/output_file.h"
#include "writers/memory/memory_history.h"

/* Writes all of HISTORY. Returns 1, or 0 if there is no memory. OUT stores errors of the file. */
int kpti_memory_viz_write(kpti_memory_history *history, kpti_out_file *out);

#endif
