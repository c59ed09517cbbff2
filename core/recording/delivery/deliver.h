/* deliver.h: delivers a recording as batches of activities, in one of the three orders of kpt_activity.h.
 *
 * Ids are 1, 2, 3 … without gaps in all orders. Order THREAD numbers thread by thread and, within a thread, in the
 * order in which calls begin; the other orders number in the order in which calls begin.
 *
 * If the delivery has an end_ns: calls that were open at the end of the last run end at end_ns, calls that end later
 * are cut there and flagged CLAMPED, and calls that began later are not delivered. If the recording has a
 * min_duration_ns, calls that are shorter than it after the cut are not delivered. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_DELIVER_H
#define KPTI_CORE_RECORDING_DELIVERY_DELIVER_H

#include "core/recording/delivery/delivery_job.h"

/* Delivers the whole recording. Returns KPT_OK, KPT_E_MEMORY, or the status that the sink returned. Needs no GIL.
 * Memory grows with the depth of the stacks and with the number of functions. Order START also needs 9 bytes per
 * call, and the other orders need 1 byte per call if the recording has a min_duration_ns. Both read the events
 * twice. */
kpt_status kpti_deliver(kpti_delivery_job *job, kpti_error *error);

#endif
