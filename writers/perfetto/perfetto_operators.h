/* perfetto_operators.h: the host's operators and ranges in a Perfetto trace: slices among the calls, with the categories
 * of Kineto's. A flow leads from a forward operator to its node of autograd. A node and what is inside it have the Python
 * function of the forward operator. Only the Perfetto writer uses this. */
#ifndef KPTI_WRITERS_PERFETTO_PERFETTO_OPERATORS_H
#define KPTI_WRITERS_PERFETTO_PERFETTO_OPERATORS_H

#include "writers/perfetto/perfetto_state.h"

static inline int kpti_perfetto_is_operator(const kpt_activity *a)
{
    return a->kind == KPT_KIND_OPERATOR || a->kind == KPT_KIND_RANGE_BEGIN;
}

/* Interns the words of operators in a sequence, unless it has them, so that traces without operators do not have them. */
void kpti_perfetto_intern_operators(kpti_perfetto *writer, kpti_perfetto_track *track_state);

/* Writes the begin of A. SLICE is that of its name, with its scope. */
kpt_status kpti_perfetto_begin_operator(kpti_perfetto *writer, kpti_perfetto_track *track_state,
                                        const kpt_activity *a, kpti_fragment slice);

/* What is known of an operator only when it ends. */
typedef struct kpti_perfetto_operator_end {
    uint64_t external; /* id that its launches have; 0: there are none */
    kpti_perfetto_node
        node; /* with the engine's operator around a node; parent_id 0: with another */
} kpti_perfetto_operator_end;

/* Takes the end of the operator A. Returns 0 if there is nothing to write beside the end. */
int kpti_perfetto_end_operator(kpti_perfetto *writer, kpti_perfetto_track *track_state,
                               const kpt_activity *a, kpti_perfetto_operator_end *end);
char *kpti_perfetto_put_operator_end(char *at, const kpti_perfetto_operator_end *end);

void kpti_perfetto_free_operators(kpti_perfetto *writer, kpti_perfetto_track *track_state);

#endif
