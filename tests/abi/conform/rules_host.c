/* rules_host.c: R526, R805 and R806: the host's functions that the plugin calls while it records. A thread
 * is traced when it runs Python, or marks. */
#include <stdatomic.h>
#include <time.h>

#include "tests/abi/conform/recording.h"

static void nap(long milliseconds)
{
    const struct timespec moment = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    (void)nanosleep(&moment, NULL);
}

/* --- its clock -------------------------------------------------------------------------------- */

typedef struct seen_ticks {
    uint64_t min;
    uint64_t max;
} seen_ticks;

static void note_ticks(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count)
{
    seen_ticks *seen = ctx;
    for (uint64_t i = 0; i < count; i++) {
        if (ticks[i] < seen->min) seen->min = ticks[i];
        if (ticks[i] > seen->max) seen->max = ticks[i];
        ns[i] = (int64_t)ticks[i];
    }
}

static void host_ticks(conform *c)
{
    const uint64_t begin = UINT64_C(1) << 40;
    seen_ticks seen = {UINT64_MAX, 0};
    kpt_delivery delivery;
    kpt_tracer t;
    conform_enter(c);
    if (c->host.table.tick_source != KPT_TICKS_HOST)
        conform_unreached(c, "the mock host has no clock");
    c->host.now_ticks = begin;
    conform_record(c, &t);
    KPT_INIT(&delivery);
    delivery.convert = note_ticks;
    delivery.convert_ctx = &seen;
    (void)recording_take_with(c, &t, delivery);
    if (!seen.max) conform_unreached(c, "the host's converter was not called");
    EXPECT(c, seen.min > begin && seen.max <= c->host.now_ticks,
           "the converter received the ticks %llu to %llu; now_ticks returned %llu to %llu",
           (unsigned long long)seen.min, (unsigned long long)seen.max,
           (unsigned long long)begin + 1, (unsigned long long)c->host.now_ticks);
}

/* --- thread_attach ---------------------------------------------------------------------------- */

static atomic_int attached; /* calls so far */
static atomic_int inside;

/* The first call is slow. */
static uint64_t attach_slowly(void *ctx, uint64_t os_tid)
{
    (void)ctx;
    atomic_fetch_add(&inside, 1);
    if (atomic_fetch_add(&attached, 1) == 0) nap(300);
    atomic_fetch_sub(&inside, 1);
    return os_tid;
}

typedef struct working {
    conform *c;
    kpt_tracer tracer;
} working;

static void *work(void *ctx)
{
    const working *w = ctx;
    conform_workload(w->c);
    (void)w->tracer.ops->mark(w->tracer.self, KPT_MARK_POINT, 0);
    return NULL;
}

static void stop_waits(conform *c)
{
    working w = {.c = c};
    pthread_t thread;
    kpt_status status;
    int was_attached;
    int was_inside;
    conform_load(c);
    c->host.table.thread_attach = attach_slowly;
    conform_make(c, &w.tracer);
    if (pthread_create(&thread, NULL, work, &w) != 0)
        conform_unreached(c, "no thread could be started");
    for (int i = 0; !attached && i < 2000; i++)
        nap(1);
    was_attached = attached;
    status = w.tracer.ops->stop(w.tracer.self);
    was_inside = inside;
    (void)pthread_join(thread, NULL);
    if (!was_attached) conform_unreached(c, "thread_attach was not called");
    if (status != KPT_OK) conform_unreached(c, "stop failed");
    EXPECT(c, !was_inside, "stop returned while a thread was in thread_attach");
}

enum { MAX_THREADS = 64 };
static pthread_t known[MAX_THREADS];
static atomic_int attached_twice;

static uint64_t attach_once(void *ctx, uint64_t os_tid)
{
    const int count = atomic_fetch_add(&attached, 1);
    (void)ctx;
    (void)os_tid;
    for (int i = 0; i < count && i < MAX_THREADS; i++)
        if (pthread_equal(known[i], pthread_self())) attached_twice = 1;
    if (count < MAX_THREADS) known[count] = pthread_self();
    return 0;
}

/* The main thread's calls alone: another thread's identity may be used again. */
static void attach_is_once(conform *c)
{
    static const char program[] = "def short(): return len('')\nshort()\n";
    kpt_tracer t;
    conform_load(c);
    c->host.table.thread_attach = attach_once;
    conform_make(c, &t);
    for (int run = 0; run < 3; run++) {
        conform_python(c, program);
        (void)t.ops->mark(t.self, KPT_MARK_POINT, 0);
        if (t.ops->stop(t.self) != KPT_OK || t.ops->restart(t.self) != KPT_OK)
            conform_unreached(c, "stop or restart failed");
    }
    if (!attached) conform_unreached(c, "thread_attach was not called");
    EXPECT(c, !attached_twice, "thread_attach was called again on the same thread");
}

const conform_rule conform_host_rules[] = {
    RULE(R526, "with KPT_TICKS_HOST events have the ticks that now_ticks returned", host_ticks),
    RULE(R805, "stop returns when no thread is in thread_attach", stop_waits),
    RULE(R806, "thread_attach is called once on a thread, whatever it returns", attach_is_once),
    {NULL, NULL, NULL},
};
