/* chrome_json.h: a sink that writes what a tracer delivers as Chrome trace JSON, with the fields
 * that Kineto gives to Python calls: for Perfetto, chrome://tracing, HTA, TensorBoard.
 *
 *   open ──> batch, batch, … (as a delivery's sink) ──> close
 *
 * Any order will do that has complete activities: KPT_ORDER_THREAD is the cheapest. Names are
 * escaped once, when they arrive; a call is then a few copies and five numbers, formatted in
 * integers. Times are microseconds with three decimals since base_ns, which the header has as
 * baseTimeNanoseconds: viewers read times as doubles, and those of today can't hold Unix time to
 * the nanosecond.
 *
 * The file is strict JSON whatever bytes names have, and appears at close, whole, or never. One
 * thread at a time; no Python, no GIL. */
#ifndef KPTI_CHROME_JSON_H
#define KPTI_CHROME_JSON_H

#include "heap.h"
#include "kpt_activity.h"
#include "kpt_tracer.h"
#include "out_file.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_chrome kpti_chrome;

/* Zero means the default. Strings are needed during open only. */
typedef struct kpti_chrome_options {
    int64_t base_ns;      /* 0: times are since 1970, and viewers lose their last digits */
    uint32_t pid;         /* 0: this process */
    kpt_str process_name; /* empty: "python" */
    kpt_str trace_name;   /* empty: the path */
    kpt_str version;      /* of the plugin that recorded */
    kpti_heap heap;
    int gzip;                        /* the file is compressed */
    kpti_interrupted_fn interrupted; /* see out_file.h */
    void *interrupted_ctx;
} kpti_chrome_options;

/* What became of it. */
typedef struct kpti_chrome_result {
    uint64_t activities; /* written */
    uint64_t names;
    uint64_t threads;
    uint64_t bytes;
    int os_error;   /* an errno, with KPT_E_IO */
    char text[256]; /* why it failed; empty after KPT_OK */
} kpti_chrome_result;

/* Opens PATH for a trace. On KPT_OK *OUT is to be closed; otherwise RESULT says why not: KPT_E_IO,
 * KPT_E_MEMORY, KPT_E_INVALID. */
kpt_status kpti_chrome_open(const char *path, const kpti_chrome_options *options, kpti_chrome **out,
                            kpti_chrome_result *result);

/* A kpt_batch_fn: WRITER is a kpti_chrome. KPT_OK, KPT_E_IO, KPT_E_MEMORY, KPT_E_SIZE, KPT_E_LIMIT,
 * or KPT_E_UNSUPPORTED for begin and end events. */
kpt_status kpti_chrome_batch(void *writer, const kpt_batch *batch);

/* Ends the trace and frees the writer. STATUS is the delivery's: with KPT_OK the file is finished,
 * with the counters of STATS (which may be NULL), otherwise nothing is left. Returns KPT_OK, or the
 * first failure of all. */
kpt_status kpti_chrome_close(kpti_chrome *writer, kpt_status status, const kpt_stats *stats,
                             kpti_chrome_result *result);

#ifdef __cplusplus
}
#endif
#endif
