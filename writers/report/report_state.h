/* report_state.h: the state of the report's writer. report.c writes events as they come, report_text.c writes the JSON
 * at the end, report_gpu.c the sections of GPUs. Only they use this.
 *
 * A section of the page is gzip of: blocks of events, each "size thread bytes"; a 0; then JSON. Numbers
 * are varints. docs/report.md says what an event and the JSON hold. */
#ifndef KPTI_WRITERS_REPORT_REPORT_STATE_H
#define KPTI_WRITERS_REPORT_REPORT_STATE_H

#include "writers/annotations/task_resumes.h"
#include "writers/encode/escaped_strings.h"
#include "writers/encode/gzip_base64.h"
#include "writers/format/nested_frames.h"

typedef struct kpti_report_lane {
    char *events; /* that have not gone out yet */
    uint32_t capacity;
    uint32_t used;
    int64_t start_ns;
    int64_t last_ns;
    uint64_t frames; /* that opened; 0: and nothing else either */
    uint32_t depth;
    uint64_t begun_id; /* the call that opened last */
    int64_t begun_ns;
} kpti_report_lane;

typedef struct kpti_report {
    kpti_writer base;
    kpti_frames frames;
    kpti_resumes resumes;
    kpti_packed packed;
    kpti_fragments names;   /* as JSON; the note is the first line */
    kpti_fragments threads; /* as JSON: their names and numbers */
    kpti_report_lane *lanes;
    uint32_t lane_capacity;
    char *text; /* room for what report_text.c puts together */
    char *head; /* JSON that is known at the beginning */
    size_t head_bytes;
} kpti_report;

#endif
