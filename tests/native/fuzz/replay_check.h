/* replay_check.h: what holds for every delivery, whatever the recording: aborts where it does not. */
#ifndef REPLAY_CHECK_H
#define REPLAY_CHECK_H

#include "abi/kpt.h"

/* A point of the host's, and how many activities had come before it. */
typedef struct check_point {
    kpt_activity activity;
    size_t after;
} check_point;

/* A delivery as it comes. */
typedef struct check {
    uint32_t order;
    int64_t end_ns;    /* 0: none */
    uint64_t least_ns; /* the least duration */
    uint32_t batch_size;
    int parts;           /* calls that were cut may have several activities, with one id */
    int texts;           /* names may also be the texts of ranges and of inputs, above the others */
    uint32_t name_count; /* names are below this, threads below the next */
    uint32_t thread_count;
    kpt_activity *activities;
    size_t count;
    size_t capacity;
    check_point *points;
    size_t point_count;
    size_t point_capacity;
    unsigned char *names; /* that have come */
    unsigned char *threads;
    uint64_t bytes; /* the sum of those of all names */
} check;

void check_init(check *c, uint32_t order, uint32_t name_count, uint32_t thread_count);
void check_free(check *c);
/* A kpt_batch_fn; ctx is the check. */
kpt_status check_sink(void *ctx, const kpt_batch *batch);
/* After the delivery: ids, parents, nesting, order, and where points lie. */
void check_all(const check *c);
/* Two deliveries of a recording hold the same activities, but for ids, order and phase. */
void check_same(const check *a, const check *b);
/* And the same points, but for their parents' ids. */
void check_same_points(const check *a, const check *b);

#endif
