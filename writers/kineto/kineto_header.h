/* kineto_header.h: mends the head of a trace that is no JSON.
 *
 * Kineto writes the members in front of the list of events one a line, and a user's metadata (add_metadata,
 * add_metadata_json) as its text is, but with a slash for each backslash: a quote in a value, which torch
 * had escaped, ends the string there. A value that can't be read as JSON becomes a string of its text. */
#ifndef KPTI_WRITERS_KINETO_KINETO_HEADER_H
#define KPTI_WRITERS_KINETO_KINETO_HEADER_H

#include "core/base/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_kineto_head {
    char *text; /* NULL: the file's own head is used */
    size_t size;
    size_t capacity;
} kpti_kineto_head;

/* Mends the head between AT, the file's beginning, and END, which may lie anywhere behind it. Returns how many
 * bytes of the file HEAD replaces: those up to the bracket of the list of events. Returns 0, and HEAD is
 * empty, where the head is not laid out as Kineto's is, is not whole, or memory is short.
 * thread: any, with a HEAD of its own. GIL: none. ownership: kpti_kineto_head_free frees the text. */
size_t kpti_kineto_head_mend(kpti_kineto_head *head, const kpti_heap *heap, const char *at,
                             const char *end);

void kpti_kineto_head_free(kpti_kineto_head *head, const kpti_heap *heap);

#ifdef __cplusplus
}
#endif
#endif
