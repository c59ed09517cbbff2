/* trace_event.h: one event of a Chrome trace, as views of its text. Nothing is allocated. */
#ifndef KPTI_IMPORTS_TRACE_EVENT_H
#define KPTI_IMPORTS_TRACE_EVENT_H

#include <stdint.h>

#include "abi/kpt_base.h"

/* Texts are borrowed. Strings are without their quotes and with their escapes. A field that the event lacks is empty,
 * or 0. */
typedef struct kpti_trace_event {
    char phase; /* the letter of "ph"; 0: the event has none */
    int has_start;
    int64_t start_ns;
    int64_t duration_ns; /* never negative */
    kpt_str name;
    kpt_str category;
    kpt_str pid; /* a number or a string, as it is written */
    kpt_str tid;
    kpt_str args; /* the object, with its braces */
} kpti_trace_event;

/* Reads the object that begins at AT. Returns its end, or NULL if it is not valid, or not complete at END. */
const char *kpti_trace_event_read(const char *at, const char *end, kpti_trace_event *out);

/* Reads a number of microseconds, AT to END, as nanoseconds. Returns 0 if it is no number, or beyond some 70 years. */
int kpti_trace_time_read(const char *at, const char *end, int64_t *ns);

/* Finds the member KEY of the object TEXT. Returns its value, a string with its quotes; empty if there is none. */
kpt_str kpti_trace_member(kpt_str text, const char *key);

#endif
