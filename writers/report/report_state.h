/* report_state.h: the state of the report's writer. report.c writes events as they are delivered, report_text.c
 * the JSON at the end, and report_gpu.c the sections of GPUs. Only they use this.
 *
 * A section of the page is gzip of: blocks of events, each "size thread bytes"; a 0; then JSON. Numbers are
 * varints. docs/report.md describes the content of an event and of the JSON. */
#ifndef KPTI_WRITERS_REPORT_REPORT_STATE_H
#define KPTI_WRITERS_REPORT_REPORT_STATE_H

#include "writers/annotations/task_resumes.h"
#include "writers/encode/escaped_strings.h"
#include "writers/encode/gzip_base64.h"
#include "writers/format/nested_frames.h"

typedef struct kpti_report_track {
    char *events; /* not written yet */
    uint32_t capacity;
    uint32_t used;
    int64_t start_ns;
    int64_t last_ns;
    uint64_t frames; /* frames opened so far */
    uint32_t depth;
    uint64_t begun_id; /* id of the call that opened last */
    int64_t begun_ns;
} kpti_report_track;

typedef struct kpti_report {
    kpti_writer base;
    kpti_frames frames;
    kpti_resumes resumes;
    kpti_packed packed;
    kpti_fragments names;   /* as JSON; the note is the first line */
    kpti_fragments threads; /* as JSON: names and ids */
    kpti_report_track *track_states;
    uint32_t track_capacity;
    char *text; /* buffer of report_text.c */
    char *head; /* JSON that is known at the beginning */
    size_t head_bytes;
} kpti_report;

#endif
