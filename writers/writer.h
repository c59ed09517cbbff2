/* writer.h: a sink that writes a delivery to a file, in one of several formats.
 *
 *   kpti_format_of_path (formats.h) ──> open ──> batch, batch, … (as a delivery's sink) ──> close
 *                                                 └─ end_process ──> begin_process ──> batch, … ─┘
 *
 * The delivery must have the format's order. The file appears at close, complete, or never. One thread at a
 * time; no Python, no GIL. docs/formats.md describes the formats. */
#ifndef KPTI_WRITERS_WRITER_H
#define KPTI_WRITERS_WRITER_H

#include "abi/kpt_activity.h"
#include "abi/kpt_tracer.h"
#include "writers/format/writer_options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a trace. */
typedef struct kpti_writer_result {
    uint64_t activities; /* calls written, without points */
    uint64_t names;
    uint64_t threads;
    uint64_t bytes;
    int os_error;   /* an errno if the status is KPT_E_IO */
    char text[256]; /* the reason of a failure; empty after KPT_OK */
} kpti_writer_result;

/* Opens PATH for a trace. Returns KPT_OK, and the caller must close *OUT, or returns KPT_E_IO, KPT_E_MEMORY or
 * KPT_E_INVALID, with the reason in RESULT. */
kpt_status kpti_writer_open(const kpti_format *format, const char *path,
                            const kpti_writer_options *options, kpti_writer **out,
                            kpti_writer_result *result);

/* A kpt_batch_fn. WRITER is a kpti_writer. Returns KPT_OK, KPT_E_IO, KPT_E_MEMORY, KPT_E_SIZE, KPT_E_LIMIT, or
 * KPT_E_UNSUPPORTED for activities of another order. */
kpt_status kpti_writer_batch(void *writer, const kpt_batch *batch);

/* For formats that hold several processes (kpti_format_takes_processes): end the current process, and begin
 * another with the pid, process_name, process_label, notes and GPU log of OPTIONS. Between the two calls, and
 * at close, no notes and no log are used, so memory is that of one process. Return KPT_OK or the writer's first
 * failure. */
kpt_status kpti_writer_end_process(kpti_writer *writer);
kpt_status kpti_writer_begin_process(kpti_writer *writer, const kpti_writer_options *options);

/* Returns the state of the file: KPT_OK, or the writer's first failure, with its text in RESULT. */
kpt_status kpti_writer_state(const kpti_writer *writer, kpti_writer_result *result);

/* Ends the trace and frees the writer. STATUS is the delivery's. With KPT_OK the file is completed, with the
 * counters of STATS (which may be NULL); else nothing is left. Returns KPT_OK or the first failure. */
kpt_status kpti_writer_close(kpti_writer *writer, kpt_status status, const kpt_stats *stats,
                             kpti_writer_result *result);

#ifdef __cplusplus
}
#endif
#endif
