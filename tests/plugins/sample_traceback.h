/* sample_traceback.h: the shared declarations of the sample's tracebacks. The stacks are those of a
 * simulated program: the thread that made the object is in inner(), which outer() has called. */
#ifndef SAMPLE_TRACEBACK_H
#define SAMPLE_TRACEBACK_H

#include "tests/plugins/sample.h"

typedef struct sample_tracebacks {
    sample_object object; /* its state is the process's id, for R799 only */
    kpt_tracebacks_args args;
} sample_tracebacks;

/* Gathers the calling thread's stack into OUT, which is empty (sample_gather.c). */
void sample_gather(sample_tracebacks *t, uint32_t what, uint32_t depth, kpt_traceback *out);

/* --- the tree of stacks (sample_stacks.c), under the lock of the objects ------------------------- */

enum {
    SAMPLE_PLACES = 256,
    SAMPLE_STACKS = 4096,
    SAMPLE_DEPTH = 32 /* the most frames of a kind */
};

/* Returns the number of a frame, and copies its strings if it is new. Returns 0 if there is no space. */
uint32_t sample_place_locked(const kpt_symbol *symbol);
/* Returns a place, which never changes, or NULL if the number was never assigned. */
const kpt_symbol *sample_symbol_locked(uint32_t place);

/* Returns a stack of these places, innermost first, which the caller releases. Returns 0 if it is empty or
 * there is no space. */
uint32_t sample_stack_locked(const uint32_t *places, uint32_t count);
void sample_retain_stack_locked(uint32_t stack);
void sample_release_stack_locked(uint32_t stack);
/* Writes the stack's places, innermost first. Returns their number. */
uint32_t sample_unwind_locked(uint32_t stack, uint32_t places[SAMPLE_DEPTH]);
/* Frees up to MAX dead stacks, or all if MAX is 0. Returns how many dead stacks remain. */
uint64_t sample_free_stacks_locked(uint64_t most);
void sample_count_stacks_locked(kpt_traceback_stats *out);

/* --- frames in words (sample_symbols.c) ---------------------------------------------------------- */

/* The input of symbolize: each traceback's places, innermost first. */
typedef struct sample_flat {
    uint32_t *places;
    uint64_t place_count;
    kpt_symbol_span *spans; /* index into places */
    uint64_t *same;         /* the first traceback that is equal to this one, usually itself */
    uint64_t span_count;
} sample_flat;

/* Allocates space for COUNT tracebacks of up to EACH places. */
kpt_status sample_flat_make(sample_flat *flat, uint64_t count, uint64_t each);
void sample_flat_free(sample_flat *flat);
/* Delivers FLAT to the sink, with the frames that the host generates for lines. Takes the lock briefly. */
kpt_status sample_show(const sample_flat *flat, const kpt_tracebacks_args *args,
                       kpt_symbols_fn sink, void *sink_ctx);

#endif
