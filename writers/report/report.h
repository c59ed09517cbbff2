/* report.h: what the two halves of the report's writer share: report.c takes what comes as events,
 * report_text.c writes what is known in the end. Only they use this.
 *
 * A section of the page is gzip of: blocks of events, each "size thread bytes"; a 0; then JSON. Numbers
 * are varints. docs/report.md says what an event and the JSON hold. */
#ifndef KPTI_WRITERS_REPORT_REPORT_H
#define KPTI_WRITERS_REPORT_REPORT_H

#include "writers/annotations/nested_frames.h"
#include "writers/annotations/task_resumes.h"
#include "writers/encode/escaped_strings.h"
#include "writers/encode/gzip_base64.h"

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

/* Memory for both texts, with the head in its place. KPT_OK or KPT_E_MEMORY. */
kpt_status kpti_report_begin_text(kpti_report *w, const kpti_writer_options *options);
void kpti_report_free_text(kpti_report *w);

/* A function, or thread, that came. */
kpt_status kpti_report_name(kpti_report *w, const kpt_name *name);
kpt_status kpti_report_thread(kpti_report *w, const kpt_thread *thread);

/* The JSON at the end. */
void kpti_report_put_text(kpti_report *w, const kpt_stats *stats);

#endif
