/* report_text.h: the JSON of the report: names, threads, notes and counters. Only report.c calls it. */
#ifndef KPTI_WRITERS_REPORT_REPORT_TEXT_H
#define KPTI_WRITERS_REPORT_REPORT_TEXT_H

#include "writers/report/report_state.h"

/* Allocates both texts and writes the head. Returns KPT_OK or KPT_E_MEMORY. */
kpt_status kpti_report_begin_text(kpti_report *w, const kpti_writer_options *options);
void kpti_report_free_text(kpti_report *w);

/* Adds a function or a thread. */
kpt_status kpti_report_name(kpti_report *w, const kpt_name *name);
kpt_status kpti_report_thread(kpti_report *w, const kpt_thread *thread);

/* Writes the JSON at the end. */
void kpti_report_put_text(kpti_report *w, const kpt_stats *stats);

#endif
