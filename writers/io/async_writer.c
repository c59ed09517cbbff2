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
struct kpti_courier {
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
static inline int is_valid(const kpti_courier *c)
{
    return c->carried <= c->sent && c->sent - c->carried <= SLOTS;
}

static void *run(void *arg)
{
    kpti_courier *c = arg;
    (void)pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->sent == c->carried && !c->ending)
            (void)pthread_cond_wait(&c->changed, &c->lock);
        if (c->sent == c->carried) break;
        slot *next = &c->slots[c->carried % SLOTS];
        (void)pthread_mutex_unlock(&c->lock);
        c->carry(c->ctx, next->buffer, next->size);
        (void)pthread_mutex_lock(&c->lock);
        c->carried++;
        kpti_assert(is_valid(c));
        (void)pthread_cond_broadcast(&c->changed);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void free_courier(kpti_courier *c)
{
    kpti_heap heap = c->heap;
    kpti_assert(c->sent == c->carried);
    (void)pthread_cond_destroy(&c->changed);
    (void)pthread_mutex_destroy(&c->lock);
    for (int i = 0; i < SLOTS; i++)
        kpti_heap_give(&heap, c->slots[i].buffer, c->buffer_bytes);
    kpti_heap_give(&heap, c, sizeof *c);
}

kpti_courier *kpti_courier_start(const kpti_heap *heap, size_t buffer_bytes, kpti_carry_fn carry,
                                 void *ctx)
{
    int whole = 1;
    kpti_courier *c = kpti_heap_take(heap, sizeof *c);
    if (!c) return NULL;
    *c = (kpti_courier){.heap = *heap, .buffer_bytes = buffer_bytes, .carry = carry, .ctx = ctx};
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_cond_init(&c->changed, NULL);
    for (int i = 0; i < SLOTS; i++) {
        c->slots[i].buffer = kpti_heap_take(heap, buffer_bytes);
        whole = whole && c->slots[i].buffer;
    }
    if (whole && kpti_own_thread_start(&c->thread, run, c) == 0) return c;
    free_courier(c);
    return NULL;
}

char *kpti_courier_swap(kpti_courier *c, char *buffer, size_t size)
{
    char *empty;
    slot *next;
    kpti_assert(buffer && size && size <= c->buffer_bytes);
    (void)pthread_mutex_lock(&c->lock);
    while (c->sent - c->carried == SLOTS)
        (void)pthread_cond_wait(&c->changed, &c->lock);
    next = &c->slots[c->sent % SLOTS];
    empty = next->buffer;
    *next = (slot){buffer, size};
    c->sent++;
    kpti_assert(is_valid(c) && !c->ending && empty != buffer);
    (void)pthread_cond_broadcast(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
    return empty;
}

void kpti_courier_end(kpti_courier *c)
{
    (void)pthread_mutex_lock(&c->lock);
    c->ending = 1;
    (void)pthread_cond_broadcast(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
    (void)pthread_join(c->thread, NULL);
    free_courier(c);
}
