/* memory_tables.h: JSON with one row per stack and pool (memory_sums.h): the bytes and blocks that it had allocated at the
 * peak, at the end and in total; its temporary blocks; live bytes over time; and moments (docs/memory.md has the fields). */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_TABLES_H
#define KPTI_WRITERS_MEMORY_MEMORY_TABLES_H

#include "writers/io/output_file.h"
#include "writers/memory/memory_sums.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes all of HISTORY, with the one moment that it wants, if it does. Returns 1, or 0 if there is no memory. OUT stores
 * errors of the file. */
int kpti_memory_tables_write(kpti_memory_history *history, kpti_out_file *out);

/* Reads all of HISTORY into SUMS, which the caller frees in either case. Returns 0 if there is no memory. */
int kpti_memory_tables_read(kpti_memory_history *history, int with_moments, kpti_memory_sums *sums);

typedef void (*kpti_memory_put_fn)(void *ctx, const void *bytes, size_t size);
/* Writes the tables of SUMS, whose names HISTORY has, by PUT_BYTES. Returns 1, or 0 if there is no memory. */
int kpti_memory_tables_put(const kpti_memory_history *history, const kpti_memory_sums *sums,
                           kpti_memory_put_fn put_bytes, void *ctx);
/* The same to a file. */
int kpti_memory_tables_put_file(const kpti_memory_history *history, const kpti_memory_sums *sums,
                                kpti_out_file *out);

#ifdef __cplusplus
}
#endif
#endif
