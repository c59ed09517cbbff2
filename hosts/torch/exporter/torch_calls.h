/* torch_calls.h: a recording's calls as torch shows them, in the order of their ids, with torch's names,
 * threads and arguments. Calls that torch has written itself are omitted. No GIL. */
#ifndef KPTI_TORCH_CALLS_H
#define KPTI_TORCH_CALLS_H

#include "hosts/torch/session/exporter_view.h"
#include "writers/chrome/chrome_events.h"

enum {
    KPTI_CALLS_VERBOSE = 1 << 0, /* with "Python thread" and "Call stack" */
    KPTI_CALLS_OF_LIST = 1 << 1  /* for torch's list of events, not for Kineto's trace: threads by
                                    torch's own numbers, not the system's */
};

/* Returns KPTI_TORCH_HANDED_*: the calls that torch itself has in the output of FLAGS. */
static inline uint32_t kpti_torch_has(const kpti_torch_recording *recording, uint32_t flags)
{
    return flags & KPTI_CALLS_OF_LIST ? recording->listed : recording->handed;
}

/* Writes the recording's calls as events. Returns KPT_OK, KPT_E_MEMORY, KPT_E_IO (EVENTS' file has the errno),
 * or the status of the tracer. *COUNT receives the number of events. */
kpt_status kpti_torch_calls_write(const kpti_torch_recording *recording, uint32_t flags,
                                  kpti_chrome_events *events, uint64_t *count);

/* --- for a delivery that has more than calls ---------------------------------------------------- */

typedef struct kpti_torch_calls kpti_torch_calls;

/* Returns KPT_OK and sets *OUT, which the caller frees, or returns KPT_E_MEMORY. */
kpt_status kpti_torch_calls_open(const kpti_torch_recording *recording, uint32_t flags,
                                 kpti_chrome_events *events, kpti_torch_calls **out);
void kpti_torch_calls_free(kpti_torch_calls *calls);

/* Take a record of a batch. CTX are the calls. They return KPT_OK, or a failure. */
kpt_status kpti_torch_calls_name(kpti_torch_calls *calls, const kpt_name *name);
kpt_status kpti_torch_calls_thread(void *ctx, const kpt_thread *thread);
/* Writes the call A, unless it is not part of the trace. The ids of A are those of the file. */
kpt_status kpti_torch_calls_call(void *ctx, const kpt_activity *a);

/* Returns the name NAME, escaped, or the thread THREAD in the form that kpti_chrome_put needs. */
kpti_fragment kpti_torch_calls_shown(const kpti_torch_calls *calls, uint32_t name);
kpti_fragment kpti_torch_calls_place(const kpti_torch_calls *calls, uint32_t thread);

#endif
