/* call_stack.h: the calls of one thread that are open in a replay, the innermost on top.
 *
 * Invariants: base is a sentinel that no exit matches and whose id is 0, so top is always a record;
 * base <= top <= last; from base upwards, ids grow and depth counts from 0. Records keep their
 * places until the stack grows. */
#ifndef KPTI_CORE_RECORDING_REPLAY_CALL_STACK_H
#define KPTI_CORE_RECORDING_REPLAY_CALL_STACK_H

#include "abi/impl/kpti_impl.h"
#include "core/recording/recording.h"

enum { KPTI_GC_KEY = KPTI_EVENT_GC_BEGIN };

/* In the key of a ghost (see span_clamps.h), so that no exit matches it by chance. */
enum { KPTI_GHOST_KEY = (1 << KPTI_KIND_BITS) - 1 };

/* An open call, or one that was closed just now. (What is written together stands together, and is read
 * so: a load that spans two stores waits for both.) */
typedef struct kpti_call_record {
    uint64_t id;
    uint64_t parent_id; /* 0: none. Of a ghost: its own id, as id is that of the call below */
    int64_t start_ns;
    uint32_t function; /* its id; of a GC, kpti_gc_function */
    uint32_t key;   /* what its exit carries: the function's id, and zeros for the kind; a GC's is
                          KPTI_GC_KEY */
    uint32_t flags; /* KPT_ACTIVITY_* */
    uint32_t line;  /* 0: none was recorded */
    uint32_t depth;
    uint32_t caller_line; /* where it was called; 0: not recorded */
    int64_t end_ns;       /* of a closed one */
    uint64_t value0;      /* of one that is WATCHED, or a GC; else undefined */
    uint64_t value1;
    uint64_t value2; /* of a GC */
} kpti_call_record;

static inline int kpti_call_is_ghost(const kpti_call_record *call)
{
    return (call->key & KPTI_GHOST_KEY) == KPTI_GHOST_KEY;
}

static inline uint64_t kpti_call_true_id(const kpti_call_record *call)
{
    return kpti_call_is_ghost(call) ? call->parent_id : call->id;
}

enum { KPTI_MISSES = 64 };

/* "Of the open calls that began before the call ID, none has KEY": what a search in vain has
 * learned, so that exits without enters on a deep stack do not cost a walk each. */
typedef struct kpti_miss {
    uint64_t id;
    uint32_t key;
    uint32_t spare;
} kpti_miss;

typedef struct kpti_call_stack {
    kpti_call_record *top;
    kpti_call_record *base;
    kpti_call_record *last; /* the last that there is room for */
    uint64_t room;
    const kpti_env *env;
    kpti_miss misses[KPTI_MISSES];
} kpti_call_stack;

/* These two answer 0 when there is no memory, and nothing has changed then. */
int kpti_call_stack_init(kpti_call_stack *stack, const kpti_env *env);
int kpti_call_stack_grow(kpti_call_stack *stack);
void kpti_call_stack_free(kpti_call_stack *stack);

/* The innermost open call with KEY, or the ghost of one; NULL if there is none. NEXT_ID is that of the next call. */
kpti_call_record *kpti_call_stack_find(kpti_call_stack *stack, uint32_t key, uint64_t next_id);

/* Writes CALL as an activity of THREAD. */
static inline void kpti_call_write(const kpti_call_record *call, int64_t end_ns, uint32_t thread,
                                   uint32_t phase, kpt_activity *out)
{
    out->id = call->id;
    out->parent_id = call->parent_id;
    out->start_ns = call->start_ns;
    out->end_ns = end_ns;
    out->thread = thread;
    out->name = call->function;
    out->kind = 0;
    out->phase = (uint16_t)phase;
    out->flags = call->flags;
    out->line = call->line;
    out->depth = call->depth;
    out->value0 = out->value1 = 0;
    out->value2 = call->caller_line;
    if (__builtin_expect(call->flags & KPT_ACTIVITY_WATCHED || call->key == KPTI_GC_KEY, 0)) {
        out->value0 = call->value0;
        out->value1 = call->value1;
        if (call->key == KPTI_GC_KEY) out->value2 = call->value2;
    }
}

#endif
