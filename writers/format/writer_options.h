/* writer_options.h: a format, and the options with which a writer is opened. */
#ifndef KPTI_WRITERS_FORMAT_WRITER_OPTIONS_H
#define KPTI_WRITERS_FORMAT_WRITER_OPTIONS_H

#include "abi/kpt_activity.h"
#include "core/base/allocator.h"
#include "writers/annotations/notes.h"
#include "writers/gpu/gpu_log.h"
#include "writers/io/output_file.h"
#include "writers/operators/operator_walk.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_format {
    const char *name;   /* for messages */
    const char *suffix; /* of its files */
    uint32_t order;     /* KPT_ORDER_* */
    const struct kpti_format_ops *ops;
    int links_operators; /* its writer uses the walk of operators; making it takes a delivery of its own */
    int has_inputs;   /* its writer writes the inputs of operators */
    int has_findings; /* its writer writes what was found; finding it takes a delivery of its own */
} kpti_format;

typedef struct kpti_writer kpti_writer;

/* Zero means the default. Strings are used during open only, notes, the GPU log and the walk until close. */
typedef struct kpti_writer_options {
    int64_t base_ns;       /* 0: times are since 1970, and viewers of JSON lose their last digits */
    uint32_t pid;          /* 0: this process */
    kpt_str process_name;  /* empty: "python" */
    kpt_str process_label; /* displayed beside the name; may be empty */
    kpt_str trace_name;    /* empty: the path */
    kpt_str version;       /* of the plugin that recorded */
    kpti_heap heap;
    int gzip;                        /* the file is compressed */
    int is_compact;                  /* Chrome JSON: calls without ids, with short names */
    int shares_file;                 /* the file will also hold other processes */
    kpti_interrupted_fn interrupted; /* see output_file.h */
    void *interrupted_ctx;
    /* the notes that the delivery's points refer to */
    const kpti_notes *notes;
    const kpti_gpu_log *gpu;       /* GPU activities of the same time */
    kpti_operator_walk *operators; /* after a walk of the same recording; NULL: none was made */
    kpt_str
        findings; /* of the same recording, as JSON (kpti_findings_write); empty: none were made */
    void (*progress)(void *ctx, uint64_t calls_done); /* called once per batch */
    void *progress_ctx;
} kpti_writer_options;

#ifdef __cplusplus
}
#endif
#endif
