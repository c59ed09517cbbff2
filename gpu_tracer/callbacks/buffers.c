/* buffers.c: see buffers.h. The memory comes from malloc, not from the host, since CUPTI may return a
 * buffer after the host is gone. The records of a buffer are read at once, on CUPTI's thread. */
#include "gpu_tracer/callbacks/buffers.h"

#include <pthread.h>

#include "gpu_tracer/records/convert.h"
#include "gpu_tracer/session/current_session.h"

/* CUPTI requests a BUFFER for each thread that calls CUDA, and for each GPU. CUPTI needs a buffer even if
 * the budget is spent: it then gets a SPILL buffer, whose records are dropped. */
enum { BUFFER = 4 << 20, SPILL = 64 << 10, ALIGN = 64, MAX_IDLE = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the idle buffers */
static uint8_t *idle[MAX_IDLE];
static int idle_count;

static uint8_t *take_idle(void)
{
    uint8_t *buffer;
    (void)pthread_mutex_lock(&lock);
    buffer = idle_count ? idle[--idle_count] : NULL;
    (void)pthread_mutex_unlock(&lock);
    return buffer;
}

static int keep_idle(uint8_t *buffer)
{
    int kept;
    (void)pthread_mutex_lock(&lock);
    kept = idle_count < MAX_IDLE;
    if (kept) idle[idle_count++] = buffer;
    (void)pthread_mutex_unlock(&lock);
    return kept;
}

void CUPTIAPI kpti_buffer_requested(uint8_t **buffer, size_t *size, size_t *most_records)
{
    kpti_gpu_session *s = kpti_session_enter();
    *most_records = 0; /* no limit */
    *size = BUFFER;
    *buffer = s ? take_idle() : NULL;
    if (!*buffer && s && kpti_budget_take(&s->budget, BUFFER)) {
        *buffer = aligned_alloc(ALIGN, BUFFER);
        if (!*buffer) kpti_budget_give(&s->budget, BUFFER);
    }
    if (!*buffer) {
        *size = SPILL;
        *buffer = aligned_alloc(ALIGN, SPILL);
    }
    if (!*buffer) *size = 0;
    if (s) kpti_session_leave();
}

void CUPTIAPI kpti_buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                    size_t size, size_t valid_size)
{
    kpti_gpu_session *s = kpti_session_enter();
    size_t dropped = 0;
    if (s) {
        if (buffer && valid_size)
            kpti_convert(s->cupti, &s->store, buffer, valid_size, size == SPILL);
        if (s->cupti->cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
            kpti_budget_drop(&s->budget, dropped);
    }
    if (size == SPILL || !s || !keep_idle(buffer)) {
        if (s && size == BUFFER) kpti_budget_give(&s->budget, BUFFER);
        free(buffer);
    }
    if (s) kpti_session_leave();
}

void kpti_buffers_trim(kpti_gpu_session *s)
{
    uint8_t *buffer;
    while ((buffer = take_idle())) {
        free(buffer);
        kpti_budget_give(&s->budget, BUFFER);
    }
}

void kpti_buffers_forked(void)
{
    (void)pthread_mutex_init(&lock, NULL);
    idle_count = 0;
}
