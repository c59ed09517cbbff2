/* call_stack.h: the open calls of one thread in a replay, the innermost on top.
 *
 * Invariants: base is a sentinel that no exit matches and whose id is 0, so top always points to a record. base
 * <= top <= last. From base upwards, ids grow and depth counts from 0. Records keep their addresses until the
 * stack grows. */
#ifndef KPTI_CORE_RECORDING_REPLAY_CALL_STACK_H
#define KPTI_CORE_RECORDING_REPLAY_CALL_STACK_H

#include "abi/impl/kpti_impl.h"
#include "core/base/assert.h"
#include "core/recording/recording.h"

enum { KPTI_GC_KEY = KPTI_EVENT_GC_BEGIN };

/* Set in the key of a clamped frame (see span_clamps.h), so that no exit matches it by accident. */
enum { KPTI_GHOST_KEY = (1 << KPTI_KIND_BITS) - 1 };

/* A flag of a record beside KPT_ACTIVITY_*: its values are set. Activities do not have it. */
#define KPTI_CALL_HAS_VALUES (UINT32_C(1) << 31)

/* An open call, or a call that was just closed. Fields that are written together are adjacent and read the same
 * way: a load that spans two stores waits for both. */
typedef struct kpti_call_record {
    uint64_t id;
    /* 0: no parent. A clamped frame's own id, since its id field has that of the call below */
    uint64_t parent_id;
    int64_t start_ns;
    uint32_t function; /* function id; kpti_gc_function for a collection */
    /* the word of the matching exit: function id, kind bits 0; KPTI_GC_KEY for a collection */
    uint32_t key;
    uint32_t flags; /* KPT_ACTIVITY_*, KPTI_CALL_HAS_VALUES */
    uint32_t line;  /* 0: not recorded */
    uint32_t depth;
    uint32_t caller_line; /* line of the call in its caller; 0: not recorded */
    int64_t end_ns;       /* set when the call is closed */
    uint64_t value0;      /* of a WATCHED call, a collection or an operator; else undefined */
    uint64_t value1;
    uint64_t value2; /* of a collection or an operator */
} kpti_call_record;

static inline int kpti_call_is_clamped(const kpti_call_record *call)
{
    return (call->key & KPTI_GHOST_KEY) == KPTI_GHOST_KEY;
}

static inline uint64_t kpti_call_true_id(const kpti_call_record *call)
{
    return kpti_call_is_clamped(call) ? call->parent_id : call->id;
}

enum { KPTI_MISSES = 64 };

/* A cached result of a failed search: no open call that began before call ID has KEY. So an exit without an
 * enter does not walk a deep stack each time. */
typedef struct kpti_miss {
    uint64_t id;
    uint32_t key;
    uint32_t spare;
} kpti_miss;

typedef struct kpti_call_stack {
    kpti_call_record *top;
    kpti_call_record *base;
    kpti_call_record *last; /* the last record of the allocation */
    uint64_t capacity;
    const kpti_env *env;
    kpti_miss misses[KPTI_MISSES];
} kpti_call_stack;

static inline int kpti_call_stack_is_valid(const kpti_call_stack *stack)
{
    return stack->base <= stack->top && stack->top <= stack->last &&
           stack->last == stack->base + stack->capacity - 1 && stack->base->id == 0 &&
           stack->base->depth == UINT32_MAX;
}

/* Whether ids grow, depth counts and marks are below marks, among the innermost calls, none of which is suspended. */
static inline int kpti_call_stack_is_ordered(const kpti_call_stack *stack)
{
    enum { CHECKED = 64 };
    const kpti_call_record *call = stack->top;
    for (int i = 0; i < CHECKED && call > stack->base; i++, call--) {
        const kpti_call_record *const below = call - 1;
        if (kpti_call_true_id(call) <= kpti_call_true_id(below)) return 0;
        if (!kpti_call_is_clamped(call) && call->depth != below->depth + 1) return 0;
        if (call->flags & KPT_ACTIVITY_MARKED && below > stack->base &&
            !(below->flags & KPT_ACTIVITY_MARKED))
            return 0;
    }
    return 1;
}

/* Both return 0 and change nothing if there is no memory. */
int kpti_call_stack_init(kpti_call_stack *stack, const kpti_env *env);
int kpti_call_stack_grow(kpti_call_stack *stack);
void kpti_call_stack_free(kpti_call_stack *stack);

/* Returns the innermost open call with KEY, or a clamped frame, or NULL if there is none. NEXT_ID is the id that the
 * next call will get. */
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
    out->flags = call->flags & ~KPTI_CALL_HAS_VALUES;
    out->line = call->line;
    out->depth = call->depth;
    out->value0 = out->value1 = 0;
    out->value2 = call->caller_line;
    if (__builtin_expect(call->flags & (KPT_ACTIVITY_WATCHED | KPTI_CALL_HAS_VALUES), 0)) {
        out->value0 = call->value0;
        out->value1 = call->value1;
        if (call->flags & KPTI_CALL_HAS_VALUES) out->value2 = call->value2;
    }
}

#endif
