#include "writers/io/gzip.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/helper_thread.h"
#include "writers/deflate/crc32.h"
#include "writers/deflate/deflate.h"

enum { MAX_WORKERS = 4, MIN_PART = 128 * 1024, MAX_PART = 512 * 1024 };
enum { GATHERED_BYTES = 256 * 1024 };

typedef struct worker {
    kpti_gzip *stream;
    pthread_t thread;
    const char *data; /* the worker's part of the input */
    size_t size;
    uint32_t crc;
    size_t produced;
    kpti_deflate encoder;
    char out[KPTI_DEFLATE_ROOM(MAX_PART)];
} worker;

/* The first worker is the thread that calls put. Invariant: a worker whose bit is set in busy compresses its
 * part, and no other thread accesses that worker. */
struct kpti_gzip {
    kpti_gzip_out_fn out;
    void *ctx;
    worker *workers[MAX_WORKERS];
    int worker_count; /* all except the first have their own thread */
    int wanted_count;
    int has_started;
    int has_header;
    uint32_t crc;
    uint32_t size; /* of all input, modulo 2^32 as in gzip's trailer */
    kpti_crc32_tables tables;
    size_t gathered_size;
    char gathered[GATHERED_BYTES]; /* collects small puts */
    /* guards the fields below; not held while a part is compressed */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t busy;
    int ending;
};

/* --- workers ---------------------------------------------------------------------------------- */

static void compress_part(worker *w)
{
    w->crc = kpti_crc32(&w->stream->tables, 0, w->data, w->size);
    kpti_assert(w->size <= MAX_PART);
    w->produced = kpti_deflate_part(&w->encoder, w->data, w->size, w->out);
    kpti_assert(w->produced <= sizeof w->out);
}

static void *run(void *arg)
{
    worker *w = arg;
    kpti_gzip *s = w->stream;
    uint32_t bit = 1;
    (void)pthread_mutex_lock(&s->lock);
    for (int i = 0; s->workers[i] != w; i++)
        bit <<= 1;
    for (;;) {
        while (!(s->busy & bit) && !s->ending)
            (void)pthread_cond_wait(&s->changed, &s->lock);
        if (!(s->busy & bit)) break;
        (void)pthread_mutex_unlock(&s->lock);
        compress_part(w);
        (void)pthread_mutex_lock(&s->lock);
        s->busy &= ~bit;
        (void)pthread_cond_broadcast(&s->changed);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static worker *new_worker(kpti_gzip *s)
{
    worker *w = malloc(sizeof *w); /* not calloc: small files do not touch most of an encoder */
    if (w) w->stream = s;
    return w;
}

/* If a thread cannot be created, there is one worker less. */
static void start_threads(kpti_gzip *s)
{
    s->has_started = 1;
    while (s->worker_count < s->wanted_count) {
        worker *w = new_worker(s);
        int error;
        if (!w) return;
        (void)pthread_mutex_lock(&s->lock); /* so that the thread finds itself in workers */
        s->workers[s->worker_count] = w;
        error = kpti_own_thread_start(&w->thread, run, w);
        (void)pthread_mutex_unlock(&s->lock);
        if (error) {
            free(w);
            return;
        }
        s->worker_count++;
    }
}

/* --- the stream ------------------------------------------------------------------------------- */

static void put_header(kpti_gzip *s)
{
    static const char header[10] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    if (!s->has_header) s->out(s->ctx, header, sizeof header);
    s->has_header = 1;
}

/* Splits the input among the workers. Returns the number of parts. */
static int share_out(kpti_gzip *s, const char *data, size_t size)
{
    size_t parts = size / MIN_PART;
    size_t at = 0;
    if (parts > (size_t)s->worker_count) parts = (size_t)s->worker_count;
    if (parts == 0) parts = 1;
    for (size_t i = 0; i < parts; i++) {
        const size_t end = size * (i + 1) / parts;
        s->workers[i]->data = data + at;
        s->workers[i]->size = end - at;
        at = end;
    }
    kpti_assert(at == size && s->worker_count >= 1 && s->worker_count <= MAX_WORKERS);
    return (int)parts;
}

static void compress_piece(kpti_gzip *s, const char *data, size_t size)
{
    const int parts = share_out(s, data, size);
    if (parts > 1) {
        (void)pthread_mutex_lock(&s->lock);
        kpti_assert(!s->busy && !s->ending); /* the workers have finished the previous piece */
        s->busy = (1u << parts) - 2;         /* all except the first */
        (void)pthread_cond_broadcast(&s->changed);
        (void)pthread_mutex_unlock(&s->lock);
    }
    compress_part(s->workers[0]);
    for (int i = 0; i < parts; i++) {
        worker *w = s->workers[i];
        (void)pthread_mutex_lock(&s->lock);
        while (s->busy & 1u << i)
            (void)pthread_cond_wait(&s->changed, &s->lock);
        (void)pthread_mutex_unlock(&s->lock);
        s->out(s->ctx, w->out, w->produced);
        s->crc = kpti_crc32_join(s->crc, w->crc, w->size);
    }
    s->size += (uint32_t)size;
}

static void compress(kpti_gzip *s, const char *data, size_t size)
{
    put_header(s);
    if (!s->has_started && size >= (size_t)2 * MIN_PART) start_threads(s);
    while (size) {
        const size_t max = (size_t)MAX_PART * (size_t)s->worker_count;
        const size_t step = size < max ? size : max;
        compress_piece(s, data, step);
        data += step;
        size -= step;
    }
}

static void compress_gathered(kpti_gzip *s)
{
    const size_t size = s->gathered_size;
    s->gathered_size = 0;
    if (size) compress(s, s->gathered, size);
}

void kpti_gzip_put(kpti_gzip *s, const char *data, size_t size)
{
    if (size > GATHERED_BYTES - s->gathered_size) compress_gathered(s);
    if (size >= GATHERED_BYTES) {
        compress(s, data, size);
        return;
    }
    if (size) memcpy(s->gathered + s->gathered_size, data, size);
    s->gathered_size += size;
    kpti_assert(s->gathered_size <= GATHERED_BYTES);
}

static void put_end(kpti_gzip *s)
{
    char end[10] = {3, 0}; /* an empty last block, the checksum, the size */
    for (int i = 0; i < 4; i++) {
        end[2 + i] = (char)(s->crc >> 8 * i);
        end[6 + i] = (char)(s->size >> 8 * i);
    }
    put_header(s);
    s->out(s->ctx, end, sizeof end);
}

static int processor_count(void)
{
    cpu_set_t processors;
    return sched_getaffinity(0, sizeof processors, &processors) ? 1 : CPU_COUNT(&processors);
}

int kpti_gzip_open(kpti_gzip **stream, kpti_gzip_out_fn out, void *ctx)
{
    const int processors = processor_count();
    kpti_gzip *s = calloc(1, sizeof *s);
    if (!s) return ENOMEM;
    s->workers[0] = new_worker(s);
    if (!s->workers[0]) {
        free(s);
        return ENOMEM;
    }
    s->worker_count = 1;
    s->wanted_count = processors < MAX_WORKERS ? processors : MAX_WORKERS;
    s->out = out;
    s->ctx = ctx;
    kpti_crc32_make(&s->tables);
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    *stream = s;
    return 0;
}

void kpti_gzip_close(kpti_gzip *s, int wanted)
{
    if (wanted) {
        compress_gathered(s);
        put_end(s);
    }
    (void)pthread_mutex_lock(&s->lock);
    s->ending = 1;
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    for (int i = 1; i < s->worker_count; i++)
        (void)pthread_join(s->workers[i]->thread, NULL);
    for (int i = 0; i < s->worker_count; i++)
        free(s->workers[i]);
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}
