#include "python_tracer/capture/thread_capture.h"

#include <pthread.h>

#include "abi/impl/kpti_impl.h"
#include "abi/kpt_traceback.h"
#include "python_tracer/capture/incremental_unwind.h"
#include "python_tracer/interpreter/cpython.h"

/* The captures of one thread. */
typedef struct gatherer {
    kpti_detached_reader reader;
    int inside; /* the thread is inside a capture */
    kpti_unwind gathering;
    kpti_unwind *foreign; /* the same in a sub-interpreter; NULL: not in one yet */
    int64_t foreign_id;   /* its id: each interpreter counts code versions by itself */
} gatherer;

static __thread gatherer *own __attribute__((tls_model("initial-exec")));
static pthread_key_t at_thread_end;

/* Runs when the thread ends, which may be long after Python was finalized. */
static void thread_ended(void *self)
{
    gatherer *g = self;
    own = NULL;
    kpti_detached_readers_remove(&g->reader);
    kpti_unwind_free(&g->gathering);
    if (g->foreign) kpti_unwind_free(g->foreign);
    free(g->foreign);
    free(g);
}

static void make_key(void)
{
    (void)pthread_key_create(&at_thread_end, thread_ended);
}

static gatherer *make_own(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    gatherer *g;
    (void)pthread_once(&once, make_key);
    g = calloc(1, sizeof *g);
    if (!g || pthread_setspecific(at_thread_end, g) != 0) {
        free(g);
        return NULL;
    }
    kpti_detached_readers_add(&g->reader);
    own = g;
    return g;
}

/* Captures a stack without remembering it: where nothing may be remembered, or for a capture inside a
 * capture. */
static uint32_t gather_apart(PyThreadState *state, kpti_gil_state s, kpti_capture_options wish,
                             uint32_t *flags)
{
    kpti_unwind *g = calloc(1, sizeof *g);
    uint32_t stack = 0;
    int again = 0;
    if (!g) {
        *flags |= KPT_TRACEBACK_CUT;
        return 0;
    }
    stack = kpti_unwind_next(g, state, s, wish, &again, flags);
    kpti_unwind_free(g);
    free(g);
    return stack;
}

/* Returns the unwind for STATE's interpreter, a sub-interpreter, which does not report dead code objects.
 * While the thread stays in the same interpreter, the address and the version identify a code object.
 * Returns NULL if there is no memory, or code objects have no versions. */
static kpti_unwind *foreign_of(gatherer *g, const PyThreadState *state)
{
    const int64_t id = KPTI_CODES_HAVE_VERSIONS ? PyInterpreterState_GetID(state->interp) : -1;
    if (id < 0) return NULL;
    if (!g->foreign) g->foreign = calloc(1, sizeof *g->foreign);
    if (g->foreign && g->foreign_id != id) kpti_unwind_forget(g->foreign, g->foreign->epoch);
    g->foreign_id = id;
    return g->foreign;
}

KPTI_HOT uint32_t kpti_thread_capture(PyThreadState *state, kpti_gil_state s,
                                      kpti_capture_options wish, int *again, uint32_t *flags)
{
    gatherer *g = own ? own : make_own();
    kpti_unwind *gathering = g && !g->inside ? &g->gathering : NULL;
    uint32_t stack;
    if (gathering && s == KPTI_FOREIGN) gathering = foreign_of(g, state);
    if (!gathering) {
        *again = 0;
        return gather_apart(state, s, wish, flags);
    }
    g->inside = 1;
    stack = kpti_unwind_next(gathering, state, s, wish, again, flags);
    if (wish.gathered && s != KPTI_FOREIGN) *wish.gathered = gathering->last.number;
    g->inside = 0;
    return stack;
}

KPTI_HOT kpti_detached_reader *kpti_thread_capture_reader(void)
{
    gatherer *g = own ? own : make_own();
    return g ? &g->reader : NULL;
}

KPTI_HOT uint32_t kpti_thread_unchanged_stack(uint64_t gathered)
{
    const PyInterpreterState *newest = PyInterpreterState_Head();
    gatherer *g = own;
    uint32_t stack = 0;
    if (!g || g->inside || g->gathering.epoch != kpti_unwind_epoch()) return 0;
    if (kpti_detached_read_begin(&g->reader))
        stack = kpti_unwind_unchanged(&g->gathering, gathered, newest);
    kpti_detached_read_end(&g->reader);
    return stack;
}

void kpti_thread_capture_forget(void)
{
    if (!own || own->inside) return;
    kpti_unwind_forget(&own->gathering, own->gathering.epoch);
    kpti_stack_cache_empty(&own->gathering.stacks);
    if (!own->foreign) return;
    kpti_unwind_forget(own->foreign, own->foreign->epoch);
    kpti_stack_cache_empty(&own->foreign->stacks);
}

void kpti_thread_capture_forked_locked(void)
{
    kpti_detached_readers_forked_locked(own ? &own->reader : NULL);
}
