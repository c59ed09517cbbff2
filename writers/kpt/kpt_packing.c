#include "writers/kpt/kpt_packing.h"

#include <pthread.h>

#include "core/base/assert.h"
#include "core/base/growable_array.h"
#include "core/base/helper_thread.h"
#include "core/base/packed_words.h"

/* Of a slot: the events of a chunk. Larger chunks, of very deep stacks, are not packed in a stream. With three slots a
 * traced thread hardly ever waits. */
enum { SLOTS = 3, SLOT_BYTES = (64 + 16) << 10 };

typedef struct slot {
    kpti_kpt_chunk head;
    size_t size;
    char *events;
} slot;

/* Slots are filled and emptied in turn. Invariant: the slots from written to queued are full, and none is full when
 * ending; the first of them is being packed while is_packing. */
struct kpti_kpt_packing {
    kpti_heap heap;
    kpti_kpt_packed_fn write;
    void *ctx;
    int is_stream;
    pthread_t thread;     /* of a stream */
    pthread_mutex_t lock; /* guards the fields below; not held while a slot is packed and written */
    pthread_cond_t changed; /* threads wait for different changes, so each change wakes all */
    slot slots[SLOTS];
    uint64_t queued;
    uint64_t written;
    int ending;
    int is_packing;
    char *packed; /* this and the next two: of the thread that packs */
    uint64_t packed_capacity;
    kpti_packer packer;
};

/* Returns whether the events have a layout that packing knows. */
static int is_packable(const kpti_kpt_chunk *head, size_t size)
{
    return head->thread != KPT_CHUNK_TABLE && head->format <= KPTI_PACKED_NEWEST && size > 0 &&
           size % sizeof(uint64_t) == 0 && size / sizeof(uint64_t) <= KPTI_PACKED_MAX_WORDS;
}

/* Runs on one thread at a time. */
static kpt_status pack(kpti_kpt_packing *p, const kpti_kpt_chunk *head, const void *data,
                       size_t size)
{
    const uint32_t count = (uint32_t)(size / sizeof(uint64_t));
    kpti_kpt_chunk packed_head = *head;
    size_t packed_size;
    if (!kpti_array_reserve(&p->heap, &p->packed, &p->packed_capacity, kpti_packed_bound(count), 1))
        return p->write(p->ctx, head, data, size, size);
    packed_size = kpti_pack_words(&p->packer, data, count, p->packed);
    if (packed_size >= size) return p->write(p->ctx, head, data, size, size);
    packed_head.format |= KPTI_PACKED_FORMAT;
    return p->write(p->ctx, &packed_head, p->packed, packed_size, size);
}

/* The caller holds the lock. */
static inline int is_valid(const kpti_kpt_packing *p)
{
    return p->written <= p->queued && p->queued - p->written <= SLOTS &&
           (!p->is_packing || p->written < p->queued);
}

/* Packs and writes the oldest chunk of the queue, or waits for a change if another thread does. */
static void advance_locked(kpti_kpt_packing *p)
{
    const slot *oldest = &p->slots[p->written % SLOTS];
    kpti_assert(p->written < p->queued);
    if (p->is_packing) {
        (void)pthread_cond_wait(&p->changed, &p->lock);
        return;
    }
    p->is_packing = 1;
    (void)pthread_mutex_unlock(&p->lock);
    (void)pack(p, &oldest->head, oldest->events, oldest->size);
    (void)pthread_mutex_lock(&p->lock);
    p->written++;
    p->is_packing = 0;
    kpti_assert(is_valid(p));
    (void)pthread_cond_broadcast(&p->changed);
}

static void *run(void *packing)
{
    kpti_kpt_packing *p = packing;
    (void)pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->queued == p->written && !p->ending)
            (void)pthread_cond_wait(&p->changed, &p->lock);
        if (p->ending) break;
        advance_locked(p);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Waits until the first UNTIL chunks are written. */
static void drain_locked(kpti_kpt_packing *p, uint64_t until)
{
    while (p->written < until)
        advance_locked(p);
}

static void free_packing(kpti_kpt_packing *p)
{
    const kpti_heap heap = p->heap;
    for (int i = 0; i < SLOTS; i++)
        kpti_heap_give(&heap, p->slots[i].events, SLOT_BYTES);
    kpti_heap_give(&heap, p->packed, (size_t)p->packed_capacity);
    kpti_heap_give(&heap, p, sizeof *p);
}

/* Returns 0 if there is no memory or no thread can be created. */
static int start_queue(kpti_kpt_packing *p)
{
    for (int i = 0; i < SLOTS; i++) {
        p->slots[i].events = kpti_heap_take(&p->heap, SLOT_BYTES);
        if (!p->slots[i].events) return 0;
    }
    return kpti_own_thread_start(&p->thread, run, p) == 0;
}

static void end_lock(kpti_kpt_packing *p)
{
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
}

kpti_kpt_packing *kpti_kpt_packing_start(const kpti_heap *heap, int stream,
                                         kpti_kpt_packed_fn write, void *ctx)
{
    kpti_kpt_packing *p = kpti_heap_take_zeroed(heap, sizeof *p);
    if (!p) return NULL;
    p->heap = *heap;
    p->write = write;
    p->ctx = ctx;
    p->is_stream = stream;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->changed, NULL);
    if (!stream || start_queue(p)) return p;
    end_lock(p);
    free_packing(p);
    return NULL;
}

static void queue_locked(kpti_kpt_packing *p, const kpti_kpt_chunk *head, const void *data,
                         size_t size)
{
    slot *next;
    while (p->queued - p->written == SLOTS)
        advance_locked(p);
    next = &p->slots[p->queued % SLOTS];
    next->head = *head;
    next->size = size;
    memcpy(next->events, data, size);
    p->queued++;
    kpti_assert(is_valid(p) && !p->ending);
    (void)pthread_cond_broadcast(&p->changed);
}

kpt_status kpti_kpt_packing_put(kpti_kpt_packing *p, const kpti_kpt_chunk *head, const void *data,
                                size_t size)
{
    const int is_to_be_packed = is_packable(head, size);
    kpt_status status = KPT_OK;
    (void)pthread_mutex_lock(&p->lock);
    if (is_to_be_packed && !p->is_stream)
        status = pack(p, head, data, size);
    else if (is_to_be_packed && size <= SLOT_BYTES)
        queue_locked(p, head, data, size);
    else {
        drain_locked(p, p->queued); /* chunks of a thread are in order */
        status = p->write(p->ctx, head, data, size, size);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return status;
}

void kpti_kpt_packing_drain(kpti_kpt_packing *p)
{
    (void)pthread_mutex_lock(&p->lock);
    drain_locked(p, p->queued);
    (void)pthread_mutex_unlock(&p->lock);
}

void kpti_kpt_packing_end(kpti_kpt_packing *p)
{
    (void)pthread_mutex_lock(&p->lock);
    drain_locked(p, p->queued);
    p->ending = 1;
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    if (p->is_stream) (void)pthread_join(p->thread, NULL);
    end_lock(p);
    free_packing(p);
}

void kpti_kpt_packing_leave(kpti_kpt_packing *p)
{
    free_packing(p);
}
