#include "python_tracer/capture/stack_capture.h"

#include <stdatomic.h>

#include "abi/impl/kpti_impl.h"
#include "abi/kpt_traceback.h"
#include "python_tracer/capture/capture_options.h"
#include "python_tracer/capture/detached_readers.h"
#include "python_tracer/capture/thread_capture.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/frame_mark.h"
#include "python_tracer/interpreter/installation.h"
#include "python_tracer/interpreter/raw_frame.h"
#include "python_tracer/state/tracing_lock.h"

/* The main interpreter once it is prepared; NULL before, and after its end. */
static _Atomic(PyInterpreterState *) prepared;

static PyInterpreterState *main_interpreter(void)
{
    return atomic_load_explicit(&prepared, memory_order_relaxed);
}

/* Returns the state of a thread that has released the GIL, or never held it, or NULL if the thread may not
 * read it. */
static PyThreadState *detached_state(void)
{
    PyThreadState *state = kpti_python_is_finalizing() ? NULL : PyGILState_GetThisThreadState();
    return state && state->interp == main_interpreter() ? state : NULL;
}

KPTI_HOT static uint32_t gather_detached(kpti_capture_options wish, int may_wait, uint32_t *flags)
{
    kpti_detached_reader *reader = kpti_thread_capture_reader();
    PyThreadState *state;
    uint32_t stack = 0;
    uint32_t seen = 0;
    PyGILState_STATE gil;
    if (!reader) {
        *flags |= KPT_TRACEBACK_CUT;
        return 0;
    }
    state = kpti_detached_read_begin(reader) ? detached_state() : NULL;
    if (!state) {
        may_wait = 0;
        seen = KPT_TRACEBACK_NO_PYTHON;
    } else if (kpti_frames_are_known()) {
        stack = kpti_thread_capture(state, KPTI_DETACHED, wish, &may_wait, &seen);
    } else if (!may_wait) {
        seen = KPT_TRACEBACK_NO_PYTHON;
    }
    kpti_detached_read_end(reader);
    if (!may_wait) {
        *flags |= seen;
        return stack;
    }
    gil = PyGILState_Ensure();
    may_wait = 0;
    stack = kpti_thread_capture(kpti_attached(), KPTI_ATTACHED, wish, &may_wait, flags);
    PyGILState_Release(gil);
    return stack;
}

KPTI_HOT static uint32_t gather(kpti_capture_options wish, int may_wait, uint32_t *flags)
{
    PyThreadState *attached = kpti_attached();
    kpti_gil_state s;
    int again = 0;
    if (!attached || kpti_python_is_finalizing()) return gather_detached(wish, may_wait, flags);
    if (!main_interpreter()) kpti_capture_prepare();
    s = attached->interp == main_interpreter() ? KPTI_ATTACHED : KPTI_FOREIGN;
    return kpti_thread_capture(attached, s, wish, &again, flags);
}

uint32_t kpti_capture_python(uint32_t depth, int may_wait, uint32_t *flags)
{
    return gather((kpti_capture_options){depth, 1, 0, NULL}, may_wait, flags);
}

uint32_t kpti_capture_pinned(uint32_t depth, int no_objects)
{
    uint32_t flags = 0;
    if (no_objects && !kpti_frames_are_known() && !KPTI_FRAMES_ARE_OBJECTS) return 0;
    return gather((kpti_capture_options){depth, 0, no_objects != 0, NULL}, 0, &flags);
}

/* Not inlined, which keeps the fast path of its caller short. */
KPTI_HOT static __attribute__((noinline)) uint32_t gather_anew(uint32_t depth, uint64_t *gathered)
{
    uint32_t flags = 0;
    *gathered = 0; /* for a thread that has left Python and whose state is gone */
    return gather((kpti_capture_options){depth, 0, 0, gathered}, 0, &flags);
}

KPTI_HOT uint32_t kpti_capture_within(uint32_t depth, uint64_t *gathered)
{
    const uint32_t stack = *gathered ? kpti_thread_unchanged_stack(*gathered) : 0;
    return stack ? stack : gather_anew(depth, gathered);
}

void kpti_capture_prepare(void)
{
    if (!kpti_may_touch_python()) return;
    kpti_installation_enter();
    kpti_installation_prepare();
    kpti_installation_leave();
    if (atomic_exchange(&prepared, PyInterpreterState_Main())) return;
    kpti_frame_mark_prepare();
    kpti_detached_reads_allow();
}

void kpti_capture_exit(void)
{
    kpti_detached_reads_disallow();
}

void kpti_capture_forget(void)
{
    atomic_store(&kpti_detached_reads_allowed, 0);
    atomic_store(&prepared, NULL);
    kpti_invalidate_caches();
}
