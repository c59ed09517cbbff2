/* report_operators.h: what a report has about the host's operators and the program's steps: which names are operators
 * and annotations, the functions of forward operators, and the steps. Only report.c and report_text.c use this. */
#ifndef KPTI_WRITERS_REPORT_REPORT_OPERATORS_H
#define KPTI_WRITERS_REPORT_REPORT_OPERATORS_H

#include "writers/report/report_state.h"

/* Receives the names of a batch. Returns as kpti_step_finder_batch does. */
kpt_status kpti_report_names(kpti_report *w, const kpt_batch *batch);

/* Records that the name of A, an operator or a range, is one. Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_report_operator(kpti_report *w, const kpt_activity *a);

/* Sets *NUMBER to the number of the function whose forward operator A belongs to: 0 if A is no node of autograd, 1 if
 * the function is not known. Returns as above. */
kpt_status kpti_report_forward(kpti_report *w, const kpt_activity *a, uint32_t *number);

/* Writes the last members of the section's JSON, which are left out if there are no operators or no steps, and its end. */
void kpti_report_put_operators(kpti_report *w);

void kpti_report_free_operators(kpti_report *w);

#endif
