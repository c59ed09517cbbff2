/* memory_series.h: live bytes over time, as a series of at most KPTI_SERIES_POINTS points for a recording of any length: when
 * they are used up, two become one, of twice the time.
 *
 * A point has the bytes at its end, and the most at any time in it. Line 0 is of all devices together; line 1 + slot is of
 * the device with that slot (memory_names.h), if it is one of the first KPTI_SERIES_DEVICES. */
#ifndef KPTI_WRITERS_MEMORY_CHANGES_MEMORY_SERIES_H
#define KPTI_WRITERS_MEMORY_CHANGES_MEMORY_SERIES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_SERIES_POINTS = 1024, KPTI_SERIES_DEVICES = 63, KPTI_SERIES_FIRST_NS = 1 << 16 };

typedef struct kpti_series_line {
    double now;
    double last[KPTI_SERIES_POINTS];
    double most[KPTI_SERIES_POINTS];
} kpti_series_line;

/* Initialized with zeroes. */
typedef struct kpti_memory_series {
    uint64_t step_ns;                                 /* time of a point; 0: there is none yet */
    uint32_t count;                                   /* points; the last one is not complete */
    kpti_series_line *lines[1 + KPTI_SERIES_DEVICES]; /* NULL: the device has had no bytes */
} kpti_memory_series;

/* Advances to SINCE_NS after the begin, which is below 2^62. A time before that of the last call is taken as that one. */
void kpti_memory_series_advance(kpti_memory_series *series, uint64_t since_ns);
/* Adds BYTES, which may be negative, of the device with SLOT. Returns 0 if there is no memory. */
int kpti_memory_series_add(kpti_memory_series *series, uint32_t slot, double bytes);
void kpti_memory_series_free(kpti_memory_series *series);

#ifdef __cplusplus
}
#endif
#endif
