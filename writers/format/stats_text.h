/* stats_text.h: the counters of kpt_stats that a reader of a trace should know, as members of a JSON object.
 * Only writers use this. */
#ifndef KPTI_WRITERS_FORMAT_STATS_TEXT_H
#define KPTI_WRITERS_FORMAT_STATS_TEXT_H

#include "abi/kpt_tracer.h"

enum { KPTI_STATS_MOST_TEXT = 1024 };

/* Each with a comma in front; nothing where STATS is NULL. Returns where it ended. */
char *kpti_put_stats(char *at, const kpt_stats *stats);

#endif
