/* sample_traceback.h: what the files of the sample's tracebacks share. Its stacks are those of a program
 * that nobody runs: the thread that made the object is in inner(), which outer() has called. */
#ifndef SAMPLE_TRACEBACK_H
#define SAMPLE_TRACEBACK_H

#include "tests/plugins/sample.h"

typedef struct sample_tracebacks {
    sample_object object; /* its state is the process's id, for R799 only */
    kpt_tracebacks_args args;
} sample_tracebacks;

/* Gathers where the calling thread is into OUT, which is empty (sample_gather.c). */
void sample_gather(sample_tracebacks *t, uint32_t what, uint32_t depth, kpt_traceback *out);

/* --- the tree of stacks (sample_stacks.c), under the lock of the objects ------------------------- */

enum {
    SAMPLE_PLACES = 256,
    SAMPLE_STACKS = 4096,
    SAMPLE_DEPTH = 32 /* the most frames of a kind */
};

/* The number of a frame, whose strings are copied when it is new; 0: there is no room. */
uint32_t sample_place_locked(const kpt_symbol *symbol);
/* A place that was given, which then stays as it is; NULL: never given. */
const kpt_symbol *sample_symbol_locked(uint32_t place);

/* A stack of these places, innermost first, to be released; 0: it is empty, or there is no room. */
uint32_t sample_stack_locked(const uint32_t *places, uint32_t count);
void sample_retain_stack_locked(uint32_t stack);
void sample_release_stack_locked(uint32_t stack);
/* Its places, innermost first, and how many. */
uint32_t sample_unwind_locked(uint32_t stack, uint32_t places[SAMPLE_DEPTH]);
/* Gives back up to MOST dead stacks, 0 = all, and tells how many are left. */
uint64_t sample_free_stacks_locked(uint64_t most);
void sample_count_stacks_locked(kpt_traceback_stats *out);

/* --- frames in words (sample_symbols.c) ---------------------------------------------------------- */

/* What is to be symbolized: each traceback's places, innermost first. */
typedef struct sample_flat {
    uint32_t *places;
    uint64_t place_count;
    kpt_symbol_span *spans; /* into places */
    uint64_t *same;         /* the first traceback that is equal to this one: it, mostly */
    uint64_t span_count;
} sample_flat;

/* Room for COUNT tracebacks of up to EACH places. */
kpt_status sample_flat_make(sample_flat *flat, uint64_t count, uint64_t each);
void sample_flat_free(sample_flat *flat);
/* Shows it to the sink, with what the host tells of generated lines; takes the lock for moments. */
kpt_status sample_show(const sample_flat *flat, const kpt_tracebacks_args *args,
                       kpt_symbols_fn sink, void *sink_ctx);

#endif
