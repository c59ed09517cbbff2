/* incremental_unwind.h: the stack that was captured last, level by level, and the incremental unwind of the
 * next one, which looks up only the levels that differ. Used by one thread at a time. */
#ifndef KPTI_PYTHON_TRACER_CAPTURE_INCREMENTAL_UNWIND_H
#define KPTI_PYTHON_TRACER_CAPTURE_INCREMENTAL_UNWIND_H

#include "core/callstacks/stack_trie_cache.h"
#include "python_tracer/capture/capture_options.h"
#include "python_tracer/capture/location_cache.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/frame_mark.h"
#include "python_tracer/interpreter/frame_structs.h"
#include "python_tracer/interpreter/raw_frame.h"
#include "python_tracer/state/tracing_lock.h"

typedef struct kpti_level {
    void *frame;    /* NULL if frame layouts are unknown; ip is then NULL too */
    const void *ip; /* address of the instruction */
    PyCodeObject *code;
    int32_t offset;
    uint32_t version; /* of the code object */
    uint32_t location;
    uint32_t stack; /* from the outermost frame to this one */
} kpti_level;

/* A frame of the walk, which goes from the innermost frame to the outermost. */
typedef struct kpti_unwound_frame {
    kpti_instruction at;
    void *frame; /* NULL if frame layouts are unknown */
} kpti_unwound_frame;

/* The last stack, with the fields that identify it. */
typedef struct kpti_unwound {
    uint64_t number; /* token, unique per unwind; 0: can't be recognised */
    PyThreadState *state;
    const void *frame; /* the innermost frame */
    const void *ip;
    uint32_t stack;
} kpti_unwound;

/* Zero-initialized. */
typedef struct kpti_unwind {
    uint64_t epoch; /* kpti_unwind_epoch when it was last emptied */
    uint32_t top;   /* number of levels of the last stack; 0: can't be recognised */
    kpti_unwound last;
    uint64_t numbers; /* the last token */
    kpti_level *levels;
    uint32_t depth; /* depth limit of the last capture */
    int was_cut;    /* the last capture was cut at the depth limit */
    uint32_t count; /* levels of the held stack, outermost first */
    uint32_t held;
    uint32_t capacity;
    uint32_t walked_count;
    uint32_t walked_capacity;
    kpti_unwound_frame *walked; /* innermost first */
    uint32_t below;             /* number of unchanged levels below the walked ones */
    int may_mark;               /* whether the walked frames may be marked */
    const void *stayed;         /* the innermost frame that did not change at the last capture */
    uint32_t how_often;
    kpti_frame_marks marks;
    kpti_location_cache locations;
    kpti_stack_cache stacks;
} kpti_unwind;

/* Returns the stack of STATE, the calling thread's state. For the rest see kpti_thread_capture. */
uint32_t kpti_unwind_next(kpti_unwind *g, PyThreadState *state, kpti_gil_state s,
                          kpti_capture_options wish, int *again, uint32_t *flags);

/* Returns the last stack if its token is GATHERED and its thread is in the same frame at the same
 * instruction as then. Returns 0 otherwise, also if another stack was captured since. NEWEST is the newest
 * interpreter: if there is more than one, the thread may be in another of its states. The caller guarantees
 * that the last state is alive and that the frame belongs to the same call: the call in which the stack was
 * captured has not returned (KPT_OP_IN_ONE_CALL). */
static inline uint32_t kpti_unwind_unchanged(const kpti_unwind *g, uint64_t gathered,
                                             const PyInterpreterState *newest)
{
#if KPTI_KNOWN_FRAMES
    const kpti_unwound *last = &g->last;
    const kpti_raw_frame *frame;
    if (last->number != gathered || !gathered) return 0;
    frame = kpti_state_frame(last->state);
    /* A trace function may move frames to other lines. */
    return frame == last->frame && kpti_raw_ip(frame) == last->ip && !last->state->c_tracefunc &&
                   last->state->interp == newest
               ? last->stack
               : 0;
#else
    (void)g;
    (void)gathered;
    (void)newest;
    return 0;
#endif
}

/* Returns an epoch that changes when a remembered address of a code object may belong to another one. If
 * code objects have versions, that is only when the tracers or the interpreter change; else also when a
 * code object dies. */
static inline uint64_t kpti_unwind_epoch(void)
{
    const uint64_t epoch = atomic_load_explicit(&kpti_tracing_epoch, memory_order_acquire);
    return KPTI_CODES_HAVE_VERSIONS ? epoch >> 32 : epoch;
}

/* Empties G, since the epoch has changed. */
void kpti_unwind_forget(kpti_unwind *g, uint64_t epoch);
/* Releases all stacks and memory that G holds. */
void kpti_unwind_free(kpti_unwind *g);

#endif
