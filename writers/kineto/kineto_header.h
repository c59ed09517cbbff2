/* kineto_header.h: repairs the head of a Kineto trace that is not valid JSON.
 *
 * Kineto writes the members before the list of events one per line. It writes a user's metadata (add_metadata,
 * add_metadata_json) unescaped, but with a slash for each backslash. So a quote in a value, which torch had
 * escaped, ends the string there. A value that cannot be read as JSON becomes a string with its text. */
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

/* Repairs the head between AT, the beginning of the file, and END, which may be anywhere after the head.
 * Returns how many bytes of the file HEAD replaces: those up to the bracket of the list of events. Returns 0,
 * with an empty HEAD, if the head does not have Kineto's layout, is incomplete, or there is no memory.
 *   thread: any, with a HEAD of its own. GIL: none. ownership: kpti_kineto_head_free frees the text. */
size_t kpti_kineto_head_mend(kpti_kineto_head *head, const kpti_heap *heap, const char *at,
                             const char *end);

void kpti_kineto_head_free(kpti_kineto_head *head, const kpti_heap *heap);

#ifdef __cplusplus
}
#endif
#endif
