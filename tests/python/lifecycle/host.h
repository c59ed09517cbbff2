/* host.h: a small host for the life-cycle tests. Python programs open it with ctypes, and embed.c
 * links it. It knows no Python: what it does, it can do on any thread, with the GIL (ctypes.PyDLL)
 * and without it (ctypes.CDLL, or a thread of its own).
 *
 * All functions may be called from any thread, but one tracer from one at a time. */
#ifndef KPT_LIFECYCLE_HOST_H
#define KPT_LIFECYCLE_HOST_H

#include "abi/kpt.h"

#define LC_API __attribute__((visibility("default")))

typedef struct lc_tracer lc_tracer;

/* What a delivery held. Everything is checked against the invariants of kpt_activity.h. */
typedef struct lc_result {
    int32_t status;
    uint32_t threads;
    uint64_t activities;
    uint64_t broken; /* activities that break an invariant: 0 */
    uint64_t ticks;  /* calls of a Python function named tick, in all threads */
    uint64_t pairs;  /* of a call of mark_a and one of mark_b after it, in their thread */
    uint64_t min;    /* calls of tick between such a pair: the fewest, and the most */
    uint64_t max;
    uint64_t ended_open; /* flagged ENDED_BY_STOP */
    uint64_t gc;         /* garbage collections */
    uint64_t dropped;    /* of get_stats */
    uint64_t repaired;
    char why[160]; /* the first broken invariant */
} lc_result;

/* Binds the host to the plugin; NULL, or what went wrong. Once a process. */
LC_API const char *lc_open(const char *plugin);
/* Makes an object that gathers tracebacks; NULL, or what went wrong. A no-op is wrong. */
LC_API const char *lc_make_tracebacks(kpt_tracebacks *out);
/* The text of the last failed make on this thread. */
LC_API const char *lc_why(void);

/* Makes a tracer; NULL on failure. A no-op is a failure. */
LC_API lc_tracer *lc_make(uint32_t flags, uint64_t max_bytes, uint64_t ring_bytes);
/* The same with a sink of chunks; the ring may be 0. */
LC_API lc_tracer *lc_make_streaming(const kpt_chunk_sink *sink, uint64_t ring_bytes);
/* Hands what is held to its own sink. */
LC_API int lc_flush(lc_tracer *tracer);
/* How many events were recorded until now. */
LC_API uint64_t lc_events(lc_tracer *tracer);
/* A tracer of chunks that a sink has kept; NULL on failure. */
LC_API lc_tracer *lc_load(kpt_next_chunk_fn next, void *next_ctx);
LC_API int lc_stop(lc_tracer *tracer);
LC_API int lc_restart(lc_tracer *tracer);
LC_API int lc_register_gc(lc_tracer *tracer);
LC_API int lc_state(lc_tracer *tracer);
LC_API int lc_deliver(lc_tracer *tracer, lc_result *out);
LC_API int lc_snapshot(lc_tracer *tracer, lc_result *out);
LC_API int lc_destroy(lc_tracer *tracer);

/* A thread that Python does not know waits DELAY_MS, then stops, delivers and destroys TRACER. */
typedef struct lc_stopper lc_stopper;
LC_API lc_stopper *lc_stopper_start(lc_tracer *tracer, uint32_t delay_ms);
/* Waits for it; how many nanoseconds the three took, -1 if one failed. */
LC_API int64_t lc_stopper_wait(lc_stopper *stopper, lc_result *out);
/* Sleeps. Through ctypes.PyDLL: a C function that holds the GIL for long. */
LC_API void lc_sleep_ms(uint32_t ms);

/* A thread that Python does not know makes, stops, delivers and destroys CYCLES tracers. */
typedef struct lc_cycler lc_cycler;
LC_API lc_cycler *lc_cycler_start(uint32_t cycles, uint32_t run_us);
/* Waits for it for so long: 1 finished, 0 still at it. The rest is valid once it has finished. */
LC_API int lc_cycler_wait(lc_cycler *cycler, uint32_t ms);
LC_API const char *lc_cycler_why(const lc_cycler *cycler); /* empty: all was well */

/* Allocations numbered FIRST up to LAST, counted from now and 1, fail. 0, 0: none does. */
LC_API void lc_fail_allocs(uint64_t first, uint64_t last);
LC_API uint64_t lc_allocs(void); /* asked for since then */
LC_API int64_t lc_live_blocks(void);

#endif
