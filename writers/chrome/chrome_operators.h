/* chrome_operators.h: the host's operators and ranges as Chrome trace events, with the categories and fields that Kineto
 * writes for torch's. An operator also has the ids of a call, since Python calls may be inside it. */
#ifndef KPTI_WRITERS_CHROME_CHROME_OPERATORS_H
#define KPTI_WRITERS_CHROME_CHROME_OPERATORS_H

#include "writers/chrome/chrome_events.h"
#include "writers/format/format.h"

/* Returns whether A is an operator or a range. */
static inline int kpti_chrome_is_operator(const kpt_activity *a)
{
    return a->kind == KPT_KIND_OPERATOR || a->kind == KPT_KIND_RANGE_BEGIN;
}

/* autograd's last node: the engine's operator around it gets its numbers. Calls come before their callers. */
typedef struct kpti_chrome_node {
    uint64_t parent_id;
    uint64_t sequence_plus_1;
    uint64_t forward_thread;
} kpti_chrome_node;

/* Gives A the numbers of NODE if it is the operator around it, or makes A the last node. */
void kpti_chrome_node_take(kpti_chrome_node *node, kpt_activity *a);

/* The texts of an operator or a range. */
typedef struct kpti_chrome_operator {
    kpti_fragment name; /* the note is its scope */
    kpti_fragment thread;
    kpti_fragment more;   /* is added to its arguments: ",\"key\":value" or nothing */
    kpti_fragment inputs; /* the same, of any size */
    /* The number that the file gives to an operator or a range. 0: an operator has its id, and the ids of a call. */
    uint64_t external;
} kpti_chrome_operator;

/* Makes the JSON of NAME, inputs of operators, the text with its index. Made once, since most operators have inputs that
 * others have, too. */
kpt_status kpti_chrome_add_inputs(kpti_fragments *names, const kpt_name *name);

/* Writes A, with a comma before it. If A is a node of autograd and WALK is not NULL, it has the Python function of the
 * forward operator. */
void kpti_chrome_put_operator(kpti_chrome_events *events, kpti_operator_walk *walk,
                              const kpt_activity *a, kpti_chrome_operator texts);

/* Writes an arrow from each forward operator to its node of autograd. */
void kpti_chrome_put_links(kpti_writer *writer, const kpti_fragments *threads);

#endif
