/* host_watch.h: finds the calls that a host watches (kpt_watch) and notifies the host of them. */
#ifndef KPTI_PYTHON_TRACER_FRAMES_HOST_WATCH_H
#define KPTI_PYTHON_TRACER_FRAMES_HOST_WATCH_H

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/host_callbacks.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracer_state.h"

/* The arguments of a notification. They are copied, since no lock is held while the host runs. */
typedef struct kpti_watch_call {
    kpti_host_call *call;
    uint64_t (*notify)(void *ctx, uint64_t watch, void *self, uint64_t call_id);
    void *ctx;
    uint64_t watch;
    uint64_t call_id;
} kpti_watch_call;

/* Finds the watch of TRACER on the code with MARK and begins the host call. Returns 0 if there is no such
 * watch, or no memory. */
int kpti_watch_find_locked(kpti_tracer *tracer, uint32_t mark, kpti_watch_call *out);

/* Returns the first argument of the call in FRAME, a new reference, or NULL. */
PyObject *kpti_watch_first_argument(PyFrameObject *frame);

/* Notifies the host of the tracer with bit number I of a call that is already open in FRAME, whose code has
 * MARK. Returns 0 if that tracer does not watch it. The caller has saved the pending exception, holds no
 * lock, and busy is not set. */
int kpti_watch_open(PyFrameObject *frame, uint32_t mark, int i, kpti_open_answer *out);

#endif
