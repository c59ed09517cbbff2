/* task_tracks.h: the tracks of tasks in a file: which tasks have one, and their names. Their number is limited
 * to what viewers can draw; further tasks are only counted. Only writers use this. */
#ifndef KPTI_WRITERS_ANNOTATIONS_TASK_TRACKS_H
#define KPTI_WRITERS_ANNOTATIONS_TASK_TRACKS_H

#include "writers/annotations/notes.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_MAX_TASK_TRACKS = 10000 };
/* Longer names are cut. */
enum { KPTI_MAX_TASK_NAME = 1024 };

typedef struct kpti_task_track {
    uint64_t track;   /* the writer's number of the track; 0: no track yet */
    uint32_t resumes; /* so far */
} kpti_task_track;

/* Zeroed at first, except for heap. */
typedef struct kpti_task_tracks {
    kpti_heap heap;
    kpti_task_track *items; /* by number of the note, from first on */
    uint32_t capacity;
    uint32_t first;
    uint32_t count;   /* tasks with a track */
    uint32_t without; /* tasks without a track */
} kpti_task_tracks;

/* Records a resume of TASK, one of NOTES. *OUT is its track, or NULL if there are too many. */
kpt_status kpti_task_tracks_resume(kpti_task_tracks *tracks, const kpti_notes *notes, uint32_t task,
                                   kpti_task_track **out);
/* Frees and resets TRACKS, so that another process may follow. */
void kpti_task_tracks_free(kpti_task_tracks *tracks);

/* Writes a name like "Task-3 Server.handle" to TEXT. */
kpt_str kpti_task_name(const kpti_note *note, char text[KPTI_MAX_TASK_NAME]);

#ifdef __cplusplus
}
#endif
#endif
