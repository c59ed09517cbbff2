/* memory_formats.h: the files that are made of a history of allocations, by suffix: .pickle, .tables.json, .json and
 * .pftrace. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_FORMATS_H
#define KPTI_WRITERS_MEMORY_MEMORY_FORMATS_H

#include "writers/io/output_file.h"
#include "writers/memory/memory_history.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes all of a history. Returns 1, or 0 if there is no memory. OUT stores errors of the file. */
typedef int (*kpti_memory_write_fn)(kpti_memory_history *history, kpti_out_file *out);

/* Returns the writer for the suffix of PATH, or NULL. */
kpti_memory_write_fn kpti_memory_writer_of(const char *path);
/* Says which suffixes there are. */
#define KPTI_MEMORY_SUFFIXES                                                               \
    "the path of a memory export must end in .pickle (for torch's memory viewer), .json, " \
    ".pftrace "                                                                            \
    "or .tables.json"

/* Writes HISTORY to PATH. Returns 0, an errno of the file, or ENOMEM. A failed call leaves no file. */
int kpti_memory_write_file(kpti_memory_history *history, kpti_memory_write_fn write,
                           const char *path);

#ifdef __cplusplus
}
#endif
#endif
