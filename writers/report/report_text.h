/* report_text.h: the JSON of the report: names, threads, notes and counters. Only report.c and report_operators.c call it. */
#ifndef KPTI_WRITERS_REPORT_REPORT_TEXT_H
#define KPTI_WRITERS_REPORT_REPORT_TEXT_H

#include "writers/report/report_state.h"

/* Allocates both texts and writes the head. Returns KPT_OK or KPT_E_MEMORY. */
kpt_status kpti_report_begin_text(kpti_report *w, const kpti_writer_options *options);
void kpti_report_free_text(kpti_report *w);

/* Adds a function or a thread. */
kpt_status kpti_report_name(kpti_report *w, const kpt_name *name);
kpt_status kpti_report_thread(kpti_report *w, const kpt_thread *thread);

/* For the writers of parts of the JSON: write the text in the buffer up to END, or a constant text. */
void kpti_report_put(kpti_report *w, const char *end);
void kpti_report_put_literal(kpti_report *w, const char *text);

/* Formats a time since the first activity, so that a double can hold it. Never overflows. */
char *kpti_report_put_time(const kpti_report *w, char *at, int64_t ns);

/* Writes the JSON at the end, up to the members of report_operators.h. */
void kpti_report_put_text(kpti_report *w, const kpt_stats *stats);

#endif
