/* writer.h: a sink that writes what a tracer delivers to a file, in one of several formats.
 *
 *   kpti_format_of_path ──> open ──> batch, batch, … (as a delivery's sink) ──> close
 *                                     └─ end_process ──> begin_process ──> batch, … ─┘
 *
 * The delivery is to have the format's order. The file appears at close, whole, or never. One thread
 * at a time; no Python, no GIL. docs/formats.md says what each format holds. */
#ifndef KPTI_WRITER_H
#define KPTI_WRITER_H

#include "abi/kpt_activity.h"
#include "abi/kpt_tracer.h"
#include "core/base/allocator.h"
#include "writers/annotations/notes.h"
#include "writers/gpu/gpu_log.h"
#include "writers/io/output_file.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_format {
    const char *name;   /* for people */
    const char *suffix; /* of its files */
    uint32_t order;     /* KPT_ORDER_THREAD or KPT_ORDER_TIME */
    const struct kpti_format_ops *ops;
} kpti_format;

typedef struct kpti_format_choice {
    const kpti_format *format; /* Chrome JSON where the path does not say */
    int gzip;                  /* the path ends in ".gz" */
    int known;                 /* the path says */
} kpti_format_choice;

/* The format that a path's suffix stands for, also with ".gz" behind it. */
kpti_format_choice kpti_format_of_path(const char *path);

/* All formats, in the order in which they are to be listed; *COUNT of them. */
const kpti_format *const *kpti_formats(size_t *count);

/* Zero means the default. Strings are needed during open only, notes and the log until close. */
typedef struct kpti_writer_options {
    int64_t base_ns;       /* 0: times are since 1970, and viewers of JSON lose their last digits */
    uint32_t pid;          /* 0: this process */
    kpt_str process_name;  /* empty: "python" */
    kpt_str process_label; /* shown beside the name; empty: none */
    kpt_str trace_name;    /* empty: the path */
    kpt_str version;       /* of the plugin that recorded */
    kpti_heap heap;
    int gzip;                        /* the file is compressed */
    int shares_file;                 /* it is to hold other processes, too */
    kpti_interrupted_fn interrupted; /* see output_file.h */
    void *interrupted_ctx;
    const kpti_notes *notes;                          /* what the delivery's points mean */
    const kpti_gpu_log *gpu;                          /* what GPUs did meanwhile */
    void (*progress)(void *ctx, uint64_t calls_done); /* once a batch */
    void *progress_ctx;
} kpti_writer_options;

/* What became of it. */
typedef struct kpti_writer_result {
    uint64_t activities; /* written: calls, not points */
    uint64_t names;
    uint64_t threads;
    uint64_t bytes;
    int os_error;   /* an errno, with KPT_E_IO */
    char text[256]; /* why it failed; empty after KPT_OK */
} kpti_writer_result;

typedef struct kpti_writer kpti_writer;

/* Opens PATH for a trace. On KPT_OK *OUT is to be closed; otherwise RESULT says why not: KPT_E_IO,
 * KPT_E_MEMORY, KPT_E_INVALID. */
kpt_status kpti_writer_open(const kpti_format *format, const char *path,
                            const kpti_writer_options *options, kpti_writer **out,
                            kpti_writer_result *result);

/* A kpt_batch_fn: WRITER is a kpti_writer. KPT_OK, KPT_E_IO, KPT_E_MEMORY, KPT_E_SIZE, KPT_E_LIMIT,
 * or KPT_E_UNSUPPORTED for activities of another order. */
kpt_status kpti_writer_batch(void *writer, const kpt_batch *batch);

/* Whether a file can hold several processes. In one that can, the process that open began may be ended, and
 * another begun, whose pid, process_name, process_label, notes and log OPTIONS has. Between the two, and at
 * close, nobody's notes and log are needed: memory is that of one process. KPT_OK or the writer's first failure. */
int kpti_format_takes_processes(const kpti_format *format);
kpt_status kpti_writer_end_process(kpti_writer *writer);
kpt_status kpti_writer_begin_process(kpti_writer *writer, const kpti_writer_options *options);

/* What has become of the file so far: KPT_OK, or the writer's first failure, of which RESULT has the text. */
kpt_status kpti_writer_state(const kpti_writer *writer, kpti_writer_result *result);

/* Ends the trace and frees the writer. STATUS is the delivery's: with KPT_OK the file is finished,
 * with the counters of STATS (which may be NULL), otherwise nothing is left. Returns KPT_OK, or the
 * first failure of all. */
kpt_status kpti_writer_close(kpti_writer *writer, kpt_status status, const kpt_stats *stats,
                             kpti_writer_result *result);

#ifdef __cplusplus
}
#endif
#endif
