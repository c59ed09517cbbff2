#include "gather.h"

#include <sched.h>
#include <stdatomic.h>

#include "frame_mark.h"
#include "gatherer.h"
#include "installation.h"
#include "kpt_traceback.h"
#include "raw_frame.h"
#include "session.h"

/* The main interpreter, once all is ready in it; NULL before, and after its end. */
static _Atomic(PyInterpreterState *) prepared;
/* Threads that read their frames without the GIL, and whether they may: not while it ends. */
static _Atomic int may_read;
static _Atomic int readers;

/* A thread that has released the GIL, or never had it. */
static kpti_standing detached_standing(void)
{
    PyThreadState *state = PyGILState_GetThisThreadState();
    return state && state->interp == PyInterpreterState_Main() ? KPTI_DETACHED : KPTI_OUTSIDE;
}

static uint32_t gather_detached(kpti_wish wish, int may_wait, uint32_t *flags)
{
    uint32_t stack = 0;
    uint32_t seen = 0;
    PyGILState_STATE gil;
    (void)atomic_fetch_add_explicit(&readers, 1, memory_order_seq_cst);
    if (!atomic_load_explicit(&may_read, memory_order_seq_cst) || kpti_python_is_ending() ||
        detached_standing() == KPTI_OUTSIDE) {
        may_wait = 0;
        seen = KPT_TRACEBACK_NO_PYTHON;
    } else if (kpti_frames_are_known()) {
        stack = kpti_gatherer_gather(KPTI_DETACHED, wish, &may_wait, &seen);
    } else if (!may_wait) {
        seen = KPT_TRACEBACK_NO_PYTHON;
    }
    (void)atomic_fetch_sub_explicit(&readers, 1, memory_order_seq_cst);
    if (!may_wait) {
        *flags |= seen;
        return stack;
    }
    gil = PyGILState_Ensure();
    may_wait = 0;
    stack = kpti_gatherer_gather(KPTI_ATTACHED, wish, &may_wait, flags);
    PyGILState_Release(gil);
    return stack;
}

static uint32_t gather(kpti_wish wish, int may_wait, uint32_t *flags)
{
    PyThreadState *attached = kpti_attached();
    int again = 0;
    if (!attached || kpti_python_is_finalizing()) return gather_detached(wish, may_wait, flags);
    if (!atomic_load_explicit(&prepared, memory_order_relaxed)) kpti_gather_prepare();
    if (attached->interp == atomic_load_explicit(&prepared, memory_order_relaxed))
        return kpti_gatherer_gather(KPTI_ATTACHED, wish, &again, flags);
    return kpti_gatherer_gather(KPTI_FOREIGN, wish, &again, flags);
}

uint32_t kpti_gather_python(uint32_t depth, int may_wait, uint32_t *flags)
{
    return gather((kpti_wish){depth, 1, 0}, may_wait, flags);
}

uint32_t kpti_gather_pinned(uint32_t depth, int no_objects)
{
    uint32_t flags = 0;
    if (no_objects && !kpti_frames_are_known() && !KPTI_FRAMES_ARE_OBJECTS) return 0;
    return gather((kpti_wish){depth, 0, no_objects}, 0, &flags);
}

void kpti_gather_prepare(void)
{
    if (!kpti_may_touch_python()) return;
    kpti_installation_enter();
    kpti_installation_prepare();
    kpti_installation_leave();
    if (atomic_exchange(&prepared, PyInterpreterState_Main())) return;
    kpti_frame_mark_prepare();
    atomic_store(&may_read, 1);
}

void kpti_gather_exit(void)
{
    atomic_store_explicit(&may_read, 0, memory_order_seq_cst);
    /* They wait for nothing but short locks of ours. */
    while (atomic_load_explicit(&readers, memory_order_seq_cst) > 0)
        (void)sched_yield();
}

void kpti_gather_forget(void)
{
    atomic_store(&may_read, 0);
    atomic_store(&prepared, NULL);
    kpti_session_bump();
}

void kpti_gather_forked(void)
{
    atomic_store(&readers, 0);
}
