/* event.h: the event, eight bytes in a chunk.
 *
 *   bits  0–31   the low half of the tick counter
 *   bits 32–35   the kind: KPTI_EVENT_*
 *   bits 36–63   the function's id, or another number, by kind
 *
 * The high half of the counter is that of the chunk's base_ticks until an EPOCH event changes it. Some kinds
 * are followed by a second word of 64 plain bits. Every exit carries its function's id, since the interpreter
 * does not pair calls and returns in all cases; replay matches ids.
 *
 * An operator of the host is a function like any other: its begin is an ENTER, its end an EXIT. A range of the
 * host, which may cross calls, is a span with a name. The name is in the chunk, not in a table, so that it leaves
 * memory with the chunk. TEXT, OPERATOR and INPUTS events have no time: all 60 bits beside the kind are data. */
#ifndef KPTI_CORE_RECORDING_EVENT_H
#define KPTI_CORE_RECORDING_EVENT_H

#include <stdint.h>

#include "core/base/assert.h"

typedef uint64_t kpti_event;

enum {
    KPTI_EVENT_ENTER = 0, /* a call, or a resume */
    KPTI_EVENT_EXIT = 1,  /* a return, a yield, or an exception that leaves */
    KPTI_EVENT_OPEN = 2,  /* at the start of a chunk: a call that was open there, outermost first */
    KPTI_EVENT_EPOCH = 3, /* second word: the whole counter */
    /* of the previous ENTER; number: low 28 bits of the call id; second word: the host's answer */
    KPTI_EVENT_WATCH = 4,
    KPTI_EVENT_LINE = 5,     /* of the previous ENTER or OPEN; number: its line */
    KPTI_EVENT_GC_BEGIN = 6, /* number: generation */
    /* second word: collected in the low half, uncollectable in the high half */
    KPTI_EVENT_GC_END = 7,
    KPTI_EVENT_MARK = 8,       /* of the host; number: the host's, 0: none */
    KPTI_EVENT_SPAN_BEGIN = 9, /* of the host; number: the span's */
    KPTI_EVENT_SPAN_END = 10,
    KPTI_EVENT_CALLER = 11, /* of the previous ENTER; number: the line it was called from */
    KPTI_EVENT_TEXT = 12,   /* a piece of the span's name, or of inputs */
    KPTI_EVENT_OPERATOR =
        13,               /* of the previous ENTER, SPAN_BEGIN or OPEN: see kpti_operator_make */
    KPTI_EVENT_WIDE = 14, /* of the same; number: KPTI_WIDE_*; second word: the value */
    /* of the previous ENTER or OPEN; bits 0–31: how many events before this one the TEXT events with the operator's
     * inputs begin, or 0 if they follow; number: how many there are */
    KPTI_EVENT_INPUTS = 15
};

/* The number of an OPEN event for a span that was open: it is in a WIDE event that follows. */
#define KPTI_OPEN_SPAN KPTI_MAX_NUMBER

/* What the second word of a WIDE event is. */
enum {
    KPTI_WIDE_SEQUENCE = 0, /* the operator's sequence number, if it does not fit */
    KPTI_WIDE_FORWARD = 1,  /* the number of the forward thread, if it does not fit */
    KPTI_WIDE_RECORD = 2,   /* the host's number of the operator */
    KPTI_WIDE_SPAN = 3      /* the number of a span that was open */
};

enum { KPTI_KIND_BITS = 4, KPTI_NUMBER_BITS = 28 };
#define KPTI_MAX_NUMBER ((UINT32_C(1) << KPTI_NUMBER_BITS) - 1)

static inline kpti_event kpti_event_make(uint32_t kind, uint32_t number, uint64_t ticks)
{
    kpti_assert(kind < 1U << KPTI_KIND_BITS && number <= KPTI_MAX_NUMBER);
    return (uint64_t)(number << KPTI_KIND_BITS | kind) << 32 | (uint32_t)ticks;
}

static inline uint32_t kpti_event_kind(kpti_event event)
{
    return (uint32_t)(event >> 32) & ((1U << KPTI_KIND_BITS) - 1);
}

static inline uint32_t kpti_event_number(kpti_event event)
{
    return (uint32_t)(event >> (32 + KPTI_KIND_BITS));
}

/* Returns whether a second word follows. */
static inline int kpti_event_is_long(uint32_t kind)
{
    return kind == KPTI_EVENT_EPOCH || kind == KPTI_EVENT_WATCH || kind == KPTI_EVENT_GC_END ||
           kind == KPTI_EVENT_WIDE;
}

/* Whether the event belongs to the ENTER, OPEN or SPAN_BEGIN before it. */
static inline int kpti_event_is_detail(kpti_event event)
{
    enum {
        DETAILS = 1 << KPTI_EVENT_LINE | 1 << KPTI_EVENT_WATCH | 1 << KPTI_EVENT_CALLER |
                  1 << KPTI_EVENT_TEXT | 1 << KPTI_EVENT_OPERATOR | 1 << KPTI_EVENT_WIDE |
                  1 << KPTI_EVENT_INPUTS
    };
    return DETAILS >> kpti_event_kind(event) & 1;
}

#endif
