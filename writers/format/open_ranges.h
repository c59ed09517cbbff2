/* open_ranges.h: the host's ranges that are open on each thread while a recording is written.
 *
 * Ranges are delivered as begins and ends. A format receives a range as a call of kind KPT_KIND_RANGE_BEGIN, since calls
 * never cross ranges. Ranges that cross each other are rare; the inner one then ends where the outer one ends. Only
 * writers use this. */
#ifndef KPTI_WRITERS_FORMAT_OPEN_RANGES_H
#define KPTI_WRITERS_FORMAT_OPEN_RANGES_H

#include "abi/kpt_activity.h"
#include "core/base/growable_array.h"

/* The id that a range has as a call; no call has it. */
#define KPTI_RANGE_ID UINT64_MAX

/* Zeroed at first, except for heap. */
typedef struct kpti_open_ranges {
    kpti_heap heap;
    struct kpti_thread_ranges *threads; /* by index */
    uint32_t thread_capacity;
} kpti_open_ranges;

/* BEGIN is the begin of a range. Changes it to the begin of a call. Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_open_ranges_begin(kpti_open_ranges *ranges, kpt_activity *begin);

/* At the end of a range: removes the innermost open range of the thread, until the range that ends is removed, and fills
 * OUT with it as a complete call, whose value0 is the number of the last span of the user that began before it on its
 * thread. Returns 0 if the range that ends is not open, or not any more. */
int kpti_open_ranges_end(kpti_open_ranges *ranges, const kpt_activity *end, kpt_activity *out);

/* A span of the user begins or ends at POINT; NUMBER is the number of its begin. At the end: removes the innermost open
 * range of the thread that began after the span, and fills OUT with it. Returns 0 if there is none. */
kpt_status kpti_open_ranges_span(kpti_open_ranges *ranges, const kpt_activity *point,
                                 uint32_t number);
int kpti_open_ranges_span_end(kpti_open_ranges *ranges, const kpt_activity *point, uint32_t number,
                              kpt_activity *out);

void kpti_open_ranges_free(kpti_open_ranges *ranges);

#endif
