#include "hosts/standalone/module/traceback/symbolize_tracebacks.h"

#include <stdlib.h>

#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/module/traceback/generated_frames.h"
#include "hosts/standalone/module/traceback/symbolize_batch.h"
#include "hosts/standalone/module/traceback/traceback_json.h"
#include "hosts/standalone/session/shared_tracebacks.h"

static const kpt_tracebacks *make_slow(void)
{
    const kpt_tracebacks *made = NULL;
    kpti_session_error error;
    PyObject *bytes = NULL;
    PyObject *native = PyImport_ImportModule("kpytrace._api.native");
    PyObject *path = native ? PyObject_CallMethod(native, "plugin_file", NULL) : NULL;
    if (path && PyUnicode_FSConverter(path, &bytes)) {
        made = kpti_tracebacks_make(PyBytes_AsString(bytes), kpti_generated, &error);
        if (!made) (void)kpti_raise(&error, NULL);
    }
    Py_XDECREF(bytes);
    Py_XDECREF(path);
    Py_XDECREF(native);
    return made;
}

const kpt_tracebacks *kpti_need_tracebacks(void)
{
    const kpt_tracebacks *process = kpti_tracebacks();
    return process ? process : make_slow();
}

PyObject *kpti_raise_traceback(kpt_status status, const char *what)
{
    const kpt_tracebacks *process = kpti_tracebacks();
    kpti_session_error error;
    (void)kpti_session_fail_of(&error, status, what, process->ops->last_error, process->self);
    return kpti_raise(&error, NULL);
}

/* Calls the gatherer with BATCH. If RELEASE is set, the GIL is released except where it is needed. */
static PyObject *run_batch(kpti_batch *batch, kpt_symbols_fn sink, int release)
{
    const kpt_tracebacks *process = kpti_need_tracebacks();
    kpti_batch *outer;
    kpt_status status;
    if (!process) return NULL;
    batch->codecache = kpti_find_codecache();
    kpti_state_take(&batch->state->generated_lock);
    if (batch->state->generated && PyTuple_Size(batch->state->generated) > 0)
        batch->generated = Py_NewRef(batch->state->generated);
    kpti_state_give(&batch->state->generated_lock);
    outer = kpti_batch_set_current(batch);
    if (release) batch->released = PyEval_SaveThread();
    status = process->ops->symbolize(process->self, batch->tracebacks, batch->count, sink, batch);
    if (release) PyEval_RestoreThread(batch->released);
    (void)kpti_batch_set_current(outer);
    Py_CLEAR(batch->codecache);
    Py_CLEAR(batch->generated);
    if (status == KPT_OK && batch->result) return batch->result;
    Py_CLEAR(batch->result);
    return kpti_raise_traceback(status == KPT_OK ? KPT_E_INTERNAL : status,
                                "tracebacks can't be symbolized");
}

/* Fills BATCH from its objects. Returns 1 if one of them has native frames, 0 if none has, -1 with an
 * exception. */
static int read_objects(kpti_batch *batch)
{
    int native = 0;
    batch->count = (uint64_t)PyTuple_Size(batch->objects);
    batch->tracebacks = malloc((batch->count + 1) * sizeof *batch->tracebacks);
    batch->skips = malloc((batch->count + 1) * sizeof *batch->skips);
    if (!batch->tracebacks || !batch->skips) {
        (void)PyErr_NoMemory();
        return -1;
    }
    for (uint64_t i = 0; i < batch->count; i++) {
        PyObject *object = PyTuple_GetItem(batch->objects, (Py_ssize_t)i);
        if (Py_TYPE(object) != batch->state->traceback_type) {
            PyErr_Format(PyExc_TypeError, "item %zd is not a Traceback of kpytrace: %R",
                         (Py_ssize_t)i, (PyObject *)Py_TYPE(object));
            return -1;
        }
        batch->tracebacks[i] = ((kpti_traceback_object *)object)->traceback;
        batch->skips[i] = ((kpti_traceback_object *)object)->skip;
        native |= batch->tracebacks[i].native != 0;
    }
    return native;
}

PyObject *kpti_symbolize(kpti_module_state *state, PyObject *sequence, kpt_symbols_fn sink,
                         int single)
{
    kpti_batch batch;
    PyObject *result = NULL;
    int native;
    if (!kpti_state_is_whole(state)) return NULL;
    memset(&batch, 0, sizeof batch);
    batch.state = state;
    batch.single = single;
    batch.objects = PySequence_Tuple(sequence);
    if (!batch.objects) return NULL;
    native = read_objects(&batch);
    if (native >= 0) result = run_batch(&batch, sink, native || sink == kpti_traceback_json);
    free(batch.tracebacks);
    free(batch.skips);
    Py_DECREF(batch.objects);
    return result;
}
