/* fake_backend.c: a fake backend for tests: its tracer counts calls and delivers one activity per call, and
 * its tracebacks are all the same. It refers to functions of Python directly, as real backends do, so it
 * can only be loaded where they are visible. Each FAKE_* macro makes it wrong in one way. */
#include <stdlib.h>
#include <unistd.h>

#include "abi/impl/kpti_impl.h"

int Py_IsInitialized(void);
const char *Py_GetVersion(void);

typedef struct fake {
    const kpti_env *env;
    uint64_t calls;
} fake;

static kpt_status make(const kpti_env *env, const kpt_tracer_args *args, void **self,
                       kpti_error *error)
{
    fake *f;
    (void)args;
#ifdef FAKE_DECLINES
    return kpti_fail(error, KPT_DECLINED, "the fake backend has no wish to");
#endif
#ifdef FAKE_FAILS
    return kpti_fail(error, KPT_E_BUSY, "somebody else has the fake hook");
#endif
    f = kpti_alloc(env, sizeof *f);
    if (!f) return kpti_fail(error, KPT_E_MEMORY, "no memory for a fake");
    f->env = env;
    *self = f;
    return KPT_OK;
}

static kpt_status count(void *self, kpti_error *error)
{
    (void)error;
    ((fake *)self)->calls++;
    return KPT_OK;
}

static kpt_status deliver(void *self, const kpt_delivery *delivery, kpti_error *error)
{
    fake *f = self;
    kpt_name name = {0};
    kpt_thread thread = {0};
    kpt_batch batch;
    kpt_activity activity = {.id = 1, .end_ns = 1, .kind = KPT_KIND_PYTHON};
    (void)error;
    KPT_INIT(&batch);
    name.function = name.display = kpt_str_of("fake");
    batch.order = delivery->order;
    batch.activities = &activity;
    batch.activity_stride = sizeof activity;
    batch.names = &name;
    batch.name_count = 1;
    batch.name_stride = sizeof name;
    batch.threads = &thread;
    batch.thread_count = 1;
    batch.thread_stride = sizeof thread;
    batch.activity_count = f->calls > 0;
    return f->calls ? delivery->sink(delivery->sink_ctx, &batch) : KPT_OK;
}

static void get_stats(void *self, kpt_stats *out)
{
    out->events = ((fake *)self)->calls;
    out->threads = (uint64_t)Py_IsInitialized();
}

static void forked(void *self)
{
    ((fake *)self)->calls = 0;
}

static void destroy(void *self)
{
    const kpti_env *env = ((fake *)self)->env;
    kpti_free(env, self, sizeof(fake));
}

static void mark(void *self, uint32_t what, uint64_t number)
{
    (void)what;
    (void)number;
    ((fake *)self)->calls++;
}

static const kpti_tracer_impl tracer = {.make = make,
                                        .stop = count,
                                        .restart = count,
                                        .register_gc_callback = count,
                                        .deliver = deliver,
                                        .get_stats = get_stats,
                                        .mark = mark,
                                        .forked = forked,
                                        .destroy = destroy};

/* Its tracebacks are all the same one. */
static kpt_status make_tracebacks(const kpti_env *env, const kpt_tracebacks_args *args, void **self,
                                  kpti_error *error)
{
    (void)args;
    *self = kpti_alloc(env, sizeof(fake));
    if (!*self) return kpti_fail(error, KPT_E_MEMORY, "no memory for a fake");
    ((fake *)*self)->env = env;
    return KPT_OK;
}

static void gather(void *self, uint32_t what, uint32_t depth, kpt_traceback *out)
{
    (void)depth;
    ((fake *)self)->calls++;
    if (what & KPT_GATHER_SCRIPT) out->script = 7;
}

static void release(void *self, kpt_traceback *tracebacks, uint64_t count)
{
    ((fake *)self)->calls++;
    memset(tracebacks, 0, count * sizeof *tracebacks);
}

static const kpti_tracebacks_impl tracebacks = {
    .make = make_tracebacks, .gather = gather, .release = release, .destroy = destroy};

static kpti_backend backend;

#ifdef FAKE_SLOW
/* Loading is slow: a byte is written to the pipe when it begins, another when it ends. */
static void be_slow(void)
{
    enum { TIME_US = 300000 };
    const char *pipe = getenv("KPT_FAKE_PIPE");
    if (!pipe || write(atoi(pipe), "b", 1) != 1) return;
    (void)usleep(TIME_US);
    (void)!write(atoi(pipe), "e", 1);
}
#endif

/* Once, when it is loaded: the entry is called by any thread, and Py_GetVersion is not for many. */
__attribute__((constructor)) static void fill(void)
{
    const char *version = Py_GetVersion();
    backend.interface = KPTI_INTERFACE;
    backend.python_minor = (uint32_t)strtoul(version + 2, NULL, 10);
    backend.free_threaded = strstr(version, "free-threading") != NULL;
    backend.version = KPTI_VERSION;
    backend.tracer = &tracer;
    backend.tracebacks = &tracebacks;
#ifdef FAKE_SLOW
    be_slow();
#endif
#ifdef FAKE_INTERFACE
    backend.interface++;
#endif
#ifdef FAKE_VERSION
    backend.version = KPTI_VERSION ".1";
#endif
#ifdef FAKE_MINOR
    backend.python_minor++;
#endif
#ifdef FAKE_FREE_THREADED
    backend.free_threaded = !backend.free_threaded;
#endif
#ifdef FAKE_NO_TRACER
    backend.tracer = NULL;
    backend.tracebacks = NULL;
#endif
}

#ifdef FAKE_NO_ENTRY
#define ENTRY fake_other_name
#else
#define ENTRY kpti_backend_entry
#endif
__attribute__((visibility("default"))) const kpti_backend *ENTRY(void);

const kpti_backend *ENTRY(void)
{
#ifdef FAKE_NULL
    return NULL;
#endif
    return &backend;
}
