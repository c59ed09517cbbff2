/* wait_table.h: the waits of a recording by the function that waited and the function that it waited in, such as
 * Queue.get. A wait is a call of a C function that waits (name_class.h) of at least KPTI_MIN_WAIT_NS; the functions of
 * Python's library around it wait on behalf of their caller, so that they name the wait.
 *
 * Calls are delivered before their callers: a wait is pending until the first caller that is no library function. Only
 * findings.c calls this. */
#ifndef KPTI_WRITERS_FINDINGS_WAIT_TABLE_H
#define KPTI_WRITERS_FINDINGS_WAIT_TABLE_H

#include "core/base/u64_map.h"
#include "writers/findings/name_class.h"

#ifdef __cplusplus
extern "C" {
#endif

/* To acquire a lock that is free takes less; so does a queue that has an item. */
enum { KPTI_MIN_WAIT_NS = 100000 };

/* A stretch of a thread. Texts are the tracer's. */
typedef struct kpti_place {
    int64_t at_ns;
    uint64_t ns;
    uint64_t os_tid;
    kpt_str thread;
    uint32_t name; /* index of the kpt_name of its call */
} kpti_place;

typedef struct kpti_wait_row {
    uint32_t in; /* name that the wait has: lock.acquire, or a library function */
    uint32_t
        by; /* name of the function that waited; that of IN if it was called by no function of the program */
    uint32_t kind; /* KPTI_CLASS_LOCK to KPTI_CLASS_PROCESS */
    uint32_t threads;
    uint32_t last_thread; /* number of the last thread that waited so */
    uint64_t count;
    uint64_t total_ns;
    uint64_t lives_ns; /* of the threads, from their first call to the end of their last */
    kpti_place longest;
    uint32_t idle_threads; /* threads that did nothing else */
    kpti_place idle;       /* the longest wait of one of them */
} kpti_wait_row;

/* Waits that wait for their caller, in one function and at one depth. */
typedef struct kpti_pending_wait {
    uint32_t depth; /* of the call */
    uint32_t in;
    uint32_t kind;
    uint64_t count;
    uint64_t total_ns;
    kpti_place longest;
} kpti_pending_wait;

/* Zeroed at first, except for the heaps of both. Invariant: the depths in pending do not fall. */
typedef struct kpti_wait_table {
    kpti_heap heap;
    kpti_wait_row *rows;
    uint32_t row_capacity;
    uint32_t row_count;
    kpti_u64_map row_of; /* by in and by: index + 1 */
    kpti_pending_wait *pending;
    uint32_t pending_capacity;
    uint32_t pending_count;
    uint32_t thread;  /* number of the current thread, from 1 on */
    uint32_t *waited; /* rows in which it waited */
    uint32_t waited_capacity;
    uint32_t waited_count;
    /* the longest wait for a lock or for another thread, of the current thread: index of the row + 1, 0 if none */
    uint32_t longest_row;
    kpti_place longest;
} kpti_wait_table;

/* A wait ended. */
kpt_status kpti_wait_table_add(kpti_wait_table *table, uint32_t depth, uint32_t kind,
                               const kpti_place *place);

/* A call at DEPTH ended. Waits of the calls in it are counted for it, or, if KIND says that it is of the library or
 * IS_C, go on waiting for its own caller. */
kpt_status kpti_wait_table_end_slow(kpti_wait_table *table, uint32_t depth, uint32_t name,
                                    uint32_t kind, int is_c);
static inline kpt_status kpti_wait_table_end(kpti_wait_table *table, uint32_t depth, uint32_t name,
                                             uint32_t kind, int is_c)
{
    if (!table->pending_count || table->pending[table->pending_count - 1].depth <= depth)
        return KPT_OK;
    return kpti_wait_table_end_slow(table, depth, name, kind, is_c);
}

/* The current thread, whose calls took LIFE_NS, has ended. */
void kpti_wait_table_end_thread(kpti_wait_table *table, uint64_t life_ns);

void kpti_wait_table_free(kpti_wait_table *table);

#ifdef __cplusplus
}
#endif
#endif
