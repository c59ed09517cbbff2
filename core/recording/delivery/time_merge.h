/* time_merge.h: the orders that go by time over all threads: each thread's lane is in time order, and a heap
 * picks the one whose next activity comes first; at equal times, the one with the lower index. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_TIME_MERGE_H
#define KPTI_CORE_RECORDING_DELIVERY_TIME_MERGE_H

#include "core/recording/delivery/batcher.h"

/* Adds all of the recording to the batcher, in order TIME or START as its delivery says. 0 when there
 * was no memory; the batcher's status says whether its sink ended it. REPAIRS made are added. */
int kpti_merge(kpti_batcher *b, uint64_t *repairs);

#endif
