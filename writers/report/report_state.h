/* report_state.h: the state of the report's writer. report.c writes events as they are delivered, report_text.c
 * the JSON at the end, report_operators.c its part about operators and steps, and report_gpu.c the sections of
 * GPUs. Only they use this.
 *
 * A section of the page is gzip of: blocks of events, each "size thread bytes"; a 0; then JSON. Numbers are
 * varints. docs/report.md describes the content of an event and of the JSON. */
#ifndef KPTI_WRITERS_REPORT_REPORT_STATE_H
#define KPTI_WRITERS_REPORT_REPORT_STATE_H

#include "writers/annotations/task_resumes.h"
#include "writers/encode/escaped_strings.h"
#include "writers/encode/gzip_base64.h"
#include "writers/format/nested_frames.h"
#include "writers/operators/step_finder.h"

/* What a track needs while it has open calls, or events that are not written. */
typedef struct kpti_report_buffer {
    char *events; /* not written yet */
    uint32_t capacity;
    uint32_t used;
    uint32_t thread;
    uint32_t depth;
    uint64_t begun_id; /* id of the call that opened last */
    int64_t begun_ns;
} kpti_report_buffer;

typedef struct kpti_report_track {
    kpti_report_buffer *buffer; /* NULL: its events are written */
    int64_t start_ns;
    int64_t last_ns;
    uint64_t frames : 63;  /* frames opened so far */
    uint64_t is_known : 1; /* it has events, written or not */
    /* the thread's number as a varint, and its escaped name up to a zero; NULL: it was not delivered */
    const char *thread;
} kpti_report_track;

typedef struct kpti_report {
    kpti_writer base;
    kpti_frames frames;
    kpti_resumes resumes;
    kpti_packed packed;
    kpti_fragments names;   /* as JSON; the note is the first line */
    kpti_fragments threads; /* memory of the tracks' threads */
    kpti_report_track *track_states;
    uint32_t track_capacity;
    kpti_report_buffer **buffers; /* of all tracks that have one */
    uint32_t buffer_capacity;
    uint32_t buffer_count;
    uint32_t most_buffers; /* count at which those of idle tracks are written */
    uint8_t *name_kinds;   /* by name; empty if there are no operators and no annotations */
    uint32_t name_kind_capacity;
    kpti_fragments forwards; /* functions of forward operators, as JSON */
    kpti_u64_map forward_of; /* by text: number of a forward function */
    kpti_step_finder steps;
    char *text; /* buffer of the JSON's writers */
    char *head; /* JSON that is known at the beginning */
    size_t head_bytes;
    kpt_str findings; /* as JSON; empty: none were made. Used until the section is written */
} kpti_report;

#endif
