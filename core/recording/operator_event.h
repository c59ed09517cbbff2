/* operator_event.h: the events that describe an operator or a range of the host, behind its ENTER or SPAN_BEGIN. */
#ifndef KPTI_CORE_RECORDING_OPERATOR_EVENT_H
#define KPTI_CORE_RECORDING_OPERATOR_EVENT_H

#include "abi/kpt_inputs.h"
#include "core/recording/event.h"

/* An OPERATOR event:
 *
 *   bits  0–31   sequence number + 1, or 0 if there is none or a WIDE event has it
 *   bits 36–39   KPTI_OPERATOR_*
 *   bits 40–43   scope
 *   bits 44–63   number of the forward thread, or 0 if there is none or a WIDE event has it */
enum { KPTI_OPERATOR_ASYNC = 1 };
enum { KPTI_OPERATOR_FLAG_BITS = 4, KPTI_OPERATOR_SCOPE_BITS = 4 };
#define KPTI_OPERATOR_MAX_FORWARD ((UINT32_C(1) << 20) - 1)

typedef struct kpti_operator_fields {
    uint32_t sequence_plus_1;
    uint32_t flags;
    uint32_t scope;
    uint32_t forward_thread;
} kpti_operator_fields;

static inline kpti_event kpti_operator_make(kpti_operator_fields f)
{
    kpti_assert(f.flags < 1U << KPTI_OPERATOR_FLAG_BITS &&
                f.scope < 1U << KPTI_OPERATOR_SCOPE_BITS);
    kpti_assert(f.forward_thread <= KPTI_OPERATOR_MAX_FORWARD);
    return kpti_event_make(KPTI_EVENT_OPERATOR,
                           f.flags | f.scope << KPTI_OPERATOR_FLAG_BITS |
                               f.forward_thread
                                   << (KPTI_OPERATOR_FLAG_BITS + KPTI_OPERATOR_SCOPE_BITS),
                           f.sequence_plus_1);
}

static inline kpti_operator_fields kpti_operator_read(kpti_event event)
{
    const uint32_t number = kpti_event_number(event);
    return (kpti_operator_fields){(uint32_t)event, number & ((1U << KPTI_OPERATOR_FLAG_BITS) - 1),
                                  number >> KPTI_OPERATOR_FLAG_BITS &
                                      ((1U << KPTI_OPERATOR_SCOPE_BITS) - 1),
                                  number >> (KPTI_OPERATOR_FLAG_BITS + KPTI_OPERATOR_SCOPE_BITS)};
}

/* A TEXT event has up to seven bytes: four in bits 0–31, three in bits 36–59, and their count in bits 60–63. */
enum {
    KPTI_TEXT_BYTES = 7,
    KPTI_MAX_SPAN_NAME = 252,
    KPTI_MAX_INPUT_EVENTS = (KPT_INPUTS_MOST_BYTES + KPTI_TEXT_BYTES - 1) / KPTI_TEXT_BYTES
};

static inline uint32_t kpti_text_events(uint64_t size)
{
    return (uint32_t)((size + KPTI_TEXT_BYTES - 1) / KPTI_TEXT_BYTES);
}

/* Makes the event for the first bytes of TEXT, of which SIZE are left. */
static inline kpti_event kpti_text_make(const char *text, uint64_t size)
{
    const uint32_t count = size < KPTI_TEXT_BYTES ? (uint32_t)size : (uint32_t)KPTI_TEXT_BYTES;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes |= (uint64_t)(unsigned char)text[i] << (8 * i);
    return kpti_event_make(KPTI_EVENT_TEXT, (uint32_t)(bytes >> 32) | count << 24,
                           bytes & UINT32_MAX);
}

/* An INPUTS event for COUNT TEXT events that begin DISTANCE events before it, or follow it if DISTANCE is 0. */
static inline kpti_event kpti_inputs_make(uint32_t count, uint32_t distance)
{
    return kpti_event_make(KPTI_EVENT_INPUTS, count, distance);
}

/* Copies the bytes of a TEXT event to OUT, which has space for KPTI_TEXT_BYTES. Returns how many. */
static inline uint32_t kpti_text_read(kpti_event event, char *out)
{
    const uint32_t number = kpti_event_number(event);
    const uint64_t bytes = (uint64_t)(number & 0xffffff) << 32 | (uint32_t)event;
    const uint32_t count =
        number >> 24 < KPTI_TEXT_BYTES ? number >> 24 : (uint32_t)KPTI_TEXT_BYTES;
    for (uint32_t i = 0; i < count; i++)
        out[i] = (char)(bytes >> (8 * i));
    return count;
}

#endif
