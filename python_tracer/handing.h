/* handing.h: sealed chunks on their way to the host's sink, while the tracer runs and when it stops. */
#ifndef KPTI_HANDING_H
#define KPTI_HANDING_H

#include "stream.h"

/* Hands the chunks before LAST to the host's sink, where there is one; NULL: all of them. The host may take
 * its time, so no lock is held; the owner thread is the only one that adds or hands away, while it
 * records. TICKS: now. */
void kpti_hand_to_sink(kpti_stream *stream, const kpti_chunk *last, uint64_t ticks);

#endif
