/* symbolize_batch.h: a sequence of tracebacks that is being symbolized. The GIL is held, except while a batch
 * has released it. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_SYMBOLIZE_BATCH_H
#define KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_SYMBOLIZE_BATCH_H

#include "hosts/standalone/module/traceback/traceback_state.h"

typedef struct kpti_batch {
    kpti_module_state *state;
    PyObject *objects; /* a tuple, which keeps the objects alive */
    kpt_traceback *tracebacks;
    uint32_t *skips; /* of the objects */
    uint64_t count;
    PyObject *generated;     /* the module state's tuple, as it was at the start */
    PyObject *codecache;     /* torch's function for lines of its generated code, or NULL */
    PyThreadState *released; /* NULL while the GIL is held */
    int single;              /* write the JSON of one traceback, not of a list */
    PyObject *result;
} kpti_batch;

/* Returns the frames of traceback INDEX that are shown. Generated frames of a frame that is not shown are not
 * shown either. */
static inline kpt_symbol_span kpti_shown(const kpti_batch *batch, uint64_t index,
                                         const kpt_symbols *symbols)
{
    kpt_symbol_span span = symbols->spans[index];
    uint32_t left = batch->skips[index];
    if (!left) return span;
    for (; span.count; span.first++, span.count--) {
        const char *at = (const char *)symbols->symbols +
                         (size_t)symbols->frames[span.first] * symbols->symbol_stride;
        const int generated = ((const kpt_symbol *)at)->kind == KPT_SYMBOL_GENERATED;
        if (!generated && !left) break;
        left -= !generated;
    }
    return span;
}

/* Acquire and release the GIL around code that needs it, if the batch has released it. */
void kpti_batch_take_gil(kpti_batch *batch);
void kpti_batch_give_gil(kpti_batch *batch);

/* Returns the batch that the calling thread is symbolizing, or NULL. */
kpti_batch *kpti_batch_current(void);
/* Sets the current batch. Returns the previous one, since a finalizer may symbolize while a batch runs. */
kpti_batch *kpti_batch_set_current(kpti_batch *batch);

#endif
