/* task_tracks.h: the tracks that tasks have in a file: which task has one, and what it is called. There are
 * at most so many as viewers can draw; further tasks are counted. Only writers use this. */
#ifndef KPTI_WRITERS_ANNOTATIONS_TASK_TRACKS_H
#define KPTI_WRITERS_ANNOTATIONS_TASK_TRACKS_H

#include "writers/annotations/notes.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_MOST_TASK_TRACKS = 10000 };
/* Longer names are cut. */
enum { KPTI_MOST_TASK_NAME = 1024 };

typedef struct kpti_task_track {
    uint64_t track;   /* the writer's own; 0: it has none yet */
    uint32_t resumes; /* so far */
} kpti_task_track;

/* Begins as zeroes with a heap. */
typedef struct kpti_task_tracks {
    kpti_heap heap;
    kpti_task_track *items; /* by the number of the note, from first on */
    uint32_t capacity;
    uint32_t first;
    uint32_t count;   /* tasks that have a track */
    uint32_t without; /* and that have none */
} kpti_task_tracks;

/* A resume of TASK, one of NOTES: *OUT is its track, NULL if there are too many. */
kpt_status kpti_task_tracks_resume(kpti_task_tracks *tracks, const kpti_notes *notes, uint32_t task,
                                   kpti_task_track **out);
/* As they began: another process may follow. */
void kpti_task_tracks_free(kpti_task_tracks *tracks);

/* Puts "Task-3 Server.handle" into TEXT. */
kpt_str kpti_task_name(const kpti_note *note, char text[KPTI_MOST_TASK_NAME]);

#ifdef __cplusplus
}
#endif
#endif
