/* gpu_recording.c: see gpu_recording.h. No lock is held while CUPTI or CUDA is called, since CUDA may be
 * calling us under its own locks: the threads that begin and end a recording synchronise by `state` alone. */
#include "gpu_tracer/gpu_recording.h"

#include <sched.h>

#include "core/base/assert.h"
#include "gpu_tracer/callbacks/buffers.h"
#include "gpu_tracer/callbacks/callback.h"
#include "gpu_tracer/correlation/correlate.h"
#include "gpu_tracer/correlation/correlation_table.h"
#include "gpu_tracer/cupti/api_functions.h"
#include "gpu_tracer/cupti/cuda_injection.h"
#include "gpu_tracer/cupti/cupti_conflicts.h"
#include "gpu_tracer/session/current_session.h"

enum { ATTACHING = 100 }; /* between waiting and recording */

/* Kinds of activities. The first one is required; the others may be missing in an old CUPTI. Stop disables
 * the kinds of the program's calls first, so that our own calls are not recorded. */
static const CUpti_ActivityKind of_gpu[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                            CUPTI_ACTIVITY_KIND_MEMCPY,
                                            CUPTI_ACTIVITY_KIND_MEMCPY2,
                                            CUPTI_ACTIVITY_KIND_MEMSET,
                                            CUPTI_ACTIVITY_KIND_NAME,
                                            CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
static const CUpti_ActivityKind of_calls[] = {
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_MARKER,
    CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER};
enum { OF_GPU = sizeof of_gpu / sizeof of_gpu[0], OF_CALLS = sizeof of_calls / sizeof of_calls[0] };

static kpt_status refuse(const kpti_cupti *cupti, CUptiResult result, const char *what,
                         kpti_error *error)
{
    const char *text = NULL;
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ||
        result == CUPTI_ERROR_MAX_LIMIT_REACHED)
        return kpti_fail(error, KPT_E_BUSY,
                         "CUPTI is in use by %s, and serves one tool at a time: stop that tool to "
                         "record GPU activities",
                         kpti_rival());
    (void)cupti->cuptiGetResultString(result, &text);
    return kpti_fail(error, KPT_E_UNSUPPORTED, "CUPTI failed to %s: %s", what,
                     text ? text : "unknown error");
}

static void enable_callbacks(const kpti_gpu_session *s)
{
    const uint32_t wanted = KPTI_CALL_STACK | KPTI_CALL_BEGIN_CAPTURE | KPTI_CALL_END_CAPTURE |
                            (s->fewer_calls ? KPTI_CALL_TIMED : 0);
    for (uint32_t domain = CUPTI_CB_DOMAIN_DRIVER_API; domain <= CUPTI_CB_DOMAIN_RUNTIME_API;
         domain++)
        for (uint32_t cbid = 1; cbid < KPTI_MAX_CALLS; cbid++)
            if (kpti_call_of(domain, cbid)->wanted & wanted)
                (void)s->cupti->cuptiEnableCallback(1, s->subscriber, (CUpti_CallbackDomain)domain,
                                                    cbid);
    (void)s->cupti->cuptiEnableCallback(1, s->subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                        CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
}

/* Disables the calls that are not recorded: of the runtime the calls of no interest, of the driver all
 * calls that do no work. The reverse, with the driver's kind disabled and single functions enabled,
 * recorded nothing if CUDA had been in use before (tests/native/gpu/real_gpu_test.cc). If CUPTI can't select
 * functions, it records all calls, and convert.c drops the others. */
static void leave_out_calls(const kpti_cupti *cupti)
{
    const kpti_cupti_cbid_fn choose[] = {cupti->cuptiActivityEnableDriverApi,
                                         cupti->cuptiActivityEnableRuntimeApi};
    for (uint32_t domain = CUPTI_CB_DOMAIN_DRIVER_API; domain <= CUPTI_CB_DOMAIN_RUNTIME_API;
         domain++)
        for (uint32_t cbid = 1; choose[domain - 1] && cbid < KPTI_MAX_CALLS; cbid++) {
            const kpti_call_row *row = kpti_call_of(domain, cbid);
            if (row->name.size && !(row->wanted & KPTI_CALL_KEPT))
                (void)choose[domain - 1](cbid, 0);
        }
}

/* Records of calls, waits and overhead slow the program most; docs/gpu.md has figures for each kind. */
static int is_wanted(const kpti_gpu_session *s, CUpti_ActivityKind kind)
{
    if (!s->fewer_calls) return 1;
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return 0;
    default:
        return 1;
    }
}

static kpt_status enable_kinds(const kpti_gpu_session *s, kpti_error *error)
{
    const kpti_cupti *cupti = s->cupti;
    CUptiResult result = cupti->cuptiActivityEnable(of_gpu[0]);
    if (result != CUPTI_SUCCESS)
        return refuse(cupti, result, "enable the recording of kernels", error);
    for (int i = 1; i < OF_GPU; i++)
        if (is_wanted(s, of_gpu[i])) (void)cupti->cuptiActivityEnable(of_gpu[i]);
    for (int i = 0; i < OF_CALLS; i++)
        if (is_wanted(s, of_calls[i])) (void)cupti->cuptiActivityEnable(of_calls[i]);
    if (!s->fewer_calls) leave_out_calls(cupti);
    return KPT_OK;
}

static void disable_kinds(const kpti_gpu_session *s, const CUpti_ActivityKind *kinds, int count)
{
    for (int i = 0; i < count; i++)
        if (is_wanted(s, kinds[i])) (void)s->cupti->cuptiActivityDisable(kinds[i]);
}

static void close_calls(void)
{
    atomic_store(&kpti_session_calls, NULL);
    kpti_callback_drain();
}

/* Connects to CUPTI. From here on the program's calls are recorded. */
static kpt_status attach(kpti_gpu_session *s, kpti_error *error)
{
    kpt_status status = kpti_cupti_open(&s->cupti, error);
    CUptiResult result;
    if (status != KPT_OK) return status;
    kpti_calls_learn(s->cupti);
    result = s->cupti->cuptiSubscribe(&s->subscriber, kpti_callback, NULL);
    if (result != CUPTI_SUCCESS) return refuse(s->cupti, result, "accept a subscriber", error);
    kpti_injection_nvtx(s->cupti->path);
    (void)s->cupti->cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    kpti_unix_clock_begin(&s->clock, s->cupti);
    result = s->cupti->cuptiActivityRegisterCallbacks(kpti_buffer_requested, kpti_buffer_completed);
    if (result != CUPTI_SUCCESS) {
        status = refuse(s->cupti, result, "register the buffer callbacks", error);
    } else {
        /* Enable the launches first, then the kernels, so that no kernel arrives without its stack. */
        s->start_time = kpti_unix_now();
        atomic_store(&kpti_session_calls, s);
        enable_callbacks(s);
        status = enable_kinds(s, error);
    }
    if (status != KPT_OK) {
        close_calls();
        (void)s->cupti->cuptiUnsubscribe(s->subscriber);
        kpti_unix_clock_end();
    }
    return status;
}

kpt_status kpti_session_start(kpti_gpu_session *s, kpti_error *error)
{
    const kpti_cuda_state cuda = kpti_cuda_look();
    kpt_status status;
    if (cuda == KPTI_CUDA_ABSENT || cuda == KPTI_CUDA_NO_GPU)
        return kpti_fail(error, KPT_E_UNSUPPORTED,
                         "the GPU or its driver is not available any more");
    if (!kpti_session_become_current(s))
        return kpti_fail(error, KPT_E_BUSY, "another GPU tracer is recording in this process");
    if (cuda == KPTI_CUDA_READY) {
        status = attach(s, error);
        if (status == KPT_OK) atomic_store(&s->state, KPT_GPU_RECORDING);
    } else {
        atomic_store(&s->state, KPT_GPU_WAITING);
        status = kpti_injection_set(error);
        if (status != KPT_OK) atomic_store(&s->state, 0);
    }
    if (status != KPT_OK) {
        kpti_session_step_down();
        kpti_session_leave_slot();
    }
    return status;
}

void kpti_session_cuda_begins(void)
{
    kpti_gpu_session *s = kpti_session_enter();
    uint32_t state = KPT_GPU_WAITING;
    if (!s) return;
    if (atomic_compare_exchange_strong(&s->state, &state, ATTACHING)) {
        s->late_status = attach(s, &s->late);
        atomic_store(&s->state, s->late_status == KPT_OK ? KPT_GPU_RECORDING : KPT_GPU_STOPPED);
    }
    kpti_session_leave();
}

/* Waits for the GPU, and for CUPTI to deliver its records. */
static void finish(kpti_gpu_session *s)
{
    const kpti_cupti *cupti = s->cupti;
    close_calls();
    s->stop_time = kpti_unix_now();
    disable_kinds(s, of_calls, OF_CALLS);
    if (!atomic_load(&s->captures)) /* waiting would invalidate a capture */
        for (int i = 0; i < KPTI_MAX_CONTEXTS; i++) {
            void *context = atomic_load(&s->contexts[i]);
            if (context) kpti_cuda_wait(context);
        }
    (void)cupti->cuptiActivityFlushAll(0);
    disable_kinds(s, of_gpu, OF_GPU);
    (void)cupti->cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    kpti_unix_clock_compare(&s->clock, cupti);
    (void)cupti->cuptiUnsubscribe(s->subscriber);
    kpti_unix_clock_end();
}

static void empty_threads(kpti_gpu_session *s)
{
    for (kpti_gpu_thread *t = kpti_launches_threads(); t; t = t->next) {
        kpti_list_free(&t->list, &s->budget);
        memset(&t->read, 0, sizeof t->read);
        kpti_list_free(&t->calls, &s->budget);
        memset(&t->calls_read, 0, sizeof t->calls_read);
        t->depth = 0;
        t->context = NULL;
    }
}

kpt_status kpti_session_stop(kpti_gpu_session *s, kpti_error *error)
{
    uint32_t state = KPT_GPU_WAITING;
    if (!atomic_compare_exchange_strong(&s->state, &state, KPT_GPU_STOPPED))
        while ((state = atomic_load(&s->state)) == ATTACHING)
            (void)sched_yield();
    kpti_injection_clear();
    if (state == KPT_GPU_RECORDING) finish(s);
    kpti_assert(!atomic_load(&kpti_session_calls)); /* no callback finds the recording any more */
    kpti_session_step_down();
    atomic_store(&s->state, KPT_GPU_STOPPED);
    if (state == KPT_GPU_RECORDING) {
        kpti_buffers_trim(s);
        kpti_join_absorb(s);
        kpti_known_count_lost(s);
        empty_threads(s);
    }
    kpti_session_leave_slot();
    if (s->late_status != KPT_OK) *error = s->late;
    return s->late_status;
}

/* CUDA does not work in the child of a process that has used it, so CUPTI makes no callbacks there. */
void kpti_session_forked(kpti_gpu_session *s)
{
    if (kpti_session_forget_owner(s)) {
        kpti_launches_forked();
        kpti_buffers_forked();
        kpti_unix_clock_end();
    }
    if (atomic_load(&s->state)) atomic_store(&s->state, KPT_GPU_STOPPED);
    kpti_record_store_forked(&s->store);
    for (int i = 0; i < KPTI_GPU_LISTS; i++)
        kpti_list_forget(&s->ready.of[i]);
    memset(&s->table, 0, sizeof s->table);
    memset(&s->stacks, 0, sizeof s->stacks);
    s->late_status = KPT_OK;
}
