/* symbolize_batch.h: a sequence of tracebacks that is being symbolized. The GIL is held except where a batch has
 * released it. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_SYMBOLIZE_BATCH_H
#define KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_SYMBOLIZE_BATCH_H

#include "hosts/standalone/module/traceback/traceback_state.h"

typedef struct kpti_batch {
    kpti_module_state *state;
    PyObject *objects; /* a tuple, so that they stay */
    kpt_traceback *tracebacks;
    uint32_t *skips; /* of the objects */
    uint64_t count;
    PyObject *generated;     /* the state's, as they were */
    PyObject *codecache;     /* torch's function for lines of its generated code, or NULL */
    PyThreadState *released; /* NULL: the GIL is held */
    int single;              /* the JSON of one traceback, not of a list of them */
    PyObject *result;
} kpti_batch;

/* The frames of the traceback of INDEX that it shows: what was generated for one that it does not is not
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

/* Around code that needs the GIL, while the batch may have released it. */
void kpti_batch_take_gil(kpti_batch *batch);
void kpti_batch_give_gil(kpti_batch *batch);

/* The batch that the calling thread is symbolizing; NULL: none. */
kpti_batch *kpti_batch_current(void);
/* Sets it. Returns the one before: a finalizer may symbolize while a batch runs. */
kpti_batch *kpti_batch_set_current(kpti_batch *batch);

#endif
