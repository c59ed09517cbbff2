#include "writers/kpt/kpt_packing.h"

#include <pthread.h>

#include "core/base/assert.h"
#include "core/base/growable_array.h"
#include "core/base/helper_thread.h"
#include "core/base/packed_words.h"

enum {
    BUFFER_BYTES =
        (64 + 16) << 10, /* larger chunks, of very deep stacks, are not packed in a stream */
    QUEUE_CHUNKS = 8     /* from this length on a thread that puts one packs the oldest first */
};

/* The events of a chunk. */
typedef struct buffer {
    uint32_t users; /* the thread that fills it, the queue, and threads that pack it */
    kpti_kpt_chunk head;
    size_t size;
    char *events; /* NULL until it is needed */
} buffer;

/* What a thread needs to pack; of that thread while it is used. */
typedef struct packer {
    int is_used;
    kpti_packer *places; /* NULL until it is needed */
    char *packed;
    uint64_t packed_capacity;
} packer;

/* What to write of a chunk. */
typedef struct packed_chunk {
    kpti_kpt_chunk head;
    const void *data;
    size_t size;
} packed_chunk;

/* Invariant: the chunks from written to queued are in the queue, each in a buffer of its own, and there is none when
 * ending; the first of them is being written while is_writing. Several threads may pack it at a time. */
struct kpti_kpt_packing {
    kpti_heap heap;
    kpti_kpt_packed_fn write;
    void *ctx;
    int is_stream;
    pthread_t thread; /* of a stream */
    pthread_mutex_t
        lock; /* guards the fields below; not held while a stream packs, writes or copies */
    pthread_cond_t filled; /* the thread of the stream waits for a chunk, or the end */
    pthread_cond_t
        changed; /* the others, and it, wait until a chunk is written or a packer is free */
    buffer buffers[KPTI_KPT_BUFFERS];
    packer packers[KPTI_KPT_PACKERS];
    buffer *queue[KPTI_KPT_BUFFERS]; /* chunk N is at N % KPTI_KPT_BUFFERS */
    uint64_t queued;
    uint64_t written;
    int is_writing;
    int ending;
};

/* Returns whether the events have a layout that packing knows. */
static int is_packable(const kpti_kpt_chunk *head, size_t size)
{
    return head->thread != KPT_CHUNK_TABLE && head->format <= KPTI_PACKED_NEWEST && size > 0 &&
           size % sizeof(uint64_t) == 0 && size / sizeof(uint64_t) <= KPTI_PACKED_MAX_WORDS;
}

/* Returns 0 if there is no memory. */
static int reserve(const kpti_heap *heap, packer *own, uint32_t count)
{
    if (!own->places) own->places = kpti_heap_take(heap, sizeof *own->places);
    return own->places && kpti_array_reserve(heap, &own->packed, &own->packed_capacity,
                                             kpti_packed_bound(count), 1);
}

/* A chunk that cannot be packed, or would not become smaller, is returned as it is. */
static packed_chunk pack(const kpti_heap *heap, packer *own, const kpti_kpt_chunk *head,
                         const void *data, size_t size)
{
    const uint32_t count = (uint32_t)(size / sizeof(uint64_t));
    packed_chunk result = {*head, data, size};
    size_t packed_size;
    if (!reserve(heap, own, count)) return result;
    packed_size = kpti_pack_words(own->places, data, count, own->packed);
    if (packed_size >= size) return result;
    result.head.format |= KPTI_PACKED_FORMAT;
    result.data = own->packed;
    result.size = packed_size;
    return result;
}

/* The caller holds the lock. */
static inline int is_valid(const kpti_kpt_packing *p)
{
    return p->written <= p->queued && p->queued - p->written <= KPTI_KPT_BUFFERS &&
           (!p->is_writing || p->written < p->queued);
}

/* Returns NULL if all are used. */
static packer *find_packer_locked(kpti_kpt_packing *p)
{
    for (int i = 0; i < KPTI_KPT_PACKERS; i++)
        if (!p->packers[i].is_used) return &p->packers[i];
    return NULL;
}

/* Returns NULL if all are used. The first that is free: so few have memory. */
static buffer *find_buffer_locked(kpti_kpt_packing *p)
{
    for (int i = 0; i < KPTI_KPT_BUFFERS; i++)
        if (!p->buffers[i].users) return &p->buffers[i];
    return NULL;
}

static void write_oldest_locked(kpti_kpt_packing *p, const packed_chunk *chunk, size_t event_bytes)
{
    p->is_writing = 1;
    (void)pthread_mutex_unlock(&p->lock);
    (void)p->write(p->ctx, &chunk->head, chunk->data, chunk->size, event_bytes);
    (void)pthread_mutex_lock(&p->lock);
    p->queue[p->written % KPTI_KPT_BUFFERS]->users--;
    p->written++;
    p->is_writing = 0;
    kpti_assert(is_valid(p));
}

/* Packs the oldest chunk of the queue, though other threads may be doing so: the system may not run them for long. The
 * first that has packed it writes it. Waits for a change only if another thread writes it, or if all packers are used. */
static void advance_locked(kpti_kpt_packing *p)
{
    const uint64_t number = p->written;
    buffer *const oldest = p->queue[number % KPTI_KPT_BUFFERS];
    packer *const own = p->is_writing ? NULL : find_packer_locked(p);
    packed_chunk chunk;
    kpti_assert(number < p->queued);
    if (!own) {
        (void)pthread_cond_wait(&p->changed, &p->lock);
        return;
    }
    own->is_used = 1;
    oldest->users++;
    (void)pthread_mutex_unlock(&p->lock);
    chunk = pack(&p->heap, own, &oldest->head, oldest->events, oldest->size);
    (void)pthread_mutex_lock(&p->lock);
    if (p->written == number && !p->is_writing) write_oldest_locked(p, &chunk, oldest->size);
    oldest->users--;
    own->is_used = 0;
    (void)pthread_cond_broadcast(&p->changed);
}

static void *run(void *packing)
{
    kpti_kpt_packing *p = packing;
    (void)pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->queued == p->written && !p->ending)
            (void)pthread_cond_wait(&p->filled, &p->lock);
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
    for (int i = 0; i < KPTI_KPT_BUFFERS; i++)
        kpti_heap_give(&heap, p->buffers[i].events, BUFFER_BYTES);
    for (int i = 0; i < KPTI_KPT_PACKERS; i++) {
        kpti_heap_give(&heap, p->packers[i].places, sizeof *p->packers[i].places);
        kpti_heap_give(&heap, p->packers[i].packed, (size_t)p->packers[i].packed_capacity);
    }
    kpti_heap_give(&heap, p, sizeof *p);
}

static void end_lock(kpti_kpt_packing *p)
{
    (void)pthread_cond_destroy(&p->filled);
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
    (void)pthread_cond_init(&p->filled, NULL);
    (void)pthread_cond_init(&p->changed, NULL);
    if (!stream || kpti_own_thread_start(&p->thread, run, p) == 0) return p;
    end_lock(p);
    free_packing(p);
    return NULL;
}

/* Returns a buffer for the caller to fill, or NULL if all are used though the queue is empty. If the queue is long, the
 * caller makes it shorter, or lets it grow where it would wait. */
static buffer *take_buffer_locked(kpti_kpt_packing *p)
{
    for (;;) {
        const int can_advance = !p->is_writing && find_packer_locked(p);
        const uint64_t length = p->queued - p->written;
        buffer *const free_one =
            length < QUEUE_CHUNKS || !can_advance ? find_buffer_locked(p) : NULL;
        if (free_one) {
            free_one->users = 1;
            return free_one;
        }
        if (!length) return NULL;
        advance_locked(p);
    }
}

/* The caller holds the lock, which is not held while the events are copied: the chunks of one thread come one after the
 * other. Returns 0 if there is no buffer. */
static int queue_locked(kpti_kpt_packing *p, const kpti_kpt_chunk *head, const void *data,
                        size_t size)
{
    buffer *const own = take_buffer_locked(p);
    int is_filled;
    if (!own) return 0;
    (void)pthread_mutex_unlock(&p->lock);
    if (!own->events) own->events = kpti_heap_take(&p->heap, BUFFER_BYTES);
    is_filled = own->events != NULL;
    if (is_filled) {
        own->head = *head;
        own->size = size;
        memcpy(own->events, data, size);
    }
    (void)pthread_mutex_lock(&p->lock);
    kpti_assert(own->users == 1 && !p->ending);
    if (!is_filled) {
        own->users = 0;
        return 0;
    }
    p->queue[p->queued % KPTI_KPT_BUFFERS] = own;
    p->queued++;
    kpti_assert(is_valid(p));
    return 1;
}

static kpt_status put_to_stream(kpti_kpt_packing *p, const kpti_kpt_chunk *head, const void *data,
                                size_t size)
{
    int is_queued;
    (void)pthread_mutex_lock(&p->lock);
    is_queued =
        size <= BUFFER_BYTES && is_packable(head, size) && queue_locked(p, head, data, size);
    if (!is_queued) drain_locked(p, p->queued); /* chunks of a thread are in order */
    (void)pthread_mutex_unlock(&p->lock);
    if (!is_queued) return p->write(p->ctx, head, data, size, size);
    (void)pthread_cond_signal(&p->filled);
    return KPT_OK;
}

kpt_status kpti_kpt_packing_put(kpti_kpt_packing *p, const kpti_kpt_chunk *head, const void *data,
                                size_t size)
{
    packed_chunk chunk = {*head, data, size};
    kpt_status status;
    if (p->is_stream) return put_to_stream(p, head, data, size);
    (void)pthread_mutex_lock(&p->lock);
    if (is_packable(head, size)) chunk = pack(&p->heap, &p->packers[0], head, data, size);
    status = p->write(p->ctx, &chunk.head, chunk.data, chunk.size, size);
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
    (void)pthread_cond_signal(&p->filled);
    (void)pthread_mutex_unlock(&p->lock);
    if (p->is_stream) (void)pthread_join(p->thread, NULL);
    end_lock(p);
    free_packing(p);
}

void kpti_kpt_packing_leave(kpti_kpt_packing *p)
{
    free_packing(p);
}
