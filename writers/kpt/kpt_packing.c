#include "writers/kpt/kpt_packing.h"

#include <pthread.h>

#include "core/base/growable_array.h"
#include "core/base/packed_words.h"
#include "writers/io/async_writer.h"

/* Of a buffer of the courier: the head of a chunk, and its events. Larger chunks, of very deep stacks, are not packed in
 * a stream. */
enum { BUFFER_BYTES = (64 + 16) << 10 };

struct kpti_kpt_packing {
    kpti_heap heap;
    kpti_kpt_packed_fn write;
    void *ctx;
    pthread_mutex_t lock;  /* guards buffer, and the fields below it if there is no courier */
    kpti_courier *courier; /* of a stream */
    char *buffer;          /* for the courier's next chunk */
    char *packed;          /* of the thread that packs */
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

/* A kpti_carry_fn. */
static void carry(void *packing, const char *data, size_t size)
{
    kpti_kpt_chunk head;
    memcpy(&head, data, sizeof head);
    (void)pack(packing, &head, data + sizeof head, size - sizeof head);
}

static void free_packing(kpti_kpt_packing *p)
{
    const kpti_heap heap = p->heap;
    kpti_heap_give(&heap, p->buffer, BUFFER_BYTES);
    kpti_heap_give(&heap, p->packed, (size_t)p->packed_capacity);
    kpti_heap_give(&heap, p, sizeof *p);
}

kpti_kpt_packing *kpti_kpt_packing_start(const kpti_heap *heap, int stream,
                                         kpti_kpt_packed_fn write, void *ctx)
{
    kpti_kpt_packing *p = kpti_heap_take_zeroed(heap, sizeof *p);
    if (!p) return NULL;
    p->heap = *heap;
    p->write = write;
    p->ctx = ctx;
    if (stream) p->buffer = kpti_heap_take(heap, BUFFER_BYTES);
    if (p->buffer) p->courier = kpti_courier_start(heap, BUFFER_BYTES, carry, p);
    if (stream && !p->courier) {
        free_packing(p);
        return NULL;
    }
    (void)pthread_mutex_init(&p->lock, NULL);
    return p;
}

static kpt_status put_locked(kpti_kpt_packing *p, const kpti_kpt_chunk *head, const void *data,
                             size_t size)
{
    if (is_packable(head, size) && !p->courier) return pack(p, head, data, size);
    if (is_packable(head, size) && size <= BUFFER_BYTES - sizeof *head) {
        memcpy(p->buffer, head, sizeof *head);
        memcpy(p->buffer + sizeof *head, data, size);
        p->buffer = kpti_courier_swap(p->courier, p->buffer, sizeof *head + size);
        return KPT_OK;
    }
    kpti_kpt_packing_drain(p); /* chunks of a thread are in order */
    return p->write(p->ctx, head, data, size, size);
}

kpt_status kpti_kpt_packing_put(kpti_kpt_packing *p, const kpti_kpt_chunk *head, const void *data,
                                size_t size)
{
    kpt_status status;
    (void)pthread_mutex_lock(&p->lock);
    status = put_locked(p, head, data, size);
    (void)pthread_mutex_unlock(&p->lock);
    return status;
}

void kpti_kpt_packing_drain(kpti_kpt_packing *p)
{
    if (p->courier) kpti_courier_drain(p->courier);
}

void kpti_kpt_packing_end(kpti_kpt_packing *p)
{
    if (p->courier) kpti_courier_end(p->courier);
    (void)pthread_mutex_destroy(&p->lock);
    free_packing(p);
}

void kpti_kpt_packing_leave(kpti_kpt_packing *p)
{
    if (p->courier) kpti_courier_leave(p->courier);
    free_packing(p);
}
