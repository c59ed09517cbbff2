/* format.h: the functions that each format implements. writer.c has the part that all formats share: the file,
 * the records, the first failure. Only writers include this. */
#ifndef KPTI_WRITERS_FORMAT_FORMAT_H
#define KPTI_WRITERS_FORMAT_FORMAT_H

#include "abi/kpt_tracer.h"
#include "core/base/batch_records.h"
#include "writers/annotations/synthetic_tids.h"
#include "writers/encode/escaped_strings.h"
#include "writers/format/open_ranges.h"
#include "writers/format/writer_options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The first member of each format's own writer. */
struct kpti_writer {
    const kpti_format *format;
    kpti_heap heap;
    kpti_out_file out;
    kpt_status status; /* the first failure of a batch */
    uint32_t pid;
    uint32_t processes; /* processes written to the file before this one */
    int shares_file;    /* the file also holds other processes */
    int64_t base_ns;
    const kpti_notes *notes;       /* never NULL */
    const kpti_gpu_log *gpu;       /* never NULL */
    kpti_operator_walk *operators; /* may be NULL */
    kpti_open_ranges ranges;       /* of the current process */
    kpti_fragments made_up;        /* names of threads that have none */
    void (*progress)(void *ctx, uint64_t calls_done);
    void *progress_ctx;
    uint64_t calls;
    uint64_t names;
    uint64_t threads;
    int64_t first_ns; /* of all activities; INT64_MAX: none yet */
    int64_t last_ns;  /* INT64_MIN: none yet */
    char *trace_name;
    size_t trace_name_bytes;
};

/* Each function returns KPT_OK, or a failure that ends the delivery. */
typedef struct kpti_format_ops {
    size_t writer_bytes;
    kpt_status (*begin)(kpti_writer *writer, const kpti_writer_options *options);
    kpt_status (*name)(kpti_writer *writer, const kpt_name *name);
    /* Threads without a number or a name were assigned one. The name is valid until the process has ended. */
    kpt_status (*thread)(kpti_writer *writer, const kpt_thread *thread);
    /* A range of the host is a call too, of kind KPT_KIND_RANGE_BEGIN (see open_ranges.h). */
    kpt_status (*call)(kpti_writer *writer, const kpt_activity *call);
    /* NOTE is the note that the point refers to; its number is the point's value0. */
    kpt_status (*point)(kpti_writer *writer, const kpt_activity *point, const kpti_note *note);
    kpt_status (*end)(kpti_writer *writer, const kpt_stats *stats);
    void (*release)(kpti_writer *writer); /* also called after begin failed */
    /* For formats that hold several processes: end_process writes and frees the state of one process, and
     * begin_process begins another. NULL if a file has one process. */
    kpt_status (*end_process)(kpti_writer *writer);
    kpt_status (*begin_process)(kpti_writer *writer, const kpti_writer_options *options);
    /* For formats that need more: names receives a batch before its activities; marker receives each point and each
     * begin and end of a range as it was delivered, before point and call do. NULL otherwise. */
    kpt_status (*names)(kpti_writer *writer, const kpt_batch *batch);
    kpt_status (*marker)(kpti_writer *writer, const kpt_activity *marker);
} kpti_format_ops;

/* Converts a number that is unique in a process to one that is unique in the file, since all processes count
 * from the same number. */
static inline uint64_t kpti_id_in_file(const kpti_writer *writer, uint64_t id)
{
    return id + ((uint64_t)writer->processes << 40);
}

#ifdef __cplusplus
}
#endif
#endif
