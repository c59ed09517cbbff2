#include "writers/io/async_writer.h"

#include "core/base/assert.h"
#include "core/base/helper_thread.h"

/* With one slot, a call of Chrome JSON takes about 6 ns more; with two, hardly any more. */
enum { SLOTS = 3 };

typedef struct slot {
    char *buffer;
    size_t size;
} slot;

/* Slots are filled and emptied in turn. Invariant: the slots from carried to sent are full. */
struct kpti_async_writer {
    kpti_heap heap;
    size_t buffer_bytes;
    kpti_carry_fn carry;
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock;   /* guards all fields below; not held while a buffer is carried */
    pthread_cond_t changed; /* threads wait for different changes, so each change wakes all */
    slot slots[SLOTS];
    uint64_t sent;
    uint64_t carried;
    int ending;
};

/* The caller holds the lock. */
static inline int is_valid(const kpti_async_writer *w)
{
    return w->carried <= w->sent && w->sent - w->carried <= SLOTS;
}

static void *run(void *arg)
{
    kpti_async_writer *w = arg;
    (void)pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->sent == w->carried && !w->ending)
            (void)pthread_cond_wait(&w->changed, &w->lock);
        if (w->sent == w->carried) break;
        slot *next = &w->slots[w->carried % SLOTS];
        (void)pthread_mutex_unlock(&w->lock);
        w->carry(w->ctx, next->buffer, next->size);
        (void)pthread_mutex_lock(&w->lock);
        w->carried++;
        kpti_assert(is_valid(w));
        (void)pthread_cond_broadcast(&w->changed);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void free_writer(kpti_async_writer *w)
{
    kpti_heap heap = w->heap;
    kpti_assert(w->sent == w->carried);
    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
    for (int i = 0; i < SLOTS; i++)
        kpti_heap_give(&heap, w->slots[i].buffer, w->buffer_bytes);
    kpti_heap_give(&heap, w, sizeof *w);
}

kpti_async_writer *kpti_async_writer_start(const kpti_heap *heap, size_t buffer_bytes,
                                           kpti_carry_fn carry, void *ctx)
{
    int whole = 1;
    kpti_async_writer *w = kpti_heap_take(heap, sizeof *w);
    if (!w) return NULL;
    *w = (kpti_async_writer){
        .heap = *heap, .buffer_bytes = buffer_bytes, .carry = carry, .ctx = ctx};
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->changed, NULL);
    for (int i = 0; i < SLOTS; i++) {
        w->slots[i].buffer = kpti_heap_take(heap, buffer_bytes);
        whole = whole && w->slots[i].buffer;
    }
    if (whole && kpti_own_thread_start(&w->thread, run, w) == 0) return w;
    free_writer(w);
    return NULL;
}

char *kpti_async_writer_swap(kpti_async_writer *w, char *buffer, size_t size)
{
    char *empty;
    slot *next;
    kpti_assert(buffer && size && size <= w->buffer_bytes);
    (void)pthread_mutex_lock(&w->lock);
    while (w->sent - w->carried == SLOTS)
        (void)pthread_cond_wait(&w->changed, &w->lock);
    next = &w->slots[w->sent % SLOTS];
    empty = next->buffer;
    *next = (slot){buffer, size};
    w->sent++;
    kpti_assert(is_valid(w) && !w->ending && empty != buffer);
    (void)pthread_cond_broadcast(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
    return empty;
}

void kpti_async_writer_end(kpti_async_writer *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->ending = 1;
    (void)pthread_cond_broadcast(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    free_writer(w);
}
