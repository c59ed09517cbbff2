#include "hosts/standalone/module/traceback/symbolize_batch.h"

static _Thread_local kpti_batch *current;

kpti_batch *kpti_batch_current(void)
{
    return current;
}

kpti_batch *kpti_batch_set_current(kpti_batch *batch)
{
    kpti_batch *const before = current;
    current = batch;
    return before;
}

void kpti_batch_take_gil(kpti_batch *batch)
{
    if (batch->released) PyEval_RestoreThread(batch->released);
}

void kpti_batch_give_gil(kpti_batch *batch)
{
    if (batch->released) batch->released = PyEval_SaveThread();
}
