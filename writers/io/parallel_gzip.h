/* parallel_gzip.h: a gzip stream that several threads compress: each takes a part of what is put, with the 32 kB
 * in front of it as its dictionary, and ends on a whole byte, so that the parts in their order are one stream.
 * So a better compression takes no more time than the quickest did on one thread.
 *
 * Used by one thread at a time, which compresses too. The other threads are there from the first large put
 * until close; no signal is handled on them. */
#ifndef KPTI_WRITERS_IO_PARALLEL_GZIP_H
#define KPTI_WRITERS_IO_PARALLEL_GZIP_H

#include "writers/io/gzip_output.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_gzip_team kpti_gzip_team;

/* As many threads as there are processors for, at most four. 0, ENOMEM, or EAGAIN where there is one processor
 * only: a team makes nothing faster there. */
int kpti_gzip_team_open(kpti_gzip_team **team, kpti_gzip_out_fn out, void *ctx);

/* Compresses; when it returns DATA is no longer used. */
void kpti_gzip_team_put(kpti_gzip_team *team, const char *data, size_t size);

void kpti_gzip_team_close(kpti_gzip_team *team, int wanted);

#ifdef __cplusplus
}
#endif
#endif
