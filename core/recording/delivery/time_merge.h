/* time_merge.h: the orders by time over all threads. Each thread's cursor is in time order. A heap picks the
 * cursor whose next activity is the earliest; at equal times, that of the lower track. A cursor takes 33 kB, so it is
 * made when the merge comes to the time at which its track begins, and freed when the track ends. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_TIME_MERGE_H
#define KPTI_CORE_RECORDING_DELIVERY_TIME_MERGE_H

#include "core/recording/delivery/batcher.h"

/* Adds the whole recording to the batcher, in the delivery's order, TIME or START. Returns 0 if there is no
 * memory. The batcher's status shows whether its sink ended the delivery. Adds the repairs made to *REPAIRS. */
int kpti_merge(kpti_batcher *b, uint64_t *repairs);

#endif
