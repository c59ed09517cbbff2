/* import_tracks.h: the calls of an imported trace, by track: a thread of a process, or a row of another tool. Calls that
 * overlap without nesting, as on the stream of a GPU, get lanes: further tracks, so that no time is changed.
 *
 * One thread at a time. */
#ifndef KPTI_IMPORTS_IMPORT_TRACKS_H
#define KPTI_IMPORTS_IMPORT_TRACKS_H

#include "core/base/growable_array.h"
#include "core/base/u64_map.h"

enum { KPTI_IMPORT_MAX_LANES = 64 };
/* Of a call that ends after its caller by at most this, the end is moved: some tools round times to microseconds. */
enum { KPTI_IMPORT_ROUNDING_NS = 1000 };

/* A call, or a point in time. */
typedef struct kpti_import_call {
    int64_t start_ns;
    int64_t end_ns; /* INT64_MIN: not known yet */
    uint32_t name;  /* of a point: the number of its note */
    uint32_t order; /* in the file; once it is nested, the lane, or KPTI_IMPORT_POINT */
} kpti_import_call;

enum { KPTI_IMPORT_POINT = -1 }; /* as uint32_t */

/* Texts are as they are in the file, and are owned by the importer; empty: not named. */
typedef struct kpti_import_track {
    kpti_import_call *calls;
    uint64_t capacity;
    uint64_t count;
    uint32_t *open; /* calls that have begun, as indices of calls */
    uint64_t open_capacity;
    uint64_t open_count;
    kpt_str pid;
    kpt_str tid;
    kpt_str name;
    kpt_str process; /* the name of the process */
    uint32_t lanes;  /* once it is nested */
    /* how many calls are in the file right behind one that they contain, less those right behind their caller: of calls
     * with equal times, the caller is last where this is positive */
    int64_t callers_last;
} kpti_import_track;

/* Zeroed at first. */
typedef struct kpti_import_tracks {
    kpti_u64_map numbers; /* by the texts of pid and tid; the value is the index + 1 */
    kpti_import_track *items;
    uint64_t capacity;
    uint32_t count;
    uint64_t calls;
    int64_t first_ns; /* of all calls and points; valid if there is any */
    int64_t last_ns;
} kpti_import_tracks;

/* Returns the key of a thread, or with an empty TID of a process. */
uint64_t kpti_import_track_key(kpt_str pid, kpt_str tid);

/* Returns the track of PID and TID, added if it is new; the caller then sets its texts. The pointer is valid until the
 * next call. Returns NULL if there is no memory. */
kpti_import_track *kpti_import_track_at(kpti_import_tracks *tracks, kpt_str pid, kpt_str tid);

/* Each returns 0 if there is no memory. */
int kpti_import_add_call(kpti_import_tracks *tracks, kpti_import_track *track, int64_t start_ns,
                         int64_t duration_ns, uint32_t name);
int kpti_import_add_point(kpti_import_tracks *tracks, kpti_import_track *track, int64_t ns,
                          uint32_t note);
int kpti_import_begin_call(kpti_import_tracks *tracks, kpti_import_track *track, int64_t ns,
                           uint32_t name);
/* Ends the call that began last. Returns 0 if no call is open. */
int kpti_import_end_call(kpti_import_tracks *tracks, kpti_import_track *track, int64_t ns);

/* Sorts the calls of TRACK by their start, callers first, and gives each its lane. Calls that have not ended end with the
 * trace. Returns 0 if there is no memory. */
int kpti_import_nest(const kpti_import_tracks *tracks, kpti_import_track *track);

void kpti_import_tracks_free(kpti_import_tracks *tracks);

#endif
