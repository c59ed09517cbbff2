/* delivering.h: a recording that a fuzzer made, delivered in every order to a sink that checks; aborts
 * where something does not hold. */
#ifndef DELIVERING_H
#define DELIVERING_H

#include "core/recording/recording.h"
#include "tests/native/fuzz/input.h"

enum { FUNCTIONS = 6 };

/* How it is delivered. */
typedef struct wish {
    kpt_convert_fn convert;
    int64_t end_ns;
    uint64_t min_duration_ns;
    uint32_t batch_size;
    int parts; /* calls that are cut go on */
    int texts; /* ranges and inputs of the host are delivered too */
} wish;

/* Takes four bytes. */
wish take_wish(input *in);
/* Delivers whatever CTX is in every order, points as well; names and threads are below these. */
typedef kpt_status (*deliver_fn)(void *ctx, const kpt_delivery *delivery);
void deliver_in_all_orders(deliver_fn deliver, void *ctx, wish w, uint32_t names, uint32_t threads);
/* Tracks and runs are the recording's, the rest is set here. */
void deliver_all(kpti_recording recording, wish w);
void free_chunks(const kpti_chunk *first);

#endif
