/* capture_options.h: the options of a stack capture, and the calling thread's relation to the GIL. */
#ifndef KPTI_PYTHON_TRACER_CAPTURE_CAPTURE_OPTIONS_H
#define KPTI_PYTHON_TRACER_CAPTURE_CAPTURE_OPTIONS_H

#include <stdint.h>

/* Whether a thread is attached to Python. */
typedef enum kpti_gil_state {
    KPTI_ATTACHED, /* holds the GIL, or a thread state, of the main interpreter */
    KPTI_DETACHED, /* has released it */
    KPTI_FOREIGN   /* in a sub-interpreter, which does not report dead code objects */
} kpti_gil_state;

/* Options of a capture. */
typedef struct kpti_capture_options {
    uint32_t depth; /* maximum number of frames, innermost first; 0: all */
    uint8_t hold; /* return the stack with one holder; else it is valid while the tree is pinned */
    /* Python must allocate nothing: a caller may hold a lock that the allocation would acquire. */
    uint8_t no_objects;
    /* Receives the token of a stack that can be recognised later, or 0 for another stack. NULL: not needed.
     * It is left unchanged if no stack was captured or nothing is remembered of it. */
    uint64_t *gathered;
} kpti_capture_options;

#endif
