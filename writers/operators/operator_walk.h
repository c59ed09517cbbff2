/* operator_walk.h: a sink that finds, for each operator and range of a delivery, its time without the operators inside
 * it, the Python stack in which it began, for work of autograd the Python stack of the forward operator, and the GPU
 * time of what it launched.
 *
 *   init ──> add_gpu ──> batch, batch, … (as a delivery's sink, in KPT_ORDER_TIME with ranges) ──> links, forward, claim,
 *   launches ──> free
 *
 * Autograd gives a node the sequence number of the forward operator and the number of the thread that ran it. Among the
 * forward operators with one number, the last that began is the one. The engine's operator around a node has no number,
 * and belongs to the same forward operator (torch links the same). Time grows with the number of
 * calls; memory with the different Python stacks of operators and with the number of forward operators. One thread at a
 * time; no Python, no GIL. */
#ifndef KPTI_WRITERS_OPERATORS_OPERATOR_WALK_H
#define KPTI_WRITERS_OPERATORS_OPERATOR_WALK_H

#include "abi/kpt_activity.h"
#include "writers/annotations/clock_shift.h"
#include "writers/gpu/gpu_launches.h"
#include "writers/operators/python_stacks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An operator or a range that has ended. */
typedef struct kpti_walked_operator {
    uint32_t name;   /* index of a kpt_name */
    uint32_t thread; /* index of a kpt_thread */
    uint32_t kind;   /* KPT_KIND_OPERATOR or KPT_KIND_RANGE_BEGIN */
    uint32_t flags;  /* KPT_ACTIVITY_* of its end */
    int64_t start_ns;
    int64_t end_ns;
    uint64_t own_ns;    /* without the operators and ranges inside it */
    uint32_t is_inside; /* another of the same name is around it */
    uint32_t stack;     /* its Python stack; 0: there is none */
    /* Of a node of autograd and of what is inside it: the Python stack of the forward operator; 0: there is none, or it
     * is not known. */
    uint32_t forward;
    uint32_t is_backward;
    uint64_t
        gpu_own_ns; /* of the work that was launched in it, but not in an operator or range inside it */
    uint64_t gpu_total_ns; /* of all work that was launched in it */
} kpti_walked_operator;

/* Returns KPT_OK, or a failure that ends the delivery. */
typedef kpt_status (*kpti_walked_fn)(void *ctx, const kpti_walked_operator *op);

/* A forward operator and the first node of autograd with its number. */
typedef struct kpti_forward_link {
    int64_t forward_ns; /* when they began */
    int64_t backward_ns;
    uint32_t forward_thread; /* indices of kpt_threads */
    uint32_t backward_thread;
} kpti_forward_link;

typedef struct kpti_operator_walk {
    kpti_heap heap;
    kpti_walked_fn ended; /* may be NULL */
    void *ended_ctx;
    struct kpti_walked_thread *threads; /* by index */
    uint32_t thread_capacity;
    kpti_python_stacks stacks;
    kpti_u64_map forward_of; /* by thread and sequence number: index + 1 of a forward */
    struct kpti_forward *forwards;
    uint32_t forward_capacity;
    uint32_t forward_count;
    kpti_forward_link *links;
    uint32_t link_capacity;
    uint32_t link_count;
    kpti_gpu_launches launches;    /* empty without add_gpu */
    const kpti_clock_shift *shift; /* the user of links applies it to their times; NULL: none */
} kpti_operator_walk;

void kpti_operator_walk_init(kpti_operator_walk *walk, const kpti_heap *heap, kpti_walked_fn ended,
                             void *ended_ctx);
void kpti_operator_walk_free(kpti_operator_walk *walk);

/* Takes the launches of LOG, of the same recording. Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_operator_walk_add_gpu(kpti_operator_walk *walk, const kpti_gpu_log *log);

/* A kpt_batch_fn. WALK is a kpti_operator_walk. Returns KPT_OK, KPT_E_MEMORY, KPT_E_SIZE, KPT_E_LIMIT, KPT_E_UNSUPPORTED
 * for another order, or the failure of a callback. */
kpt_status kpti_operator_walk_batch(void *walk, const kpt_batch *batch);

/* In place of batches, for a user that needs only the links: takes a thread, and then what begins, in the order of time.
 * Return as kpti_operator_walk_batch does. */
kpt_status kpti_operator_walk_thread(kpti_operator_walk *walk, const kpt_thread *thread);
kpt_status kpti_operator_walk_begin(kpti_operator_walk *walk, const kpt_activity *a);

/* Returns the index of the innermost Python function of STACK that is the user's own (library_file.h), or the innermost
 * one if there is none. STACK is not 0. */
uint32_t kpti_operator_walk_function(const kpti_operator_walk *walk, uint32_t stack);

/* Sets *FUNCTION to that function of the forward operator that A belongs to. Returns 0 if A is no node of autograd. An
 * empty text means that the forward operator is not known, or was called without Python. */
int kpti_operator_walk_forward(kpti_operator_walk *walk, const kpt_activity *a, kpt_str *function);

/* Returns the number, from 1, of the link that begins or ends at A, an operator of any delivery of the same recording with
 * the walk's shift; 0: there is none. */
uint32_t kpti_operator_walk_link(kpti_operator_walk *walk, const kpt_activity *a);

/* Gives the launches inside A, an operator of any delivery of the same recording, its id, unless they have one. Operators
 * come before those around them. Returns the number of launches that got the id. */
uint32_t kpti_operator_walk_claim(kpti_operator_walk *walk, const kpt_activity *a);

/* The same for operators that come after those around them: launches get the id of the last one. */
void kpti_operator_walk_claim_inner(kpti_operator_walk *walk, const kpt_activity *a,
                                    uint64_t external);

#ifdef __cplusplus
}
#endif

#endif
