/* incremental_unwind.h: the last stack that somebody gathered, level by level, and the next one, of which only what is
 * not the same is looked up. Of one thread at a time. */
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
    void *frame;    /* NULL where frames are not known; neither is ip then */
    const void *ip; /* the instruction itself */
    PyCodeObject *code;
    int32_t offset;
    uint32_t version; /* of the code */
    uint32_t place;
    uint32_t stack; /* from the outermost frame to this one */
} kpti_level;

/* A frame on the way from the innermost to the outermost. */
typedef struct kpti_unwound_frame {
    kpti_instruction at;
    void *frame; /* NULL where frames are not known */
} kpti_unwound_frame;

/* The last stack, by what it is known again. */
typedef struct kpti_unwound {
    uint64_t number; /* of all that there were; 0: it can't be known again */
    PyThreadState *state;
    const void *frame; /* the innermost */
    const void *ip;
    uint32_t stack;
} kpti_unwound;

/* Zeros are a new one. */
typedef struct kpti_unwind {
    uint64_t epoch; /* kpti_unwind_epoch, when it was last emptied */
    uint32_t top;   /* levels of the last stack; 0: it can't be known again */
    kpti_unwound last;
    uint64_t numbers; /* that were given */
    kpti_level *levels;
    uint32_t depth; /* that was wished for */
    int was_cut;    /* to it */
    uint32_t count; /* levels, outermost first: the stack that is held */
    uint32_t held;
    uint32_t room;
    uint32_t walked_count;
    uint32_t walked_room;
    kpti_unwound_frame *walked; /* innermost first */
    uint32_t below;             /* levels below the last one that was walked: as they were */
    int may_mark;               /* the frames that were walked */
    const void *stayed;         /* the innermost frame that was there the last time, too */
    uint32_t how_often;
    kpti_frame_marks marks;
    kpti_place_cache places;
    kpti_stack_cache stacks;
} kpti_unwind;

/* The stack of STATE, the calling thread's. Else as kpti_thread_capture. */
uint32_t kpti_unwind_next(kpti_unwind *g, PyThreadState *state, kpti_gil_state s,
                          kpti_capture_options wish, int *again, uint32_t *flags);

/* The last stack, if its thread is in the same frame, at the same instruction, as when it was GATHERED; 0: it
 * is not, or there was another one since. NEWEST: of the interpreters; where there is more than one a thread may
 * be in another of its states. The caller knows that STATE lives, and that the frame is no other
 * call's: the call that it was gathered in has not returned (KPT_OP_IN_ONE_CALL). */
static inline uint32_t kpti_unwind_unchanged(const kpti_unwind *g, uint64_t gathered,
                                             const PyInterpreterState *newest)
{
#if KPTI_KNOWN_FRAMES
    const kpti_unwound *last = &g->last;
    const kpti_raw_frame *frame;
    if (last->number != gathered || !gathered) return 0;
    frame = kpti_state_frame(last->state);
    /* A trace function may move frames. */
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

/* Moves when addresses of code objects that are remembered may be others': where a version tells those apart,
 * with the interpreter only, else also when one dies. */
static inline uint64_t kpti_unwind_epoch(void)
{
    const uint64_t epoch = atomic_load_explicit(&kpti_tracing_epoch, memory_order_acquire);
    return KPTI_CODES_HAVE_VERSIONS ? epoch >> 32 : epoch;
}

/* Empties it: the epoch has moved. */
void kpti_unwind_forget(kpti_unwind *g, uint64_t epoch);
/* Gives back what it holds. */
void kpti_unwind_free(kpti_unwind *g);

#endif
