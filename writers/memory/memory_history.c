#include "writers/memory/memory_history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"

__extension__ typedef unsigned __int128 wide;

enum { SECOND_NS = 1000000000, APART_NS = 10000000 };

/* Points that are too near each other have no exact rate; the counter's own is then in the state, at the end of a
 * recording. */
static kpti_memory_time time_of(const kpti_memory_state *first, const kpti_memory_state *last)
{
    uint64_t ns = 1;
    uint64_t ticks = 1;
    int64_t apart_ns; /* the states may be damaged */
    if (__builtin_sub_overflow(last->monotonic_ns, first->monotonic_ns, &apart_ns)) apart_ns = 0;
    if (last->ticks > first->ticks && apart_ns >= (last->hz ? APART_NS : 1)) {
        ns = (uint64_t)apart_ns;
        ticks = last->ticks - first->ticks;
    } else if (last->hz) {
        ns = SECOND_NS;
        ticks = last->hz;
    }
    return (kpti_memory_time){first->ticks, first->unix_ns, ns / ticks,
                              (uint64_t)(((wide)(ns % ticks) << 64) / ticks)};
}

static int64_t ns_at(const kpti_memory_time *t, uint64_t ticks)
{
    const int forwards = ticks >= t->ticks;
    const uint64_t distance = forwards ? ticks - t->ticks : t->ticks - ticks;
    const uint64_t ns = distance * t->whole + (uint64_t)((wide)distance * t->fraction >> 64);
    return (int64_t)((uint64_t)t->ns + (forwards ? ns : -ns));
}

/* Splits a record of *SIZE bytes. Returns what is behind its head, of which *SIZE receives the size, or NULL. */
static const char *split(const char *bytes, kpti_memory_record *head, uint64_t *size)
{
    if (*size < sizeof *head) return NULL;
    memcpy(head, bytes, sizeof *head);
    *size -= sizeof *head;
    return bytes + sizeof *head;
}

/* Reads the next record. Returns its bytes and their number, or NULL after the last one. */
static const char *next_record(const kpti_memory_history *h, kpti_memory_record *head,
                               uint64_t *size)
{
    const char *bytes;
    const char *found = NULL;
    while (!found && h->records.next(h->records.ctx, &bytes, size))
        found = split(bytes, head, size);
    return found;
}

static kpt_status take(kpti_memory_history *h, const kpti_memory_record *head, const char *bytes,
                       uint64_t size)
{
    if (head->what == KPTI_MEMORY_EVENTS) h->count += head->count;
    if (head->what == KPTI_MEMORY_NAMES)
        return kpti_memory_names_take(&h->names, bytes, size, head->count);
    if (head->what != KPTI_MEMORY_STATE || size < sizeof h->states_at[1]) return KPT_OK;
    memcpy(&h->states_at[1], bytes, sizeof h->states_at[1]);
    if (!h->states++) h->states_at[0] = h->states_at[1];
    h->time = time_of(&h->states_at[0], &h->states_at[1]);
    h->dropped = h->states_at[1].dropped;
    h->merged = h->states_at[1].merged;
    h->sample_bytes = h->states_at[1].sample_bytes;
    return KPT_OK;
}

kpt_status kpti_memory_history_take(kpti_memory_history *h, const char *record, uint64_t size,
                                    uint32_t *what)
{
    kpti_memory_record head = {0};
    const char *bytes = split(record, &head, &size);
    *what = head.what;
    return bytes ? take(h, &head, bytes, size) : KPT_OK;
}

static kpt_status read_names(kpti_memory_history *h)
{
    kpti_memory_record head;
    kpt_status status = KPT_OK;
    const char *bytes;
    uint64_t size;
    h->records.rewind(h->records.ctx);
    while (status == KPT_OK && (bytes = next_record(h, &head, &size)))
        status = take(h, &head, bytes, size);
    return status == KPT_OK ? kpti_memory_names_finish(&h->names) : status;
}

kpt_status kpti_memory_history_begin(kpti_memory_history *h, const kpti_memory_records *records)
{
    memset(h, 0, sizeof *h);
    h->records = *records;
    h->time = time_of(&h->states_at[0], &h->states_at[1]);
    h->model = calloc(1, sizeof *h->model);
    if (!h->model || kpti_memory_names_begin(&h->names) != KPT_OK) return KPT_E_MEMORY;
    h->live.pools = h->names.pools;
    return KPT_OK;
}

kpt_status kpti_memory_history_open(kpti_memory_history *h, const kpti_memory_records *records,
                                    uint64_t max)
{
    kpt_status status = kpti_memory_history_begin(h, records);
    if (status == KPT_OK) status = read_names(h);
    if (max && h->count > max) h->skip = h->count - max;
    h->count -= h->skip;
    h->dropped += h->skip;
    return status;
}

void kpti_memory_history_close(kpti_memory_history *h)
{
    free(h->model);
    kpti_memory_live_free(&h->live);
    kpti_memory_names_free(&h->names);
    memset(h, 0, sizeof *h);
}

void kpti_memory_history_first(kpti_memory_history *h)
{
    memset(h->model, 0, sizeof *h->model);
    kpti_memory_live_free(&h->live);
    h->live.pools = h->names.pools;
    h->records.rewind(h->records.ctx);
    h->left = 0;
    h->at = 0;
    h->failed = 0;
}

/* Returns 0 where there is no record of events any more. */
static int next_events(kpti_memory_history *h)
{
    kpti_memory_record head;
    const char *bytes;
    uint64_t size;
    while (!h->left) {
        bytes = next_record(h, &head, &size);
        if (!bytes) return 0;
        if (head.what != KPTI_MEMORY_EVENTS || head.shift > KPTI_MEMORY_MAX_SHIFT) continue;
        h->bytes = (const unsigned char *)bytes;
        h->end = h->bytes + size;
        h->left = head.count;
        h->shift = head.shift;
    }
    return 1;
}

static int next_step(kpti_memory_history *h, kpti_memory_step *step)
{
    if (h->is_damaged && h->at == h->skip + h->count) return 0;
    if (!h->left && !next_events(h)) return 0;
    h->bytes = kpti_memory_unpack(h->model, h->bytes, h->end, h->shift, step);
    if (!h->bytes || step->stack > h->names.node_count) { /* the events behind it depend on it */
        h->is_damaged = 1;
        h->left = 0;
        h->count = h->at > h->skip ? h->at - h->skip : 0;
        return 0;
    }
    h->left--;
    h->at++;
    return 1;
}

/* Finds the block that a free ends, or adds an allocation's. */
static int pair(kpti_memory_history *h, kpti_memory_entry *e)
{
    const kpti_memory_block block = {e->address, e->size << 16 | e->pool, e->stack,
                                     (uint32_t)e->index};
    if (e->kind & KPTI_MEMORY_FREE) {
        e->ends = kpti_memory_live_remove(&h->live, e->address, e->pool, &e->ended);
        if (!e->ends) return 1;
        e->size = kpti_memory_block_size(&e->ended);
        e->pool = (uint16_t)kpti_memory_block_pool(&e->ended);
        return 1;
    }
    e->ends = kpti_memory_live_add(&h->live, &block, &e->ended);
    h->failed = e->ends < 0;
    return !h->failed;
}

int kpti_memory_history_next(kpti_memory_history *h, kpti_memory_entry *e)
{
    const kpti_pool_tags *pool;
    kpti_memory_step step;
    do {
        if (!next_step(h, &step)) return 0;
    } while (h->at <= h->skip);
    e->time_ns = ns_at(&h->time, step.ticks);
    e->address = step.address;
    e->size = step.size;
    e->os_tid = step.os_tid;
    e->index = h->at - 1 - h->skip;
    e->stack = step.stack;
    e->pool = step.pool;
    e->kind = step.kind;
    if (!pair(h, e)) return 0;
    pool = &h->names.pools[e->pool];
    e->device = pool->device;
    e->space = pool->space;
    return 1;
}

int kpti_memory_curves_make(kpti_memory_curves *curves, const kpti_memory_history *h)
{
    curves->of_device = calloc((size_t)h->names.device_count * 2, sizeof *curves->of_device);
    if (!curves->of_device) return 0;
    curves->of_space = curves->of_device + h->names.device_count;
    return 1;
}

void kpti_memory_curves_free(kpti_memory_curves *curves)
{
    free(curves->of_device);
}

void kpti_memory_curves_take(kpti_memory_curves *curves, const kpti_memory_history *h,
                             const kpti_memory_entry *e)
{
    if (e->ends) {
        const kpti_pool_tags *pool = &h->names.pools[kpti_memory_block_pool(&e->ended)];
        curves->of_device[pool->device] -= kpti_memory_block_size(&e->ended);
        curves->of_space[pool->space] -= kpti_memory_block_size(&e->ended);
    }
    if (!(e->kind & KPTI_MEMORY_ALLOC)) return;
    curves->of_device[e->device] += e->size;
    curves->of_space[e->space] += e->size;
}

double kpti_memory_weight(uint64_t size, uint64_t mean)
{
    return mean && size ? 1 / -expm1(-(double)size / (double)mean) : 1;
}
