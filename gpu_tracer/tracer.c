/* tracer.c: the operations of the GPU tracer, which the plugin calls, and the two entry points of the
 * library: one for the plugin and one for the CUDA driver. */
#include "gpu_tracer/correlation/correlate.h"
#include "gpu_tracer/correlation/correlation_table.h"
#include "gpu_tracer/correlation/held_stacks.h"
#include "gpu_tracer/deliver.h"
#include "gpu_tracer/gpu_recording.h"

static const uint64_t usual_budget = (uint64_t)512 << 20;

/* Returns KPT_DECLINED, with the reason in one line, if the no-op must be used. */
static kpt_status check_cuda(kpti_error *error)
{
    switch (kpti_cuda_look()) {
    case KPTI_CUDA_ABSENT:
        return kpti_fail(error, KPT_DECLINED,
                         "there is no CUDA driver: no GPU activities are recorded");
    case KPTI_CUDA_NO_GPU:
        return kpti_fail(error, KPT_DECLINED, "CUDA finds no GPU: no GPU activities are recorded");
    case KPTI_CUDA_UNUSED:
    case KPTI_CUDA_READY:
        break;
    }
    return KPT_OK;
}

static kpt_status make(const kpti_env *env, const kpt_gpu_args *args, void **self,
                       kpti_error *error)
{
    kpti_gpu_session *s;
    const kpti_cupti *cupti;
    kpt_status status = check_cuda(error);
    if (status != KPT_OK) return status;
    if (kpti_cuda_look() == KPTI_CUDA_READY && kpti_cupti_open(&cupti, error) != KPT_OK)
        return KPT_DECLINED;
    s = kpti_alloc(env, sizeof *s);
    if (!s) return kpti_fail(error, KPT_E_MEMORY, "no memory for a GPU tracer");
    s->env = env;
    if (args->tracebacks) s->tracebacks = *args->tracebacks;
    s->depth = args->stack_depth;
    s->fewer_calls = (args->flags & KPT_GPU_FEWER_CALLS) != 0;
    s->budget.env = env;
    s->budget.max = args->budget_bytes ? args->budget_bytes : usual_budget;
    kpti_record_store_init(&s->store, &s->budget);
    kpti_gpu_lists_init(&s->ready);
    *self = s;
    return KPT_OK;
}

static kpt_status start(void *self, kpti_error *error)
{
    return kpti_session_start(self, error);
}

static kpt_status stop(void *self, kpti_error *error)
{
    return kpti_session_stop(self, error);
}

static kpt_status collect(void *self, kpt_gpu_batch_fn sink, void *sink_ctx, kpti_error *error)
{
    kpti_gpu_session *s = self;
    if (atomic_load(&s->state) == KPT_GPU_RECORDING) {
        (void)s->cupti->cuptiActivityFlushAll(0); /* delivers finished activities */
        kpti_unix_clock_compare(&s->clock, s->cupti);
        kpti_join_absorb(s);
    }
    return kpti_deliver(s, sink, sink_ctx, error);
}

static void get_stats(void *self, kpt_gpu_stats *out)
{
    kpti_gpu_session *s = self;
    const uint32_t state = atomic_load(&s->state);
    out->state = state <= KPT_GPU_STOPPED ? state : KPT_GPU_WAITING;
    out->events = atomic_load(&s->store.events);
    out->dropped = atomic_load(&s->budget.dropped);
    out->lost_kernels = s->lost_kernels;
    out->bytes_held = atomic_load(&s->budget.held);
}

static void forked(void *self)
{
    kpti_session_forked(self);
}

static void destroy(void *self)
{
    kpti_gpu_session *s = self;
    const uint32_t state = atomic_load(&s->state);
    kpti_error unused;
    if (state && state != KPT_GPU_STOPPED) (void)kpti_session_stop(s, &unused);
    kpti_known_free(s);
    kpti_stacks_free(s);
    kpti_gpu_lists_free(&s->ready, &s->budget);
    kpti_record_store_free(&s->store);
    kpti_free(s->env, s, sizeof *s);
}

static const kpti_gpu_impl impl = {
    .make = make,
    .start = start,
    .stop = stop,
    .collect = collect,
    .get_stats = get_stats,
    .forked = forked,
    .destroy = destroy,
};

static const kpti_gpu_library library = {KPTI_INTERFACE, KPTI_VERSION, &impl};

__attribute__((visibility("default"))) const kpti_gpu_library *kpti_gpu_entry(void);
__attribute__((visibility("default"))) int InitializeInjection(void);

const kpti_gpu_library *kpti_gpu_entry(void)
{
    return &library;
}

/* Called by the driver at cuInit. Returns 1 (success) in any case. */
int InitializeInjection(void)
{
    kpti_session_cuda_begins();
    return 1;
}
