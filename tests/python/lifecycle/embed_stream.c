/* embed_stream.c: a stream of chunks while threads are born and die, one flushes and another takes
 * snapshots; built with ThreadSanitizer as well. KPT_CYCLES says how long. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/python/lifecycle/embed.h"

enum { BREEDERS = 8, TICKS = 30 };

static const char program[] =
    "import threading, sys\n"
    "sys.setswitchinterval(1e-4)\n"
    "def tick(n): return n\n"
    "def short_life():\n"
    "    for i in range(%d): tick(i); len('x')\n"
    "def breed():\n"
    "    for i in range(%u):\n"
    "        t = threading.Thread(target=short_life); t.start(); t.join()\n"
    "breeders = [threading.Thread(target=breed) for i in range(%d)]\n"
    "for t in breeders: t.start()\n";

/* What a sink was given. Its callbacks come from any thread. */
typedef struct kept {
    pthread_mutex_t lock;
    kpt_chunk *chunks;
    size_t count;
    size_t capacity;
    size_t next;  /* that is loaded */
    uint64_t sum; /* of all words, so that all are read */
} kept;

static void append_locked(kept *k, const kpt_chunk *chunk)
{
    void *bytes = malloc(chunk->size_bytes + 1);
    CHECK(bytes, "no memory");
    memcpy(bytes, chunk->data, chunk->size_bytes);
    if (k->count == k->capacity) {
        k->capacity = k->capacity ? 2 * k->capacity : 64;
        k->chunks = realloc(k->chunks, k->capacity * sizeof *k->chunks);
        CHECK(k->chunks, "no memory");
    }
    k->chunks[k->count] = *chunk;
    k->chunks[k->count++].data = bytes;
}

static kpt_status keep(void *ctx, const kpt_chunk *chunk)
{
    kept *k = ctx;
    pthread_mutex_lock(&k->lock);
    append_locked(k, chunk);
    pthread_mutex_unlock(&k->lock);
    return KPT_OK;
}

/* Reads all, keeps nothing, and refuses now and then. */
static kpt_status look(void *ctx, const kpt_chunk *chunk)
{
    kept *k = ctx;
    const uint64_t *words = chunk->data;
    uint64_t sum = 0;
    size_t seen;
    for (uint64_t i = 0; i < chunk->size_bytes / sizeof *words; i++)
        sum += words[i];
    pthread_mutex_lock(&k->lock);
    k->sum += sum;
    seen = ++k->count;
    pthread_mutex_unlock(&k->lock);
    return seen % 5 ? KPT_OK : KPT_E_IO;
}

static kpt_status next_kept(void *ctx, kpt_chunk *out)
{
    kept *k = ctx;
    if (k->next == k->count) return KPT_DECLINED;
    *out = k->chunks[k->next++];
    return KPT_OK;
}

/* The host serialises its control calls. */
static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static atomic_int ending;
static lc_tracer *whole;
static lc_tracer *ring;

static void *flush(void *unused)
{
    (void)unused;
    while (!atomic_load(&ending)) {
        pthread_mutex_lock(&control);
        CHECK(lc_flush(whole) == KPT_OK && lc_flush(ring) == KPT_OK, "flush");
        pthread_mutex_unlock(&control);
        lc_sleep_ms(1);
    }
    return NULL;
}

static void take_snapshots(uint32_t cycles)
{
    for (uint32_t i = 0; i < cycles; i++) {
        lc_result result;
        pthread_mutex_lock(&control);
        CHECK(lc_snapshot(i % 2 ? whole : ring, &result) == KPT_OK, "%d", result.status);
        pthread_mutex_unlock(&control);
        CHECK(!result.broken, "snapshot %u: %s", i, result.why);
        lc_sleep_ms(1);
    }
}

/* Every call is in the stream, once. */
static void check_stream(kept *k, uint64_t ticks)
{
    lc_tracer *loaded = lc_load(next_kept, k);
    lc_result result;
    CHECK(loaded, "%s", lc_why());
    CHECK(lc_deliver(loaded, &result) == KPT_OK, "deliver");
    CHECK(!result.broken, "%s", result.why);
    CHECK(result.dropped == 0, "%llu dropped", (unsigned long long)result.dropped);
    CHECK(result.ticks == ticks, "%llu ticks of %llu", (unsigned long long)result.ticks,
          (unsigned long long)ticks);
    CHECK(lc_destroy(loaded) == KPT_OK, "destroy");
    for (size_t i = 0; i < k->count; i++)
        free((void *)k->chunks[i].data);
    free(k->chunks);
}

void run_stream(void)
{
    enum { RING_BYTES = 1 << 15 };
    static kept all = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static kept some = {.lock = PTHREAD_MUTEX_INITIALIZER};
    const uint32_t cycles = embed_number("KPT_CYCLES", 30);
    kpt_chunk_sink sink = {sizeof sink, KPT_CHUNKS_WHOLE, 1, keep, &all};
    kpt_chunk_sink looking = {sizeof looking, 0, 1, look, &some};
    char text[sizeof program + 64];
    pthread_t flusher;
    void *state;
    py.initialize(0);
    whole = lc_make_streaming(&sink, 0);
    ring = lc_make_streaming(&looking, RING_BYTES);
    CHECK(whole && ring, "%s", lc_why());
    (void)snprintf(text, sizeof text, program, TICKS, cycles, BREEDERS);
    CHECK(py.run(text) == 0, "the program");
    state = py.save();
    CHECK(pthread_create(&flusher, NULL, flush, NULL) == 0, "pthread_create");
    take_snapshots(cycles);
    py.restore(state);
    CHECK(py.run("for t in breeders: t.join()") == 0, "the end");
    state = py.save();
    atomic_store(&ending, 1);
    CHECK(pthread_join(flusher, NULL) == 0, "pthread_join");
    CHECK(lc_stop(whole) == KPT_OK && lc_stop(ring) == KPT_OK, "stop");
    check_stream(&all, (uint64_t)BREEDERS * TICKS * cycles);
    CHECK(lc_destroy(whole) == KPT_OK && lc_destroy(ring) == KPT_OK, "destroy");
    py.restore(state);
    CHECK(py.finalize() == 0, "Py_FinalizeEx");
}
