/* track_openings.h: the tracks of a recording in the order in which they begin. A merge opens a cursor for a track
 * when it comes to the track's begin, so that it has cursors only for the tracks that are open at one time. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_TRACK_OPENINGS_H
#define KPTI_CORE_RECORDING_DELIVERY_TRACK_OPENINGS_H

#include "core/recording/delivery/batcher.h"

typedef struct kpti_track_opening {
    union {
        uint64_t ticks; /* while the openings are sorted */
        int64_t ns;     /* no activity of the track is earlier */
    } at;
    uint32_t track;
} kpti_track_opening;

/* Invariant: the times of the openings do not decrease. */
typedef struct kpti_track_openings {
    kpti_track_opening *items;
    uint32_t count;
    uint32_t next; /* the first that has not been taken */
} kpti_track_openings;

/* Finds the openings of the batcher's recording. Returns 0 if there is no memory. The caller must call
 * kpti_track_openings_free in any case; zeroed openings are valid for it. */
int kpti_track_openings_find(kpti_track_openings *openings, const kpti_batcher *b);
void kpti_track_openings_free(kpti_track_openings *openings, const kpti_batcher *b);

/* Returns the time of the next opening, or INT64_MAX if all were taken. */
static inline int64_t kpti_track_openings_ns(const kpti_track_openings *openings)
{
    return openings->next < openings->count ? openings->items[openings->next].at.ns : INT64_MAX;
}

#endif
