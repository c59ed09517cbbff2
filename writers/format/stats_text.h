/* stats_text.h: the counters of kpt_stats that readers of a trace need, as members of a JSON object. Only
 * writers use this. */
#ifndef KPTI_WRITERS_FORMAT_STATS_TEXT_H
#define KPTI_WRITERS_FORMAT_STATS_TEXT_H

#include "abi/kpt_tracer.h"

enum { KPTI_STATS_MAX_TEXT = 1024 };

/* Writes each counter with a comma before it, or nothing if STATS is NULL. Returns the end of the text. */
char *kpti_put_stats(char *at, const kpt_stats *stats);

#endif
