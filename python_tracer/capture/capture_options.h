/* capture_options.h: what a caller wants of a stack, and how its thread stands to Python. */
#ifndef KPTI_PYTHON_TRACER_CAPTURE_CAPTURE_OPTIONS_H
#define KPTI_PYTHON_TRACER_CAPTURE_CAPTURE_OPTIONS_H

#include <stdint.h>

/* How a thread stands to Python. */
typedef enum kpti_gil_state {
    KPTI_ATTACHED, /* it holds the GIL, or a thread state, of the main interpreter */
    KPTI_DETACHED, /* it has released it */
    KPTI_FOREIGN   /* it is in another interpreter, whose code objects nobody tells us the end of */
} kpti_gil_state;

/* What is wanted of a stack. */
typedef struct kpti_capture_options {
    uint32_t depth; /* the innermost so many frames; 0 = all */
    uint8_t hold;   /* with one holder; else it is good as long as the tree is pinned */
    /* Python allocates nothing: somebody may hold a lock that this would take. */
    uint8_t no_objects;
    /* Receives the number of a stack that can be known again, and 0 of one that can't; NULL: nobody asks. It
     * stays as it is where nothing was gathered, or nothing is remembered of it. */
    uint64_t *gathered;
} kpti_capture_options;

#endif
