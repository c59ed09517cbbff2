/* call_edges.h: a sink that adds calls up by function and caller, for some of the functions: the calls that they make, and
 * the calls of them.
 *
 *   init ──> batch, batch, … (as a delivery's sink, in KPT_ORDER_TIME) ──> edges ──> free
 *
 * Memory grows with the number of pairs, of threads, and the depth. One thread at a time; no Python, no GIL. */
#ifndef KPTI_WRITERS_CALL_EDGES_H
#define KPTI_WRITERS_CALL_EDGES_H

#include "abi/kpt_activity.h"
#include "core/base/u64_map.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_EDGE_NO_CALLER = -1 }; /* as uint32_t: the call is the outermost of its thread */

typedef struct kpti_call_edge {
    uint32_t caller; /* index of a kpt_name */
    uint32_t callee;
    uint64_t calls;
    uint64_t total_ns; /* of these calls, with their callees */
    uint64_t own_ns;
} kpti_call_edge;

/* The calls of CALLERS, and the calls that have CALLEES, are added up: bits of 1 in bytes, by the index of a name. */
typedef struct kpti_edge_choice {
    const unsigned char *callers;
    const unsigned char *callees;
    uint32_t count; /* the bytes of each; names from here on are not chosen */
} kpti_edge_choice;

typedef struct kpti_call_edges {
    kpti_heap heap;
    kpti_edge_choice choice; /* borrowed */
    kpti_u64_map numbers;    /* index of an edge + 1, by caller and callee */
    kpti_call_edge *edges;
    uint64_t capacity;
    uint32_t count;
    struct kpti_edge_thread *threads; /* by the index of the thread */
    uint32_t thread_capacity;
} kpti_call_edges;

void kpti_call_edges_init(kpti_call_edges *edges, const kpti_heap *heap, kpti_edge_choice choice);

/* A kpt_batch_fn. EDGES is a kpti_call_edges. Returns KPT_OK, KPT_E_MEMORY, KPT_E_SIZE, KPT_E_LIMIT, or
 * KPT_E_UNSUPPORTED for another order. */
kpt_status kpti_call_edges_batch(void *edges, const kpt_batch *batch);

void kpti_call_edges_free(kpti_call_edges *edges);

#ifdef __cplusplus
}
#endif
#endif
