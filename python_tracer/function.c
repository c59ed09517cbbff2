#include "function.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT_BITS = 12, SEGMENT_SIZE = 1 << SEGMENT_BITS, MOST_SEGMENTS = 1 << 16 };

typedef struct entry {
    kpti_function_view view; /* strings lie behind the entry */
    uint64_t hash;
    uint32_t id;
    struct entry *next; /* in its bucket */
} entry;

/* Segments are never moved, so that a reader may look while the table grows. */
static _Atomic(entry **) segments[MOST_SEGMENTS];
static _Atomic uint32_t count = 1; /* id 0 is taken */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the buckets and growth */
static entry **buckets;
static size_t bucket_count; /* a power of two */

void kpti_functions_lock(void)
{
    pthread_mutex_lock(&lock);
}

void kpti_functions_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return (hash ^ size) * UINT64_C(0x100000001b3);
}

static uint64_t hash_of(const kpti_function_view *f)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    hash = hash_bytes(hash, f->display.data, f->display.size);
    hash = hash_bytes(hash, f->qualname.data, f->qualname.size);
    hash = hash_bytes(hash, &f->first_line, sizeof f->first_line);
    return hash_bytes(hash, &f->kind, sizeof f->kind);
}

static int same_str(kpt_str a, kpt_str b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static int same(const kpti_function_view *a, const kpti_function_view *b)
{
    return a->kind == b->kind && a->first_line == b->first_line &&
           same_str(a->display, b->display) && same_str(a->qualname, b->qualname) &&
           same_str(a->function, b->function) && same_str(a->file, b->file);
}

static kpt_str copy_str(char **at, kpt_str from)
{
    kpt_str out = {*at, from.size};
    if (from.size) memcpy(*at, from.data, from.size);
    *at += from.size;
    return out;
}

static entry *copy_entry(const kpti_function_view *f, uint64_t hash)
{
    size_t text = f->display.size + f->function.size + f->qualname.size + f->file.size;
    entry *e = malloc(sizeof *e + text);
    char *at = (char *)(e + 1);
    if (!e) return NULL;
    e->view = *f;
    e->view.display = copy_str(&at, f->display);
    e->view.function = copy_str(&at, f->function);
    e->view.qualname = copy_str(&at, f->qualname);
    e->view.file = copy_str(&at, f->file);
    e->hash = hash;
    return e;
}

static int grow_buckets_locked(void)
{
    size_t wanted = bucket_count ? bucket_count * 2 : 1024;
    entry **grown = calloc(wanted, sizeof(entry *));
    if (!grown) return bucket_count > 0; /* longer chains do as well */
    for (size_t i = 0; i < bucket_count; i++) {
        for (entry *e = buckets[i], *next; e; e = next) {
            next = e->next;
            e->next = grown[e->hash & (wanted - 1)];
            grown[e->hash & (wanted - 1)] = e;
        }
    }
    free(buckets);
    buckets = grown;
    bucket_count = wanted;
    return 1;
}

/* Gives E the next id and lets readers see it. */
static uint32_t publish_locked(entry *e)
{
    uint32_t id = atomic_load_explicit(&count, memory_order_relaxed);
    uint32_t segment = id >> SEGMENT_BITS;
    entry **entries;
    if (id > KPTI_MOST_NUMBER || segment >= MOST_SEGMENTS) return 0;
    entries = atomic_load_explicit(&segments[segment], memory_order_relaxed);
    if (!entries) {
        entries = calloc(SEGMENT_SIZE, sizeof(entry *));
        if (!entries) return 0;
        atomic_store_explicit(&segments[segment], entries, memory_order_release);
    }
    e->id = id;
    entries[id & (SEGMENT_SIZE - 1)] = e;
    e->next = buckets[e->hash & (bucket_count - 1)];
    buckets[e->hash & (bucket_count - 1)] = e;
    atomic_store_explicit(&count, id + 1, memory_order_release);
    return id;
}

static uint32_t intern_locked(const kpti_function_view *function, uint64_t hash)
{
    uint32_t id;
    entry *e;
    if (atomic_load_explicit(&count, memory_order_relaxed) >= bucket_count &&
        !grow_buckets_locked())
        return 0;
    for (e = buckets[hash & (bucket_count - 1)]; e; e = e->next)
        if (e->hash == hash && same(&e->view, function)) return e->id;
    e = copy_entry(function, hash);
    if (!e) return 0;
    id = publish_locked(e);
    if (!id) free(e);
    return id;
}

uint32_t kpti_function_intern(const kpti_function_view *function)
{
    uint64_t hash = hash_of(function);
    uint32_t id;
    kpti_functions_lock();
    id = intern_locked(function, hash);
    kpti_functions_unlock();
    return id;
}

uint32_t kpti_function_count(void)
{
    return atomic_load_explicit(&count, memory_order_acquire);
}

int kpti_function_describe(void *ctx, uint32_t id, kpti_function_view *out)
{
    entry **entries;
    (void)ctx;
    if (id == 0 || id >= kpti_function_count()) return 0;
    entries = atomic_load_explicit(&segments[id >> SEGMENT_BITS], memory_order_acquire);
    *out = entries[id & (SEGMENT_SIZE - 1)]->view;
    return 1;
}
