/* torch_names.h: the names of a recording's calls as torch shows them: "file.py(8): inner", with the line at
 * which a call (re)started, or "nn.Module: Linear_0" for a module's call. Escaped for JSON. No GIL. */
#ifndef KPTI_TORCH_NAMES_H
#define KPTI_TORCH_NAMES_H

#include "core/base/batch_records.h"
#include "hosts/torch/session/exporter_view.h"
#include "writers/chrome/chrome_events.h"

typedef struct kpti_torch_names {
    const kpti_torch_recording *recording;
    kpti_fragments names;   /* "file(8): inner", escaped; the note is the line in it */
    kpti_fragments files;   /* "file(" of Python functions; the note is their first line */
    kpti_fragments modules; /* by answer; the note is the module's number. Empty if no module */
    kpt_name *raw;          /* by index */
    uint32_t raw_capacity;
    char *name; /* the name of one call, if it differs from the function's */
} kpti_torch_names;

/* NAMES is initialised with zeroes. Returns KPT_OK or KPT_E_MEMORY; the caller frees NAMES after either. */
kpt_status kpti_torch_names_open(kpti_torch_names *names, const kpti_torch_recording *recording);

void kpti_torch_names_free(kpti_torch_names *names);

/* Adds a name of a batch. Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_torch_names_take(kpti_torch_names *names, const kpt_name *name);

/* Returns PATH without the first prefix that it begins with, as torch trims it. */
kpt_str kpti_torch_trimmed(const kpti_torch_recording *recording, kpt_str path);

typedef struct kpti_torch_shown {
    kpti_fragment name;   /* valid until the next call of these functions */
    kpti_fragment module; /* empty if it is no module's call */
} kpti_torch_shown;

/* Returns the line at which the call A of THREAD (re)started, or 0 for the function's own line. Its name must
 * have been added. */
uint32_t kpti_torch_line(kpti_torch_names *names, const kpt_thread *thread, const kpt_activity *a);

/* Returns the name of A, with that line. */
kpti_torch_shown kpti_torch_show(kpti_torch_names *names, const kpt_thread *thread,
                                 const kpt_activity *a);

/* Returns the module of a watched call's answer, or an empty text. */
kpti_fragment kpti_torch_module(kpti_torch_names *names, uint64_t answer);

/* Returns 1 if the name INDEX is a Python function's. */
static inline int kpti_torch_is_python(const kpti_torch_names *names, uint32_t index)
{
    return index < names->files.capacity && names->files.items[index].text;
}

/* Returns a Python function's name with LINE, or with its own line if LINE is 0. */
kpti_fragment kpti_torch_name_at(kpti_torch_names *names, uint32_t index, uint32_t line);

/* --- the calls of a recording ----------------------------------------------------------------- */

/* Delivers all calls, with their parts, to SINK. ORDER is KPT_ORDER_*, FLAGS further KPT_DELIVER_*. */
kpt_status kpti_torch_deliver(const kpti_torch_recording *recording, uint32_t order, uint32_t flags,
                              kpt_batch_fn sink, void *sink_ctx);

typedef kpt_status (*kpti_torch_take_thread_fn)(void *ctx, const kpt_thread *thread);
typedef kpt_status (*kpti_torch_take_call_fn)(void *ctx, const kpt_activity *call);

/* The body of such a sink: it processes the batch's names, then its threads and its calls. It is inlined, and
 * so are both functions, since there may be millions of calls. */
static inline __attribute__((always_inline)) kpt_status
kpti_torch_take(kpti_torch_names *names, const kpt_batch *batch,
                kpti_torch_take_thread_fn take_thread, kpti_torch_take_call_fn take_call, void *ctx)
{
    kpt_status status = KPT_OK;
    if (!kpti_records_can_read(batch)) return KPT_E_SIZE;
    for (uint32_t i = 0; i < batch->name_count && status == KPT_OK; i++)
        status = kpti_torch_names_take(names, kpti_record(batch->names, batch->name_stride, i));
    for (uint32_t i = 0; i < batch->thread_count && status == KPT_OK; i++)
        status = take_thread(ctx, kpti_record(batch->threads, batch->thread_stride, i));
    for (uint32_t i = 0; i < batch->activity_count && status == KPT_OK; i++)
        status = take_call(ctx, kpti_record(batch->activities, batch->activity_stride, i));
    return status;
}

#endif
