#include "writers/io/parallel_gzip.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#include "core/base/helper_thread.h"

/* On traces (docs/torch.md) these are 0.82 of level 1's bytes, as level 6's are, in 2.4 of its time; level 6
 * takes 2.7, and Python's own level 9 11. */
enum { LEVEL = 6, GOOD = 4, LAZY = 32, NICE = 128, CHAIN = 32, MEMORY = 8 };
enum { RAW_WINDOW_BITS = -15, WINDOW_BYTES = 32 * 1024 };
enum { MOST_MEMBERS = 4, LEAST_PART = 64 * 1024, MOST_PART = 512 * 1024 };
enum {
    OUT_BYTES = MOST_PART + MOST_PART / 8 + 1024
}; /* zlib needs at most five bytes more for each 16 kB */

typedef struct member {
    kpti_gzip_team *team;
    pthread_t thread;
    z_stream z;
    const char *data; /* its part of what is put */
    size_t size;
    const char *dictionary;
    size_t dictionary_size;
    uint32_t crc;
    size_t produced;
    char out[OUT_BYTES];
} member;

/* The first member is the thread that puts. Invariant: a member whose bit is set in busy reads its part, and no
 * other thread touches it. */
struct kpti_gzip_team {
    kpti_gzip_out_fn out;
    void *ctx;
    member *members[MOST_MEMBERS];
    int member_count;
    int thread_count; /* members that have a thread of their own, from the second on */
    int has_started;
    int has_header;
    uint32_t crc;
    uint32_t size; /* of all that was put, as gzip has it */
    size_t window_size;
    char window[WINDOW_BYTES]; /* the last that was put */
    pthread_mutex_t lock;      /* of what is below; not held while a part is compressed */
    pthread_cond_t changed;
    uint32_t busy;
    int ending;
};

/* --- members ---------------------------------------------------------------------------------- */

static void compress_part(member *m)
{
    (void)deflateReset(&m->z); /* to the level's own values */
    (void)deflateTune(&m->z, GOOD, LAZY, NICE, CHAIN);
    if (m->dictionary_size)
        (void)deflateSetDictionary(&m->z, (const Bytef *)m->dictionary, (uInt)m->dictionary_size);
    m->crc = (uint32_t)crc32(0, (const Bytef *)m->data, (uInt)m->size);
    m->z.next_in = (const Bytef *)m->data;
    m->z.avail_in = (uInt)m->size;
    m->z.next_out = (Bytef *)m->out;
    m->z.avail_out = OUT_BYTES;
    (void)deflate(&m->z, Z_SYNC_FLUSH); /* can't fail: the stream is ours, and room is there */
    m->produced = OUT_BYTES - m->z.avail_out;
}

static void *run(void *arg)
{
    member *m = arg;
    kpti_gzip_team *t = m->team;
    uint32_t bit = 1;
    for (int i = 0; t->members[i] != m; i++)
        bit <<= 1;
    (void)pthread_mutex_lock(&t->lock);
    for (;;) {
        while (!(t->busy & bit) && !t->ending)
            (void)pthread_cond_wait(&t->changed, &t->lock);
        if (!(t->busy & bit)) break;
        (void)pthread_mutex_unlock(&t->lock);
        compress_part(m);
        (void)pthread_mutex_lock(&t->lock);
        t->busy &= ~bit;
        (void)pthread_cond_broadcast(&t->changed);
    }
    (void)pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* Returns whether there was memory for it. */
static int add_member(kpti_gzip_team *t)
{
    member *m = calloc(1, sizeof *m);
    if (!m) return 0;
    m->team = t;
    if (deflateInit2(&m->z, LEVEL, Z_DEFLATED, RAW_WINDOW_BITS, MEMORY, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        free(m);
        return 0;
    }
    t->members[t->member_count++] = m;
    return 1;
}

/* A thread that can't be had is one less. */
static void start_threads(kpti_gzip_team *t)
{
    t->has_started = 1;
    while (t->thread_count + 1 < t->member_count) {
        member *next = t->members[t->thread_count + 1];
        if (kpti_own_thread_start(&next->thread, run, next) != 0) return;
        t->thread_count++;
    }
}

/* --- the stream ------------------------------------------------------------------------------- */

static void put_header(kpti_gzip_team *t)
{
    static const char header[10] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    if (!t->has_header) t->out(t->ctx, header, sizeof header);
    t->has_header = 1;
}

static void keep_window(kpti_gzip_team *t, const char *data, size_t size)
{
    size_t kept = size < WINDOW_BYTES ? WINDOW_BYTES - size : 0;
    if (kept > t->window_size) kept = t->window_size;
    if (size > WINDOW_BYTES) {
        data += size - WINDOW_BYTES;
        size = WINDOW_BYTES;
    }
    memmove(t->window, t->window + t->window_size - kept, kept);
    memcpy(t->window + kept, data, size);
    t->window_size = kept + size;
}

/* Gives the members their parts of what is put. Returns how many there are. */
static int share_out(kpti_gzip_team *t, const char *data, size_t size)
{
    const size_t most = (size_t)t->thread_count + 1;
    size_t parts = size / LEAST_PART;
    size_t at = 0;
    if (parts > most) parts = most;
    if (parts == 0) parts = 1;
    for (size_t i = 0; i < parts; i++) {
        member *m = t->members[i];
        const size_t end = size * (i + 1) / parts;
        m->data = data + at;
        m->size = end - at;
        m->dictionary_size = at < WINDOW_BYTES ? at : WINDOW_BYTES;
        m->dictionary = m->data - m->dictionary_size;
        at = end;
    }
    t->members[0]->dictionary = t->window;
    t->members[0]->dictionary_size = t->window_size;
    return (int)parts;
}

static void put_piece(kpti_gzip_team *t, const char *data, size_t size)
{
    const int parts = share_out(t, data, size);
    if (parts > 1) {
        (void)pthread_mutex_lock(&t->lock);
        t->busy = (1u << parts) - 2; /* all but the first */
        (void)pthread_cond_broadcast(&t->changed);
        (void)pthread_mutex_unlock(&t->lock);
    }
    compress_part(t->members[0]);
    for (int i = 0; i < parts; i++) {
        member *m = t->members[i];
        (void)pthread_mutex_lock(&t->lock);
        while (t->busy & 1u << i)
            (void)pthread_cond_wait(&t->changed, &t->lock);
        (void)pthread_mutex_unlock(&t->lock);
        t->out(t->ctx, m->out, m->produced);
        t->crc = (uint32_t)crc32_combine(t->crc, m->crc, (z_off_t)m->size);
    }
    keep_window(t, data, size);
    t->size += (uint32_t)size;
}

void kpti_gzip_team_put(kpti_gzip_team *t, const char *data, size_t size)
{
    put_header(t);
    if (!t->has_started && size >= (size_t)2 * LEAST_PART) start_threads(t);
    while (size) {
        const size_t most = (size_t)MOST_PART * (size_t)(t->thread_count + 1);
        const size_t step = size < most ? size : most;
        put_piece(t, data, step);
        data += step;
        size -= step;
    }
}

static void put_end(kpti_gzip_team *t)
{
    char end[10] = {3, 0}; /* an empty last block, the checksum, the size */
    for (int i = 0; i < 4; i++) {
        end[2 + i] = (char)(t->crc >> 8 * i);
        end[6 + i] = (char)(t->size >> 8 * i);
    }
    put_header(t);
    t->out(t->ctx, end, sizeof end);
}

static void free_team(kpti_gzip_team *t)
{
    for (int i = 0; i < t->member_count; i++) {
        (void)deflateEnd(&t->members[i]->z);
        free(t->members[i]);
    }
    (void)pthread_cond_destroy(&t->changed);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}

int kpti_gzip_team_open(kpti_gzip_team **team, kpti_gzip_out_fn out, void *ctx)
{
    cpu_set_t processors;
    int count = 1;
    kpti_gzip_team *made;
    if (sched_getaffinity(0, sizeof processors, &processors) == 0) count = CPU_COUNT(&processors);
    if (count < 2) return EAGAIN;
    made = calloc(1, sizeof *made);
    if (!made) return ENOMEM;
    made->out = out;
    made->ctx = ctx;
    (void)pthread_mutex_init(&made->lock, NULL);
    (void)pthread_cond_init(&made->changed, NULL);
    while (made->member_count < count && made->member_count < MOST_MEMBERS && add_member(made)) {
    }
    if (!made->member_count) {
        free_team(made);
        return ENOMEM;
    }
    *team = made;
    return 0;
}

void kpti_gzip_team_close(kpti_gzip_team *t, int wanted)
{
    if (wanted) put_end(t);
    (void)pthread_mutex_lock(&t->lock);
    t->ending = 1;
    (void)pthread_cond_broadcast(&t->changed);
    (void)pthread_mutex_unlock(&t->lock);
    for (int i = 1; i <= t->thread_count; i++)
        (void)pthread_join(t->members[i]->thread, NULL);
    free_team(t);
}
