/* caller.h: where the Python function that is on top was called from. */
#ifndef KPTI_CALLER_H
#define KPTI_CALLER_H

#include "thread.h"

/* An instruction of a frame. */
typedef struct kpti_place {
    PyCodeObject *code; /* borrowed from the frame; NULL: there is none */
    uint32_t offset;    /* in bytes */
} kpti_place;

/* The place in the frame below the topmost one of THREAD, the calling one, also through C. Inside a
 * callback, with busy set, but Python may run in it: what was read of the thread's caches before may have
 * changed. Leaves a pending exception alone. */
kpti_place kpti_caller(kpti_thread *thread);

#endif
