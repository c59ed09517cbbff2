/* findings.h: a sink that finds in a delivery what stands out: where the time went, collections of garbage, waits at
 * locks, tasks that blocked their event loop, functions that became slower, threads that never ran, gaps of a GPU, and
 * what the recording lacks. docs/report.md has the rules and their limits.
 *
 *   open ──> batch, batch, … (as a delivery's sink, in KPT_ORDER_THREAD, with points) ──> write ──> free
 *
 * Time grows with the number of calls, memory with the number of functions, of pairs of functions that wait, and with
 * the threads that are delivered ahead of their calls. One thread at a time; no Python, no GIL. */
#ifndef KPTI_WRITERS_FINDINGS_FINDINGS_H
#define KPTI_WRITERS_FINDINGS_FINDINGS_H

#include "writers/findings/findings_rest.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns KPT_OK and sets *OUT, which the caller frees, or returns KPT_E_MEMORY. NOTES, which the points refer to, are
 * borrowed until free. */
kpt_status kpti_findings_open(const kpti_heap *heap, const kpti_notes *notes, kpti_findings **out);

/* A kpt_batch_fn. FINDINGS is a kpti_findings. Returns KPT_OK, KPT_E_MEMORY, KPT_E_SIZE, KPT_E_LIMIT, or
 * KPT_E_UNSUPPORTED for another order. */
kpt_status kpti_findings_batch(void *findings, const kpt_batch *batch);

/* After the last batch: writes the object that docs/python.md specifies, as JSON, to OUT. Returns KPT_OK, KPT_E_MEMORY or
 * KPT_E_LIMIT. */
kpt_status kpti_findings_write(kpti_findings *findings, const kpti_findings_rest *rest,
                               kpti_text_builder *out);

void kpti_findings_free(kpti_findings *findings);

#ifdef __cplusplus
}
#endif
#endif
